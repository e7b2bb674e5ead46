package tui

import (
	"context"
	"errors"

	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// undo is the last switch, as it is taken back.
type undo struct{ agent, server, before string }

// The messages of the switch.
type (
	switchedMsg struct {
		change view.Switch
		err    error
		undone bool
	}
	checkMsg struct {
		ask    int // of which opening of the pane
		server string
		check  view.Check
	}
)

// openSwitch shows the choice of a server for an agent: that of the chosen
// conversation, or of the agents' screen.
func (m *model) openSwitch() tea.Cmd {
	s := &m.screen
	if s.Link.State != view.LinkUp {
		m.fail(errors.New("nothing can be switched while no proxy answers"))
		return nil
	}
	if len(s.Status.Agents) == 0 {
		return nil
	}
	p := &view.SwitchPane{}
	for i := range s.Status.Agents {
		p.Agents = append(p.Agents, s.Status.Agents[i].Agent)
	}
	switch row := s.Chosen(); {
	case s.Body == view.BodyAgents:
		p.Agent = s.Agent
	case row != nil && s.Focus == view.PaneSessions:
		for i, name := range p.Agents {
			if name == row.Agent {
				p.Agent = i
			}
		}
	}
	if s.Body != view.BodySwitch {
		m.back = s.Body
	}
	if m.back == view.BodyDetail || m.back == view.BodyServer || m.back == view.BodyAgents {
		// These are one step from the list.
	} else {
		m.back = view.BodyList
	}
	s.Body, s.Switch = view.BodySwitch, p
	return m.askServers()
}

// askServers begins a preflight of every server for the pane's agent.
func (m *model) askServers() tea.Cmd {
	p := m.screen.Switch
	m.ask++
	ask, agent := m.ask, p.Agents[p.Agent]
	p.Filter, p.Cursor = "", 0
	m.checks = map[string]view.Check{}
	var cmds []tea.Cmd
	for i := range m.screen.Status.Servers {
		name := m.screen.Status.Servers[i].Name
		m.checks[name] = view.Check{State: view.CheckAsked}
		cmds = append(cmds, m.call(func(ctx context.Context) tea.Msg {
			return checkMsg{ask, name, checked(m.source.Preflight(ctx, name, agent))}
		}))
	}
	m.arrangeSwitch()
	for i := range p.Items { // begin on what would change something
		if p.Items[i].Name != p.Before {
			p.Cursor = i
			break
		}
	}
	return tea.Batch(cmds...)
}

// checked is what a server answered, as panes show it.
func checked(result view.Preflight, err error) view.Check {
	if err != nil {
		return view.Check{State: view.CheckFailed, Error: sentence(err)}
	}
	return view.Check{State: view.CheckDone, Result: &result}
}

// arrangeSwitch fills the pane from what is known now.
func (m *model) arrangeSwitch() {
	p := m.screen.Switch
	agent := p.Agents[p.Agent]
	p.Before, p.Stay = view.Own, m.known.stay(agent, m.now())
	own := "its own upstream"
	for i := range m.screen.Status.Agents {
		if a := &m.screen.Status.Agents[i]; a.Agent == agent {
			if a.Server != "" {
				p.Before = a.Server
			}
			switch a.Upstream {
			case "":
			case "none":
				own = "no own upstream: new conversations would be refused"
			default:
				own = "its own upstream, " + a.Upstream
			}
		}
	}
	all := make([]view.Choice, 0, len(m.screen.Status.Servers)+1)
	names := make([]string, 0, cap(all))
	for i := range m.screen.Status.Servers {
		name := m.screen.Status.Servers[i].Name
		all = append(all, view.Choice{Name: name, Check: m.checks[name]})
		names = append(names, name)
	}
	all, names = append(all, view.Choice{Name: view.Own, Note: own}), append(names, view.Own)
	p.Items = p.Items[:0]
	for _, i := range fuzzy(p.Filter, names) {
		p.Items = append(p.Items, all[i])
	}
	p.Cursor = min(max(p.Cursor, 0), max(len(p.Items)-1, 0))
}

// switchKey handles a key of the pane: letters go to its filter.
func (m *model) switchKey(k tea.KeyMsg) tea.Cmd {
	p := m.screen.Switch
	switch k.Type {
	case tea.KeyEsc:
		m.closePane()
	case tea.KeyEnter:
		return m.applySwitch()
	case tea.KeyTab, tea.KeyRight:
		p.Agent = (p.Agent + 1) % len(p.Agents)
		return m.askServers()
	case tea.KeyShiftTab, tea.KeyLeft:
		p.Agent = (p.Agent + len(p.Agents) - 1) % len(p.Agents)
		return m.askServers()
	case tea.KeyUp, tea.KeyCtrlP:
		p.Cursor = max(p.Cursor-1, 0)
	case tea.KeyDown, tea.KeyCtrlN:
		p.Cursor = min(p.Cursor+1, max(len(p.Items)-1, 0))
	case tea.KeyBackspace, tea.KeyCtrlH:
		p.Filter = shortened(p.Filter)
	case tea.KeyCtrlU:
		p.Filter = ""
	case tea.KeyRunes, tea.KeySpace:
		p.Filter, p.Cursor = typed(p.Filter, k.Runes), 0
	}
	return nil
}

// closePane goes back from a pane that asks something.
func (m *model) closePane() {
	s := &m.screen
	m.ask++ // answers to come are of no use
	s.Body, m.back = m.back, view.BodyList
	s.Switch, s.Move, s.Remove = nil, nil, nil
}

// applySwitch tells the proxy.
func (m *model) applySwitch() tea.Cmd {
	p := m.screen.Switch
	if p.Busy || p.Cursor >= len(p.Items) {
		return nil
	}
	agent, server := p.Agents[p.Agent], p.Items[p.Cursor].Name
	if server == p.Before {
		m.closePane()
		m.say("new " + agent + " conversations go to " + server + " already")
		return nil
	}
	p.Busy = true
	return m.use(agent, server, false)
}

// use sets an agent's server; own is not routed.
func (m *model) use(agent, server string, undone bool) tea.Cmd {
	if server == view.Own {
		server = ""
	}
	return m.call(func(ctx context.Context) tea.Msg {
		change, err := m.source.Use(ctx, agent, server)
		return switchedMsg{change, err, undone}
	})
}

func (m *model) switchMsg(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case checkMsg:
		if msg.ask == m.ask && m.screen.Switch != nil {
			m.checks[msg.server] = msg.check
		}
	case switchedMsg:
		return m.switched(msg)
	}
	return nil
}

