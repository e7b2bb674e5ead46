package view

import (
	"strings"
	"time"
)

// Screen is everything that is shown. Render reads it alone.
type Screen struct {
	Theme  *Theme
	Link   Link
	Status Status
	Loads  map[string]Load // running conversations and streams by place, own included

	Rows    []*Session // the conversations of the list, in order
	Known   int        // conversations known, whether in Rows or not
	All     bool       // the list has those too that do not run any more
	Cursor  int        // of Rows; the chosen conversation
	Offset  int        // of Rows; the first one on the screen
	Filter  Input      // of Rows
	Focus   Pane
	Server  int // the chosen server, of Places
	Body    Body
	Scroll  int // first line on the screen of a body that is text
	Notices []Notice

	Log    LogPane
	Switch *SwitchPane // set when Body is BodySwitch
	Move   *MovePane   // set when Body is BodyMove
	Remove *RemovePane // set when Body is BodyRemove
	Tests  map[string]Check
	Agent  int // the chosen agent of BodyAgents
	Setups []Setup
	Shown  []string // the command lines of BodyCommand
	Title  string   // of BodyCommand
	// Question, if any, is asked under BodyCommand, and y says yes.
	Question string
}

// Load is what a place has to do.
type Load struct{ Running, Streams int }

// Link is the connection to the proxy.
type Link struct {
	State  LinkState
	AsOf   time.Time // when what is shown was last known to be true
	Reason string    // why it is not connected
	PID    int       // of a proxy that cannot serve
	Start  string    // the command that starts a proxy
	CanKey bool      // a key starts it, too
}

// LinkState says how the screen stands to the proxy.
type LinkState int

// The states of the link.
const (
	LinkConnecting LinkState = iota // asked, not yet answered
	LinkUp
	LinkStopped  // no proxy runs
	LinkLost     // it ran, and cannot be reached
	LinkTroubled // one runs, and answers every request with why it cannot serve
	LinkStarting // told to start
)

// Pane is a part of the screen that can have the focus.
type Pane int

// The panes with a cursor of their own.
const (
	PaneSessions Pane = iota
	PaneServers
)

// Body is what the main part of the screen shows.
type Body int

// The bodies.
const (
	BodyList    Body = iota // servers and conversations
	BodyDetail              // one conversation
	BodyServer              // one server
	BodyLog                 // the request log
	BodyAgents              // the agents
	BodyHelp                // the keys
	BodyProxy               // the proxy's own state, and its warnings
	BodySwitch              // choose the server of an agent's new conversations
	BodyMove                // move one conversation
	BodyRemove              // remove a server
	BodyCommand             // a command line to use elsewhere
)

// Input is a line that is typed into.
type Input struct {
	Text   string
	Active bool // keys go into it
}

// Notice is what an act did, in one sentence.
type Notice struct {
	Text string
	Bad  bool
	Undo bool // the key that undoes it is named
}

// The smallest screen that is drawn; a smaller one has one line.
const (
	minWidth  = 20
	minHeight = 6
)

// wideAt is the width from which servers stand at the left of conversations.
const wideAt = 110

// Render is the whole screen: h lines of w cells.
func (s *Screen) Render(w, h int, now time.Time) string {
	if w <= 0 || h <= 0 {
		return ""
	}
	if w < minWidth || h < minHeight {
		return s.tooSmall(w, h)
	}
	f := s.frame(w, h, now)
	lines := f.head
	if f.wide {
		left := s.serverColumn(f.left, f.bodyHeight, now)
		right := s.main(f, now)
		for i := range f.bodyHeight {
			l := s.Theme.line(w).raw(left[i], f.left)
			bar := s.Theme.glyph.bar
			if i == 0 {
				bar = s.Theme.glyph.tee
			}
			l.put(faint, bar).raw(right[i], f.bodyWidth)
			lines = append(lines, l.String())
		}
	} else {
		lines = append(lines, s.main(f, now)...)
	}
	return strings.Join(append(lines, f.foot...), "\n")
}

