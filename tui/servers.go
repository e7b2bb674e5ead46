package tui

import (
	"context"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// The messages of the servers' pane.
type (
	testMsg struct {
		server string
		check  view.Check
	}
	planMsg struct {
		agent string
		on    bool
		lines []string
	}
	removedMsg struct {
		server   string
		warnings []string
		err      error
	}
)

// serverKey handles the keys of the chosen server, in its pane and its
// details.
func (m *model) serverKey(name string) tea.Cmd {
	s := &m.screen
	v := s.ChosenServer()
	switch name {
	case "enter":
		if s.Body == view.BodyList {
			m.open(view.BodyServer)
		}
	case "t":
		if v != nil {
			return m.test(v.Name)
		}
	case "n", "+":
		m.show("Add a server", "agentop server add NAME URL",
			"Run it in another terminal; this screen shows the server at once.",
			"It asks for the key without showing it. --key-env NAME takes it from the environment, --key-client uses the agent's own, --no-key needs none.",
			"Example: agentop server add glm https://glm.example.com")
	case "x", "delete":
		if v != nil {
			m.back = s.Body
			s.Body, s.Remove = view.BodyRemove, &view.RemovePane{Server: v.Name}
			s.Scroll = 0
		}
	default:
		if s.Body == view.BodyServer {
			m.scrollKey(name)
			return nil
		}
		s.Server = moved(name, s.Server, len(s.Status.Servers)+1, 10)
	}
	return nil
}

// test asks a server what it can do with one tiny request, and shows the answer in its details.
func (m *model) test(server string) tea.Cmd {
	s := &m.screen
	s.Body, s.Scroll = view.BodyServer, 0
	s.Tests[server] = view.Check{State: view.CheckAsked}
	return m.call(func(ctx context.Context) tea.Msg { return testMsg{server, checked(m.source.Test(ctx, server))} })
}

// removeKey handles the question before a server is removed.
func (m *model) removeKey(name string) tea.Cmd {
	p := m.screen.Remove
	if p.Busy || name != "y" {
		m.closePane()
		return nil
	}
	p.Busy = true
	server := p.Server
	return m.call(func(ctx context.Context) tea.Msg {
		warnings, err := m.source.RemoveServer(ctx, server)
		return removedMsg{server, warnings, err}
	})
}

func (m *model) serverMsg(msg tea.Msg) {
	switch msg := msg.(type) {
	case testMsg:
		m.screen.Tests[msg.server] = msg.check
	case removedMsg:
		if m.screen.Body == view.BodyRemove {
			m.closePane()
			m.screen.Body = view.BodyList
		}
		if msg.err != nil {
			m.fail(msg.err)
			return
		}
		m.dirty = true
		m.say(strings.Join(append([]string{msg.server + " is removed"}, msg.warnings...), "; "))
	}
}

// agentsKey handles the keys of the agents' screen.
func (m *model) agentsKey(name string) tea.Cmd {
	s := &m.screen
	switch name {
	case "e", "d":
		return m.point(name == "e")
	case "enter":
		return m.openSwitch()
	default:
		s.Agent = moved(name, s.Agent, len(s.Status.Agents), 10)
	}
	return nil
}

// point enables or disables the chosen agent.
func (m *model) point(on bool) tea.Cmd {
	s := &m.screen
	if s.Agent >= len(s.Status.Agents) {
		return nil
	}
	agent := s.Status.Agents[s.Agent].Agent
	pointer, ok := m.source.(Pointer)
	if !ok {
		word := "enable"
		if !on {
			word = "disable"
		}
		m.show("Point an agent", "agentop agent "+word+" "+agent, "Run it in another terminal.")
		return nil
	}
	return m.call(func(ctx context.Context) tea.Msg {
		lines, err := pointer.Plan(ctx, agent, on)
		if err != nil {
			return failedMsg{err}
		}
		return planMsg{agent, on, lines}
	})
}

// ask shows what pointing an agent would change, and waits for a yes.
func (m *model) askPoint(msg planMsg) {
	if m.screen.Body != view.BodyAgents {
		return // the user has gone on
	}
	title, question := "Point "+msg.agent+" here", "y writes this; any other key leaves it."
	if !msg.on {
		title = "Take " + msg.agent + " off"
	}
	m.show(title, msg.lines...)
	m.screen.Question, m.pointing = question, &msg
}

// pointKey handles the key after the question.
func (m *model) pointKey(name string) tea.Cmd {
	p := m.pointing
	m.pointing, m.screen.Question = nil, ""
	m.screen.Body, m.back = view.BodyAgents, view.BodyList
	pointer, ok := m.source.(Pointer)
	if name != "y" || !ok {
		return nil
	}
	return m.call(func(ctx context.Context) tea.Msg {
		lines, err := pointer.Point(ctx, p.agent, p.on)
		if err != nil {
			return failedMsg{err}
		}
		return toldMsg{strings.Join(lines, "; ")}
	})
}

// askSetups asks which agents are pointed here.
func (m *model) askSetups() tea.Cmd {
	pointer, ok := m.source.(Pointer)
	if !ok {
		return nil
	}
	return m.call(func(ctx context.Context) tea.Msg {
		list, err := pointer.Setups(ctx)
		if err != nil {
			return failedMsg{err}
		}
		return setupsMsg{list}
	})
}
