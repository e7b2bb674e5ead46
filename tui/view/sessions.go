package view

import (
	"strings"
	"time"
)

// columns are the widths of the conversations' columns, 0 for one that is
// folded away.
type columns struct {
	agent, title, server, model, turn, context, cache, state int
}

// Widths that a column has where it is shown.
const (
	turnWidth      = 4
	contextWidth   = 7 // 81k, under its name
	contextBoth    = 9 // 81k 41%
	cacheWidth     = 5
	stateWidth     = 11
	stateShort     = 9  // without its mark
	leastTitle     = 22 // three or four words, by which people know a conversation
	leastNarrow    = 10 // title on a screen narrower than 60
	leastMarked    = 84 // from here on there is room for the state's mark
	leastRoomyPane = 100
)

// sessionColumns divides w cells. Server and model are as wide as the rows
// need; what is least missed is folded first, so that a title can be read.
func (s *Screen) sessionColumns(w int) columns {
	c := columns{turn: turnWidth, context: contextWidth, cache: cacheWidth, state: stateWidth}
	for _, row := range s.Rows {
		c.agent = max(c.agent, shortWidth(row.Agent))
		c.server = max(c.server, shortWidth(placeName(row, w))+1) // and the mark of one astray
		c.model = max(c.model, shortWidth(model(row)))
	}
	c.agent = min(max(c.agent, len("agent")), 12)
	c.server = min(max(c.server, len("server")), max(w/5, 7))
	c.model = min(max(c.model, len("model")), max(w/8, 8))
	if w >= leastRoomyPane {
		c.context = contextBoth
	}
	if w < leastMarked {
		c.state = stateShort
	}
	least := leastTitle
	if w < 60 {
		c.agent = min(c.agent, 6)
		least = leastNarrow
	}
	for _, column := range []*int{nil, &c.turn, &c.cache, &c.model, &c.context, &c.agent} {
		if column != nil {
			*column = 0
		}
		c.title = w - 3 - c.sum()
		if c.title >= least {
			break
		}
	}
	c.title = max(c.title, 1)
	return c
}

// sum is the width of all columns but the title, with the gaps behind them.
func (c *columns) sum() int {
	total := 0
	for _, n := range []int{c.agent, c.server, c.model, c.turn, c.context, c.cache, c.state} {
		if n > 0 {
			total += n + 1
		}
	}
	return total
}

// folded names the columns that are not shown.
func (c *columns) folded() string {
	var names []string
	for _, column := range []struct {
		name  string
		width int
	}{{"agent", c.agent}, {"model", c.model}, {"turn", c.turn}, {"context", c.context}, {"cache", c.cache}} {
		if column.width == 0 {
			names = append(names, column.name)
		}
	}
	return strings.Join(names, ", ")
}

// shortWidth is the width of a name, as far as it matters for a column.
func shortWidth(s string) int {
	if len(s) > 64 {
		return 64
	}
	return width(s)
}

// model is the model that serves a conversation.
func model(c *Session) string {
	if c.ModelSent != "" {
		return c.ModelSent
	}
	return c.ModelAsked
}

// sessionChrome is how many lines of a pane of h are not conversations.
func (s *Screen) sessionChrome(h int) int {
	chrome := 1
	if h >= 6 {
		chrome++ // names of the columns
	}
	if s.Filter.Active || s.Filter.Text != "" {
		chrome++
	}
	return chrome
}

