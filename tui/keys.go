package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// key handles one key: what is typed into first, then the panes that ask
// something, then what a key does everywhere, then the body's own keys.
func (m *model) key(k tea.KeyMsg) tea.Cmd {
	name := k.String()
	switch name {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return m.suspend()
	case "ctrl+l":
		m.afresh()
		return nil
	}
	s := &m.screen
	switch {
	case s.Body == view.BodySwitch:
		return m.switchKey(k)
	case s.Body == view.BodyMove:
		return m.moveKey(name)
	case m.pointing != nil:
		return m.pointKey(name)
	case s.Body == view.BodyRemove:
		return m.removeKey(name)
	case s.Body == view.BodyLog && s.Log.Filter.Active:
		typeInto(&s.Log.Filter, k)
		return nil
	case s.Body == view.BodyList && s.Filter.Active:
		m.filterKey(k)
		return nil
	}
	if cmd, done := m.anywhere(name); done {
		return cmd
	}
	switch s.Body {
	case view.BodyLog:
		return m.logKey(name)
	case view.BodyAgents:
		return m.agentsKey(name)
	case view.BodyServer:
		return m.serverKey(name)
	case view.BodyDetail:
		if cmd, done := m.sessionKey(name); done {
			return cmd
		}
	case view.BodyList:
		return m.listKey(name)
	case view.BodyCommand:
		if name == "y" && len(s.Shown) > 0 {
			return m.copy(s.Shown[0])
		}
	}
	m.scrollKey(name)
	return nil
}

// anywhere handles the keys that do the same on every screen.
func (m *model) anywhere(name string) (tea.Cmd, bool) {
	s := &m.screen
	switch name {
	case "q":
		return tea.Quit, true
	case "esc", "backspace":
		m.escape()
	case "s":
		return m.openSwitch(), true
	case "u":
		return m.undoSwitch(), true
	case "a":
		m.open(view.BodyAgents)
		return m.askSetups(), true
	case "l":
		m.open(view.BodyLog)
		s.Log.Follow = true
		if m.logLoaded {
			return nil, true
		}
		return m.askLog(), true
	case "w":
		m.open(view.BodyProxy)
	case "?":
		m.open(view.BodyHelp)
	case "p":
		return m.start(), true
	default:
		return nil, false
	}
	return nil, true
}

// open shows a body; the same key again goes back.
func (m *model) open(b view.Body) {
	s := &m.screen
	if s.Body == b {
		b = view.BodyList
	}
	s.Body, s.Scroll = b, 0
}

// escape goes back one step: from a pane to the one before, from the list's
// filter to no filter, and clears the notice.
func (m *model) escape() {
	s := &m.screen
	switch {
	case s.Body == view.BodyLog && s.Log.Filter.Text != "":
		s.Log.Filter = view.Input{}
	case s.Body != view.BodyList:
		s.Body, s.Scroll, m.back = m.back, 0, view.BodyList
	case s.Filter.Text != "":
		s.Filter = view.Input{}
	case len(m.notices) > 0:
		m.notices = nil
	default:
		s.Focus = view.PaneSessions
	}
}

// listKey handles the keys of the servers and conversations.
func (m *model) listKey(name string) tea.Cmd {
	s := &m.screen
	if name == "tab" || name == "shift+tab" {
		s.Focus = 1 - s.Focus
		return nil
	}
	if s.Focus == view.PaneServers {
		return m.serverKey(name)
	}
	switch name {
	case "/":
		s.Filter.Active = true
		return nil
	case "v":
		s.All = !s.All
		return nil
	case "enter":
		if s.Chosen() != nil {
			m.open(view.BodyDetail)
		}
		return nil
	}
	if cmd, done := m.sessionKey(name); done {
		return cmd
	}
	m.choose(moved(name, s.Cursor, len(s.Rows), s.ListHeight(m.width, m.height, m.now())))
	return nil
}

// sessionKey handles the keys that act on the chosen conversation.
func (m *model) sessionKey(name string) (tea.Cmd, bool) {
	row := m.screen.Chosen()
	switch name {
	case "m":
		if row != nil {
			return m.openMove(row), true
		}
	case "y":
		if row != nil {
			return m.copy(row.ID), true
		}
	case "o":
		if row != nil {
			m.showResume(row)
		}
	default:
		return nil, false
	}
	return nil, true
}

// showResume shows the command that continues a conversation in its agent.
func (m *model) showResume(row *view.Session) {
	command, ok := view.Resume(row.Agent, row.ID, row.Dir)
	if !ok {
		m.say("agentop knows no command that resumes this conversation: its agent gave it no id that a shell can take")
		return
	}
	where := "Run it in another terminal, in which " + row.Agent + " is pointed at agentop"
	if row.Dir == "" {
		where += ", in the directory that the conversation began in"
	}
	m.show("Resume in "+row.Agent, command, "It goes on on "+row.Server+", where it is.", where+".")
}

// show shows a command line and what to know about it.
func (m *model) show(title string, lines ...string) {
	m.back = m.screen.Body
	m.screen.Body, m.screen.Scroll = view.BodyCommand, 0
	m.screen.Title, m.screen.Shown = title, lines
}

// scrollKey moves through a text.
func (m *model) scrollKey(name string) {
	s := &m.screen
	now := m.now()
	h := s.BodyHeight(m.width, m.height, now)
	end := s.ScrollEnd(m.width, m.height, now)
	switch name {
	case "up", "k":
		s.Scroll--
	case "down", "j":
		s.Scroll++
	default:
		s.Scroll = moved(name, s.Scroll, end+1, h)
	}
	s.Scroll = min(max(s.Scroll, 0), end)
}

// logKey handles the keys of the request log.
func (m *model) logKey(name string) tea.Cmd {
	s := &m.screen
	log := &s.Log
	switch name {
	case "/":
		log.Filter.Active = true
	case "G", "end":
		log.Follow = true
	case "enter":
		if log.Cursor < len(log.Rows) {
			return m.openConversation(&log.All[log.Rows[log.Cursor]])
		}
	default:
		to := moved(name, log.Cursor, len(log.Rows), s.LogHeight(s.BodyHeight(m.width, m.height, m.now())))
		if to != log.Cursor {
			log.Follow = false
			log.Cursor = to
		}
	}
	return nil
}

// openConversation shows the conversation of a request.
func (m *model) openConversation(r *view.Request) tea.Cmd {
	s := &m.screen
	key := view.Key{Agent: r.Agent, ID: r.Session}
	if m.known.all[key] == nil {
		m.say("this request belongs to no conversation that is known")
		return nil
	}
	s.Filter, s.All = view.Input{}, s.All || !runs(m.known.all[key], m.now())
	m.chosen, m.hasChosen = key, true
	s.Focus = view.PaneSessions
	s.Body, s.Scroll, m.back = view.BodyDetail, 0, view.BodyLog
	return nil
}

// moved is a cursor among n rows after a key, h rows being a page.
func moved(name string, cursor, n, h int) int {
	switch name {
	case "up", "k":
		cursor--
	case "down", "j":
		cursor++
	case "pgup", "ctrl+b", "ctrl+u":
		cursor -= max(h-1, 1)
	case "pgdown", "ctrl+f", "ctrl+d", " ":
		cursor += max(h-1, 1)
	case "home", "g":
		cursor = 0
	case "end", "G":
		cursor = n - 1
	}
	return min(max(cursor, 0), max(n-1, 0))
}