// tooSmall is one short line, and nothing else.
func (s *Screen) tooSmall(w, h int) string {
	lines := []string{s.Theme.line(w).put(normal, "agentop: enlarge").String()}
	return strings.Join(fillTo(lines, w, h), "\n")
}

// frame is how a screen is divided.
type frame struct {
	w, h       int
	head, foot []string
	wide       bool // servers at the left
	left       int  // their width, without the bar
	bodyWidth  int
	bodyHeight int
}

func (s *Screen) frame(w, h int, now time.Time) frame {
	f := frame{w: w, h: h, wide: w >= wideAt, bodyWidth: w}
	f.head = s.header(w, h, now)
	f.foot = s.footer(w, h, now)
	if f.wide {
		f.left = 30
		if w >= 160 {
			f.left = 42
		}
		f.bodyWidth = w - f.left - 1
	}
	// The body keeps three lines whatever stands above and below.
	if room := h - len(f.head) - 3; len(f.foot) > room {
		f.foot = f.foot[len(f.foot)-max(room, 1):]
	}
	if room := h - len(f.foot) - 3; len(f.head) > room {
		f.head = f.head[:max(room, 1)]
	}
	f.bodyHeight = h - len(f.head) - len(f.foot)
	return f
}

// main draws the body: bodyHeight lines of bodyWidth.
func (s *Screen) main(f frame, now time.Time) []string {
	w, h := f.bodyWidth, f.bodyHeight
	switch s.Body {
	case BodyLog:
		return s.logPane(w, h, now)
	case BodySwitch:
		return s.switchPane(w, h)
	case BodyMove:
		return s.movePane(w, h)
	case BodyAgents:
		return s.agentsPane(w, h, now)
	case BodyList:
		return s.listBody(f, now)
	}
	title, lines := s.text(w, now)
	return s.scrolled(title, lines, w, h)
}

// text is the title and the lines of a body that is text.
func (s *Screen) text(w int, now time.Time) (string, []string) {
	switch s.Body {
	case BodyDetail:
		return "Conversation", s.detail(w, now)
	case BodyServer:
		return "Server", s.serverDetail(w, now)
	case BodyHelp:
		return "Keys", s.help(w)
	case BodyProxy:
		return "Proxy", s.proxyDetail(w, now)
	case BodyRemove:
		return "Remove a server", s.removeText(w)
	case BodyCommand:
		return s.Title, s.commandText(w)
	}
	return "", nil
}

// scrolled shows a window of lines under a title, and says what is outside.
func (s *Screen) scrolled(title string, lines []string, w, h int) []string {
	room := max(h-1, 0)
	first := min(max(s.Scroll, 0), max(len(lines)-room, 0))
	note := ""
	if len(lines) > room {
		note = "lines " + itoa(first+1) + "-" + itoa(min(first+room, len(lines))) + " of " + itoa(len(lines))
	}
	out := []string{s.Theme.rule(w, title, note, true)}
	out = append(out, lines[first:min(first+room, len(lines))]...)
	return fillTo(out, w, h)
}

// listBody is the servers, where they do not stand at the left, over the
// conversations, and a preview of the chosen one under them on a tall screen.
func (s *Screen) listBody(f frame, now time.Time) []string {
	p := s.divide(f)
	var lines []string
	switch {
	case f.wide:
	case p.servers == 1:
		lines = append(lines, s.serverStrip(f.bodyWidth))
	case p.servers > 1:
		lines = append(lines, s.serverTable(f.bodyWidth, p.servers, now)...)
	}
	if p.list > 0 {
		lines = append(lines, s.sessionPane(f.bodyWidth, p.list, now)...)
	}
	if p.preview > 0 {
		lines = append(lines, s.preview(f.bodyWidth, p.preview, now)...)
	}
	return fillTo(lines, f.bodyWidth, f.bodyHeight)
}

// parts are the heights of the panes of BodyList, their titles included.
type parts struct{ servers, list, preview int }