// sessionPane is the conversations: h lines of w cells. It draws the rows that
// are on the screen and looks at no other.
func (s *Screen) sessionPane(w, h int, now time.Time) []string {
	c := s.sessionColumns(w)
	room := h - s.sessionChrome(h)
	first := Window(s.Offset, s.Cursor, len(s.Rows), room)
	lines := []string{s.Theme.rule(w, "Conversations", s.sessionNote(w, room, first, &c), s.paneLook(PaneSessions) == accent)}
	if s.Filter.Active || s.Filter.Text != "" {
		lines = append(lines, s.inputLine("filter", s.Filter, w))
	}
	if h >= 6 {
		lines = append(lines, s.sessionHead(&c, w))
	}
	if len(s.Rows) == 0 {
		for _, text := range s.noSessions() {
			for _, part := range wrap(text, w-4) {
				lines = append(lines, s.Theme.line(w).gap(2).put(faint, part).String())
			}
		}
	}
	for i := first; i < min(first+room, len(s.Rows)); i++ {
		lines = append(lines, s.sessionRow(s.Rows[i], i == s.Cursor, &c, w, now))
	}
	return fillTo(lines, w, h)
}

// sessionNote is what stands beside the pane's title.
func (s *Screen) sessionNote(w, room, first int, c *columns) string {
	var notes []string
	star := ""
	if s.Link.State != LinkUp && s.Link.AsOf.IsZero() {
		return "" // there may be any number
	}
	if w < 60 {
		notes = append(notes, itoa(len(s.Rows))+" shown")
		if c.folded() != "" {
			notes = append(notes, "enter: more")
		}
		return strings.Join(notes, ", ")
	}
	switch {
	case s.Filter.Text != "":
		notes = append(notes, itoa(len(s.Rows))+" of "+itoa(s.Known)+" match")
	case s.All:
		notes = append(notes, itoa(len(s.Rows))+" known, v: running only")
	case s.Known > len(s.Rows):
		notes = append(notes, itoa(len(s.Rows))+" running, v: all "+itoa(s.Known))
	default:
		notes = append(notes, itoa(len(s.Rows))+" running")
	}
	if len(s.Rows) > room {
		notes = append(notes, itoa(first+1)+"-"+itoa(min(first+room, len(s.Rows))))
	}
	for i := first; i < min(first+room, len(s.Rows)); i++ {
		if s.astray(s.Rows[i]) {
			star = ", * not where new ones go"
			break
		}
	}
	text, more, most := strings.Join(notes, ", "), "", ""
	if folded := c.folded(); folded != "" {
		more, most = ", enter: more", ", enter shows "+folded
	}
	// The longest that fits; the line under the list tells of the star, too.
	for _, note := range []string{text + star + most, text + star + more} {
		if len(note) <= w-len("- Conversations   ") {
			return note
		}
	}
	return text + more
}

// noSessions says why the list is empty, and what fills it.
func (s *Screen) noSessions() []string {
	switch {
	case s.Link.State == LinkConnecting:
		return nil
	case s.Filter.Text != "":
		return []string{"no conversation matches; esc shows all"}
	case s.Known > 0:
		return []string{"no conversation ran in the last 24 hours; v shows all"}
	case s.Link.State != LinkUp:
		return []string{"conversations are shown when a proxy runs"}
	}
	if len(s.Status.Servers) == 0 {
		return []string{"no server is configured yet. Add one with `agentop server add NAME URL`, in another terminal."}
	}
	return []string{
		"no conversation yet.",
		"Point an agent here with `agentop agent enable AGENT`, or by its base URL: http://" + s.address() + "/claude-code",
	}
}

func (s *Screen) sessionHead(c *columns, w int) string {
	l := s.Theme.line(w).gap(2)
	head := func(name string, n int, right bool) {
		switch {
		case n == 0:
		case right:
			l.num(faint, name, n).gap(1)
		default:
			l.col(faint, name, n).gap(1)
		}
	}
	head("agent", c.agent, false)
	head("title", c.title, false)
	head("server", c.server, false)
	head("model", c.model, false)
	head("turn", c.turn, true)
	head("context", c.context, true)
	head("cache", c.cache, true)
	head("state", c.state, false)
	return l.String()
}

