package view

import (
	"strings"
	"time"
)

// LogPane is the request log on the screen.
type LogPane struct {
	All    []Request // what is at hand, oldest first
	Rows   []int     // indexes into All of those that match the filter, oldest first
	Cursor int       // of Rows
	Offset int       // of Rows; the first one on the screen
	Follow bool      // the newest is kept in sight
	Filter Input
	// Sessions are the conversations that are known, for their titles.
	Sessions map[Key]*Session
}

// logColumns are the widths of the log's columns, 0 for folded.
type logColumns struct {
	agent, turn, pin, server, model, status, in, out, first, total int
	one                                                            bool // all lines are of one conversation
}

// logColumnsFor divides w cells; the rest is for the error, title or path.
// Lines of one conversation need neither its agent nor its title.
func logColumnsFor(w int, one bool) logColumns {
	c := logColumns{agent: 11, turn: 12, pin: 8, server: 10, model: 14, status: 6, in: 5, out: 5, first: 6, total: 6, one: one}
	rest := 26 // most of a title
	if one {
		c.agent, rest = 0, 22
	}
	for _, column := range []*int{nil, &c.pin, &c.first, &c.in, &c.out, &c.model, &c.total, &c.turn, &c.agent} {
		if column != nil {
			*column = 0
		}
		if w-c.sum() >= rest {
			break
		}
	}
	return c
}

func (c *logColumns) sum() int {
	total := 11 // cursor and time
	for _, n := range []int{c.agent, c.turn, c.pin, c.server, c.model, c.status, c.in, c.out, c.first, c.total} {
		if n > 0 {
			total += n + 1
		}
	}
	return total
}

// LogHeight is how many requests the log shows in a body of h lines, its title
// left out.
func (s *Screen) LogHeight(h int) int { return max(h-s.logChrome()+1, 1) }

// logChrome is how many lines of the log's body are not requests.
func (s *Screen) logChrome() int {
	if s.Log.Filter.Active || s.Log.Filter.Text != "" {
		return 3
	}
	return 2
}

// logPane is the request log: h lines of w cells.
func (s *Screen) logPane(w, h int, now time.Time) []string {
	t := s.Theme
	room := max(h-s.logChrome(), 0)
	first := Window(s.Log.Offset, s.Log.Cursor, len(s.Log.Rows), room)
	if s.Log.Follow {
		first = max(len(s.Log.Rows)-room, 0)
	}
	c := logColumnsFor(w, false)
	lines := []string{t.rule(w, "Request log", s.logNote(room, first), true)}
	if s.Log.Filter.Active || s.Log.Filter.Text != "" {
		lines = append(lines, s.inputLine("filter", s.Log.Filter, w))
	}
	lines = append(lines, t.logHead(c, w))
	if len(s.Log.Rows) == 0 {
		text := "no request yet"
		if len(s.Log.All) > 0 {
			text = "no request matches; esc shows all"
		}
		lines = append(lines, t.line(w).gap(2).put(faint, text).String())
	}
	for i := first; i < min(first+room, len(s.Log.Rows)); i++ {
		lines = append(lines, s.logRow(&s.Log.All[s.Log.Rows[i]], i == s.Log.Cursor, c, w, now))
	}
	return fillTo(lines, w, h)
}

func (s *Screen) logNote(room, first int) string {
	n := len(s.Log.Rows)
	note := plural(n, "request")
	if s.Log.Filter.Text != "" {
		note = itoa(n) + " of " + itoa(len(s.Log.All)) + " match"
	}
	if s.Log.Follow {
		return note + ", follows the newest"
	}
	return note + ", " + itoa(min(first+1, n)) + "-" + itoa(min(first+room, n)) + ", G follows again"
}

func (t *Theme) logHead(c logColumns, w int) string {
	l := t.line(w).gap(2).col(faint, "time", 8).gap(1)
	for _, column := range []struct {
		name  string
		w     int
		right bool
	}{{"agent", c.agent, false}, {"turn", c.turn, false}, {"pin", c.pin, false}, {"server", c.server, false}, {"model", c.model, false},
		{"status", c.status, true}, {"in", c.in, true}, {"out", c.out, true}, {"first", c.first, true}, {"total", c.total, true}} {
		switch {
		case column.w == 0:
		case column.right:
			l.num(faint, column.name, column.w).gap(1)
		default:
			l.col(faint, column.name, column.w).gap(1)
		}
	}
	return l.put(faint, "error, title or path").String()
}

func (s *Screen) logRow(r *Request, chosen bool, c logColumns, w int, now time.Time) string {
	t := s.Theme
	l := t.line(w)
	mark := "  "
	if chosen {
		mark = t.glyph.cursor + " "
		if !s.Log.Follow { // else it is the newest, which changes by itself
			l.over = selected
		}
	}
	l.put(accent, mark).col(faint, r.Time.In(now.Location()).Format("15:04:05"), 8).gap(1)
	look := normal
	if r.Turn == "side" || r.Turn == "none" {
		look = faint
	}
	cell := func(s style, text string, n int) {
		if n > 0 {
			l.col(s, text, n).gap(1)
		}
	}
	number := func(text string, n int) {
		if n > 0 {
			l.num(look, text, n).gap(1)
		}
	}
	cell(look, r.Agent, c.agent)
	cell(look, turnName(r), c.turn)
	cell(faint, r.Pin, c.pin)
	cell(look, r.Server, c.server)
	cell(faint, r.Model, c.model)
	status, statusLook := statusCell(r)
	if c.status > 0 {
		l.num(statusLook, status, c.status).gap(1)
	}
	number(blankZero(r.Input), c.in)
	number(blankZero(r.Output), c.out)
	number(millis(r.FirstMS), c.first)
	number(millis(r.TotalMS), c.total)
	title := ""
	if !c.one {
		title = s.requestTitle(r)
	}
	if failed := requestFailure(r); failed != "" {
		l.put(bad, "! "+failed)
		if title != "" {
			l.gap(2).put(faint, title)
		}
		return l.String()
	}
	if title != "" {
		return l.put(look, title).String()
	}
	return l.put(faint, strings.TrimSpace(r.Method+" "+r.Path)).String()
}

// requestTitle is the title of a request's conversation, "" for none.
func (s *Screen) requestTitle(r *Request) string {
	c := s.Log.Sessions[Key{r.Agent, r.Session}]
	if c == nil || r.Turn == "none" {
		return ""
	}
	return c.Title
}

// requestFailure is why a request failed, "" when it did not.
func requestFailure(r *Request) string {
	if r.Error == "" {
		return StatusText(r.Status)
	}
	return r.Error
}

// turnName is the kind of a request; of a side request, which.
func turnName(r *Request) string {
	if r.Turn == "side" && r.Side != "" {
		return r.Side
	}
	return r.Turn
}

// statusCell is a status that says by a mark, too, that it is an error's.
func statusCell(r *Request) (string, style) {
	switch {
	case r.Status >= 400:
		return "! " + itoa(r.Status), bad
	case r.Error != "":
		return "! " + dash(nonZero(r.Status)), bad
	case r.Status == 0:
		return "-", faint
	}
	return itoa(r.Status), good
}

func blankZero(n int64) string {
	if n == 0 {
		return ""
	}
	return count(n)
}
