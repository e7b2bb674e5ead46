package tui

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentop/tui/view"
)

type listStream struct {
	events []Event
	err    error
}

func (s *listStream) Next() (Event, error) {
	if len(s.events) == 0 {
		return Event{}, s.err
	}
	e := s.events[0]
	s.events = s.events[1:]
	return e, nil
}

func (s *listStream) Close() error { return nil }

func TestInboxGivesAllBeforeTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := errors.New("ended")
		in := newInbox()
		in.fill(&listStream{events: []Event{{Warning: "one"}, {Warning: "two"}}, err: end})
		b, err := in.take(t.Context())
		if err != nil || len(b.warnings) != 2 {
			t.Errorf("got %v, %v, want both warnings", b.warnings, err)
		}
		if _, err := in.take(t.Context()); !errors.Is(err, end) {
			t.Errorf("got %v, want %v", err, end)
		}
	})
}

func TestInboxErrorDuringTheWaitForAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox()
		events := make(chan Event, 1)
		events <- Event{Warning: "one"}
		go in.fill(fakeStream{t.Context(), events})
		if _, err := in.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { events <- Event{Warning: "two"}; time.Sleep(frameTime / 2); close(events) }()
		b, err := in.take(t.Context())
		if err != nil || len(b.warnings) != 1 {
			t.Errorf("got %v, %v, want the second warning", b.warnings, err)
		}
		if _, err := in.take(t.Context()); err == nil {
			t.Errorf("no error after the end")
		}
	})
}

func TestInboxEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newInbox().take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestBatchKeepsTheLastState(t *testing.T) {
	key := view.Key{Agent: "a", ID: "1"}
	s := func(turns int) Event { return Event{Sessions: []view.Session{{Agent: "a", ID: "1", Turns: turns}}} }
	for _, c := range []struct {
		name   string
		events []Event
		turns  int // 0: not there
		gone   bool
	}{
		{"last wins", []Event{s(1), s(2)}, 2, false},
		{"gone after", []Event{s(1), {Gone: &key}}, 0, true},
		{"back after gone", []Event{{Gone: &key}, s(3)}, 3, false},
		{"snapshot forgets", []Event{s(1), {Gone: &key}, {Snapshot: true}}, 0, false},
		{"after a snapshot", []Event{{Snapshot: true}, s(4)}, 4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b batch
			for _, e := range c.events {
				b.add(e)
			}
			if got := b.sessions[key].Turns; got != c.turns || b.gone[key] != c.gone {
				t.Errorf("got %d turns, gone %v; want %d, %v", got, b.gone[key], c.turns, c.gone)
			}
		})
	}
}

func TestBatchIsBounded(t *testing.T) {
	var b batch
	for range 10 * maxLog {
		b.add(Event{Request: &view.Request{}, Warning: "w"})
	}
	if len(b.requests) > 2*maxLog || len(b.warnings) > maxWarnings {
		t.Errorf("%d requests and %d warnings wait", len(b.requests), len(b.warnings))
	}
}
