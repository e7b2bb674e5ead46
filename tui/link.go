package tui

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// link is the connection to the proxy's event stream.
type link struct {
	inbox *inbox // of the open stream, nil for none
	tries int    // since it was up
}

// The messages of the link.
type (
	connectedMsg struct{ inbox *inbox }
	retryMsg     struct{}
	startedMsg   struct{ err error }
)

// startFor is how long a proxy may take to start.
const startFor = 20 * time.Second

// connect opens the event stream.
func (m *model) connect() tea.Cmd {
	ctx := m.ctx
	return guarded(func() tea.Msg {
		stream, err := m.source.Subscribe(ctx)
		if err != nil {
			return endedMsg{nil, err}
		}
		in := newInbox()
		go in.fill(stream)
		return connectedMsg{in}
	})
}

// next waits for a batch of events.
func (m *model) next(in *inbox) tea.Cmd {
	ctx := m.ctx
	return guarded(func() tea.Msg {
		b, err := in.take(ctx)
		if err != nil {
			return endedMsg{in, err}
		}
		return batchMsg{in, b}
	})
}

// retryAfter is how long to wait before the stream is opened again: at once
// after it ended, since a restart hands over to a proxy that is ready.
func retryAfter(tries int) time.Duration {
	return min(time.Duration(tries)*250*time.Millisecond, time.Second)
}

func (m *model) linkMsg(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case connectedMsg:
		m.link = link{inbox: msg.inbox}
		return tea.Batch(m.next(msg.inbox), m.askLog())
	case batchMsg:
		if msg.of != m.link.inbox {
			return nil
		}
		m.takeBatch(&msg.batch)
		return m.next(msg.of)
	case endedMsg:
		if msg.of != m.link.inbox {
			return nil
		}
		return m.lost(msg.err)
	case retryMsg:
		return m.connect()
	case startedMsg:
		if msg.err != nil {
			m.screen.Link.State = view.LinkStopped
			m.fail(fmt.Errorf("the proxy did not start: %w", msg.err))
		}
	}
	return nil
}

// lost notes that the proxy cannot be reached and tries again in a moment.
func (m *model) lost(err error) tea.Cmd {
	if m.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return nil
	}
	l := &m.screen.Link
	var troubled *TroubledError
	wasUp := m.link.inbox != nil
	m.link.inbox = nil
	after := retryAfter(m.link.tries)
	m.link.tries++
	switch {
	case wasUp: // it is told when it cannot be opened again
	case errors.As(err, &troubled):
		l.State, l.Reason, l.PID = view.LinkTroubled, sentence(err), troubled.PID
	case l.State == view.LinkStarting:
	case errors.Is(err, ErrNotRunning):
		l.State, l.Reason = view.LinkStopped, ""
	default:
		l.State, l.Reason = view.LinkLost, sentence(err)
	}
	return tea.Tick(after, func(time.Time) tea.Msg { return retryMsg{} })
}

// takeBatch takes over what happened.
func (m *model) takeBatch(b *batch) {
	m.known.apply(b)
	if b.status != nil {
		m.takeStatus(*b.status)
	}
	if b.snapshot {
		m.screen.Link.State, m.screen.Link.Reason = view.LinkUp, ""
	}
	m.screen.Link.AsOf = m.now()
	m.dirty = m.dirty || len(b.sessions) > 0 || len(b.requests) > 0
	m.addRequests(b.requests)
	for _, text := range b.warnings {
		m.note(view.Notice{Text: text, Bad: true}, alarmFor)
	}
}

// start starts a proxy when none runs.
func (m *model) start() tea.Cmd {
	starter, ok := m.source.(Starter)
	if !ok || m.screen.Link.State != view.LinkStopped {
		return nil
	}
	m.screen.Link.State = view.LinkStarting
	ctx := m.ctx
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, startFor)
		defer cancel()
		return startedMsg{starter.Start(ctx)}
	})
}