func (s *Screen) sessionRow(row *Session, chosen bool, c *columns, w int, now time.Time) string {
	l := s.Theme.line(w)
	l.over = s.rowLook(PaneSessions, chosen)
	l.put(accent, s.cursorMark(PaneSessions, chosen))
	if c.agent > 0 {
		l.col(normal, row.Agent, c.agent).gap(1)
	}
	if row.Title != "" {
		l.col(strong, row.Title, c.title).gap(1)
	} else {
		l.col(faint, untitled(row), c.title).gap(1)
	}
	s.placeCell(l, row, c.server)
	if c.model > 0 {
		l.col(faint, dash(model(row)), c.model).gap(1)
	}
	if c.turn > 0 {
		l.num(normal, itoa(row.Turns), c.turn).gap(1)
	}
	if c.context > 0 {
		l.num(normal, contextCell(row, c.context), c.context).gap(1)
	}
	if c.cache > 0 {
		l.num(normal, dash(cacheShare(row)), c.cache).gap(1)
	}
	state, look := s.state(row, c.state, now)
	l.col(look, state, c.state)
	return l.String()
}

// placeCell is the server of a conversation; a star says that its agent's new
// ones go elsewhere.
func (s *Screen) placeCell(l *line, row *Session, w int) {
	name, look, mark := placeName(row, l.max), normal, ""
	if s.astray(row) {
		look, mark = accent, "*"
	}
	if s.server(row.Server) == nil && row.Server != Own {
		look, mark = bad, "!"
	}
	room := w - len(mark)
	name = s.Theme.cut(s.Theme.clean(name), room)
	l.put(look, name).put(look, mark).gap(w - width(name) - len(mark)).gap(1)
}

// placeName is where a conversation is; of a pool, the member too where the
// pane is wide.
func placeName(row *Session, w int) string {
	if w >= leastRoomyPane {
		return row.Server
	}
	name, _, _ := strings.Cut(row.Server, "/")
	return name
}

// untitled stands for a title that is not known.
func untitled(row *Session) string {
	if row.Dir != "" {
		return row.Dir
	}
	return "untitled " + row.ID
}

// contextCell is the context in tokens, with its share of the limit where
// there is room.
func contextCell(row *Session, w int) string {
	if row.Context == 0 {
		return "-"
	}
	text := count(row.Context)
	if part := share(row.Context, row.ContextMax); part != "" && w >= contextBoth {
		return text + " " + part
	}
	return text
}

func cacheShare(row *Session) string { return share(row.Cached, row.Context) }

// state is what a conversation does, in at most w cells.
func (s *Screen) state(row *Session, w int, now time.Time) (string, style) {
	g := &s.Theme.glyph
	idle := ago(row.LastTurn, now)
	switch {
	case s.Link.State != LinkUp && (row.Streams > 0 || s.finishes(row.Key())):
		return "unknown", caution // it was streaming when the proxy was last heard of
	case row.Streams > 0 && w < stateWidth:
		return "streaming", good
	case row.Streams > 0:
		return g.stream + " streaming", good
	case s.finishes(row.Key()) && w < stateWidth:
		return "finishing", good
	case s.finishes(row.Key()): // in the worker before this one
		return g.stream + " finishing", good
	case row.Status >= 400:
		return g.down + " " + itoa(row.Status) + " " + idle, bad
	case row.Error != "":
		return g.down + " cut " + idle, bad
	case idle == "":
		return "idle", faint
	}
	return "idle " + idle, faint
}

// inputLine is a line that is typed into.
func (s *Screen) inputLine(label string, in Input, w int) string {
	l := s.Theme.line(w).gap(2).put(faint, label+": ")
	// The end of what is typed stays in sight.
	text := s.Theme.clean(in.Text)
	for width(text) > max(w-l.used-2, 1) {
		_, n := firstCell(text)
		text = text[n:]
	}
	l.put(strong, text)
	if in.Active {
		l.put(accent, s.Theme.glyph.edit)
	}
	return l.String()
}