// divide shares out the body's height.
func (s *Screen) divide(f frame) parts {
	p := parts{list: f.bodyHeight}
	places := len(s.Status.Servers) + 1
	switch {
	case f.wide:
	case s.Focus == PaneServers && f.bodyHeight < 14:
		return parts{servers: max(f.bodyHeight, 2)} // folded: one pane at a time
	case f.bodyHeight < 14 || f.w < 50:
		if s.Focus == PaneServers {
			return parts{servers: f.bodyHeight}
		}
		p.servers = 1
	default:
		p.servers = min(places+1, max(f.bodyHeight/3, 4))
	}
	p.list -= p.servers
	if p.list >= 20 && f.bodyWidth >= 70 {
		p.preview = min(max(p.list*2/5, 9), 15)
		p.list -= p.preview
	}
	return p
}

// ListHeight is how many conversations a screen of w by h shows at once.
func (s *Screen) ListHeight(w, h int, now time.Time) int {
	if w < minWidth || h < minHeight {
		return 1
	}
	f := s.frame(w, h, now)
	return max(s.divide(f).list-s.sessionChrome(s.divide(f).list), 1)
}

// BodyHeight is how many lines a body other than BodyList has, its title left
// out.
func (s *Screen) BodyHeight(w, h int, now time.Time) int {
	if w < minWidth || h < minHeight {
		return 1
	}
	return max(s.frame(w, h, now).bodyHeight-1, 1)
}

// ScrollEnd is the last sensible Scroll of a body that is text.
func (s *Screen) ScrollEnd(w, h int, now time.Time) int {
	if w < minWidth || h < minHeight {
		return 0
	}
	f := s.frame(w, h, now)
	_, lines := s.text(f.bodyWidth, now)
	return max(len(lines)-(f.bodyHeight-1), 0)
}

// Window is the first of n rows on a screen of h rows so that the cursor is on
// it, moved as little as possible from where it was.
func Window(offset, cursor, n, h int) int {
	switch {
	case h <= 0 || n <= h:
		return 0
	case cursor < offset:
		offset = cursor
	case cursor >= offset+h:
		offset = cursor - h + 1
	}
	return min(max(offset, 0), n-h)
}

// Chosen is the conversation under the cursor, nil for none.
func (s *Screen) Chosen() *Session {
	if s.Cursor < 0 || s.Cursor >= len(s.Rows) {
		return nil
	}
	return s.Rows[s.Cursor]
}

// ChosenServer is the server under the cursor, nil for own.
func (s *Screen) ChosenServer() *Server {
	if s.Server < 0 || s.Server >= len(s.Status.Servers) {
		return nil
	}
	return &s.Status.Servers[s.Server]
}

// agent is what is known of an agent, nil for nothing.
func (s *Screen) agent(name string) *Agent {
	for i := range s.Status.Agents {
		if s.Status.Agents[i].Agent == name {
			return &s.Status.Agents[i]
		}
	}
	return nil
}

// upstream is an agent's own upstream in words.
func (s *Screen) upstream(agent string) string {
	a := s.agent(agent)
	switch {
	case a == nil || a.Upstream == "":
		return "the agent's own upstream"
	case a.Upstream == "none":
		return "no own upstream is known"
	}
	return "the agent's own upstream, " + a.Upstream
}

// server is what is known of the server of a place, nil for own and for one
// that is not configured.
func (s *Screen) server(place string) *Server {
	name, _, _ := strings.Cut(place, "/")
	for i := range s.Status.Servers {
		if s.Status.Servers[i].Name == name {
			return &s.Status.Servers[i]
		}
	}
	return nil
}

// choice is where an agent's new conversations go, own for not routed.
func (s *Screen) choice(agent string) string {
	if a := s.agent(agent); a != nil && a.Server != "" {
		return a.Server
	}
	return Own
}

// astray reports whether a conversation is elsewhere than its agent's new ones.
func (s *Screen) astray(c *Session) bool {
	name, _, _ := strings.Cut(c.Server, "/")
	return s.agent(c.Agent) != nil && name != s.choice(c.Agent)
}
