package tui

import (
	"context"
	"errors"

	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// The messages of a move.
type (
	priceMsg struct {
		ask   int
		price view.MovePrice
		err   error
	}
	movedMsg struct {
		session view.Session
		err     error
	}
)

// openMove shows the places to which a conversation could go.
func (m *model) openMove(row *view.Session) tea.Cmd {
	s := &m.screen
	if s.Link.State != view.LinkUp {
		m.fail(errors.New("nothing can be moved while no proxy answers"))
		return nil
	}
	copied := *row
	p := &view.MovePane{Session: &copied}
	for i := range s.Status.Servers {
		if name := s.Status.Servers[i].Name; name != placeName(row.Server) {
			p.Items = append(p.Items, name)
		}
	}
	if row.Server != view.Own {
		p.Items = append(p.Items, view.Own)
	}
	m.back = s.Body
	s.Body, s.Move = view.BodyMove, p
	return m.askPrice()
}

// named is a conversation in a sentence.
func named(c *view.Session) string {
	title := []rune(c.Title)
	switch {
	case len(title) == 0:
		return "it"
	case len(title) > 40:
		return `"` + string(title[:40]) + `..."`
	}
	return `"` + c.Title + `"`
}

// placeName is the server of a place, a pool without its member.
func placeName(place string) string {
	for i := range len(place) {
		if place[i] == '/' {
			return place[:i]
		}
	}
	return place
}

// askPrice asks what the move under the cursor would cost.
func (m *model) askPrice() tea.Cmd {
	p := m.screen.Move
	p.Price, p.Error, p.Armed = nil, "", false
	if p.Cursor >= len(p.Items) {
		return nil
	}
	m.ask++
	ask, key, to := m.ask, p.Session.Key(), p.Items[p.Cursor]
	return m.call(func(ctx context.Context) tea.Msg {
		price, err := m.source.MovePrice(ctx, key, to)
		return priceMsg{ask, price, err}
	})
}

// moveKey handles a key of the pane. A move is asked for twice: enter, then y.
func (m *model) moveKey(name string) tea.Cmd {
	p := m.screen.Move
	if p.Busy {
		if name == "esc" {
			m.closePane()
		}
		return nil
	}
	if p.Armed {
		if name != "y" {
			p.Armed = false
			return nil
		}
		p.Busy = true
		key, to := p.Session.Key(), p.Items[p.Cursor]
		return m.call(func(ctx context.Context) tea.Msg {
			session, err := m.source.Move(ctx, key, to)
			return movedMsg{session, err}
		})
	}
	switch name {
	case "esc", "q":
		m.closePane()
	case "enter":
		p.Armed = p.Price != nil // without its price nothing is moved
	default:
		if to := moved(name, p.Cursor, len(p.Items), 10); to != p.Cursor {
			p.Cursor = to
			return m.askPrice()
		}
	}
	return nil
}

func (m *model) moveMsg(msg tea.Msg) tea.Cmd {
	p := m.screen.Move
	switch msg := msg.(type) {
	case priceMsg:
		if p == nil || msg.ask != m.ask {
			return nil
		}
		if msg.err != nil {
			p.Error = sentence(msg.err)
			return nil
		}
		p.Price = &msg.price
	case movedMsg:
		if msg.err != nil {
			if p != nil {
				p.Busy, p.Armed = false, false
			}
			m.fail(msg.err)
			return nil
		}
		if m.screen.Body == view.BodyMove {
			m.closePane()
		}
		if m.known.all[msg.session.Key()] != nil {
			m.known.all[msg.session.Key()] = &msg.session
		}
		m.say(named(&msg.session) + " is on " + msg.session.Server + " from its next turn on")
		return m.askStatus()
	}
	return nil
}