// switched tells what the switch did, and asks the proxy where things are.
func (m *model) switched(msg switchedMsg) tea.Cmd {
	if msg.err != nil {
		if m.screen.Switch != nil {
			m.screen.Switch.Busy = false
		}
		m.fail(msg.err)
		return nil
	}
	if m.screen.Body == view.BodySwitch {
		m.closePane()
	}
	c := msg.change
	server := c.Server
	if server == "" {
		server = view.Own
	}
	m.undo = &undo{c.Agent, c.Server, c.Before}
	if msg.undone {
		m.undo = nil
	}
	for i := range m.base.Agents { // at once, not when the status comes
		if m.base.Agents[i].Agent == c.Agent {
			m.base.Agents[i].Server = c.Server
		}
	}
	text := view.SwitchSentence(c.Agent, server, c.Stay)
	if msg.undone {
		text = "taken back: " + text
	}
	m.note(view.Notice{Text: text, Undo: m.undo != nil}, alarmFor)
	return m.askStatus()
}

// undoSwitch takes the last switch back, unless somebody has switched since.
func (m *model) undoSwitch() tea.Cmd {
	u := m.undo
	if u == nil {
		m.say("there is no switch to undo")
		return nil
	}
	for i := range m.base.Agents {
		if a := &m.base.Agents[i]; a.Agent == u.agent && a.Server != u.server {
			m.undo = nil
			m.say("new " + u.agent + " conversations go elsewhere by now; nothing was undone")
			return nil
		}
	}
	m.undo = nil
	server := u.before
	if server == "" {
		server = view.Own
	}
	return m.use(u.agent, server, true)
}
