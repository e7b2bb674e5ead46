package e2e

import (
	"testing"
	"time"

	"agentop/router/control"
)

// A connection that was idle at a hand-over still leads to the worker before.
// What the user did meanwhile through the new one must hold there too.
func TestAMoveHoldsInTheWorkerThatDrains(t *testing.T) {
	s := newStage(t)
	c := s.control()
	first := s.status(c, func(control.Status) bool { return true })
	moved := &keeper{address: s.address, session: "moved"}
	defer moved.hangUp()
	s.mark()
	if l := moved.request(time.Now()); l.err != nil {
		t.Fatal(l.err)
	}
	s.expectAll("the opening", "a")
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.status(c, func(now control.Status) bool { return now.PID != first.PID && len(now.Draining) == 1 })
	s.agentop("sessions", "move", "moved", "b", "--yes")
	s.mark()
	before := moved.conn
	if l := moved.request(time.Now()); l.err != nil || before == nil {
		t.Fatalf("the last answer of the worker before: %v", l.err)
	}
	if moved.conn != nil {
		t.Fatal("the connection was kept: it led to no worker that drains, and the test shows nothing")
	}
	// The history has one of a's replies no more than the request does.
	if a, b := len(s.since("a")), len(s.since("b")); a != 0 || b != 1 {
		t.Errorf("after the move %d requests went to a and %d to b, want 0 and 1", a, b)
	}
	s.status(c, func(now control.Status) bool { return len(now.Draining) == 0 })
}
