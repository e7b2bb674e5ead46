package screen

import (
	"bytes"
	"strings"
	"testing"
)

// A conversation that streams while the proxy is restarted goes on in the
// worker before: the screen says so, and that it is over when it is.
func TestScreenShowsWhatAnOldWorkerFinishes(t *testing.T) {
	s := newStage(t)
	_, release := s.hold()
	defer release()
	term := newTerminal(t, 120, 40, screen(s.home))
	term.shows("● proxy runs")
	streamed := make(chan string, 1)
	go func() {
		route, answer, err := s.turn("44444444-0000-4000-8000-000000000004")
		if err != nil || !bytes.Contains(answer, []byte("message_stop")) {
			route = "cut: " + route
		}
		streamed <- route
	}()
	term.shows("1 running, 1 streaming", "● streaming")
	s.agentop("service", "restart")
	term.shows("1 running 1 finishing", "● finishing")
	if list := s.agentop("sessions"); !strings.Contains(list, "finishing") {
		t.Errorf("agentop sessions says\n%s", list)
	}
	term.keys("w")
	term.shows("accepts nothing more since", "and finishes 1")
	term.keys("Escape")
	release()
	if route := <-streamed; !strings.Contains(route, "server=a") || strings.HasPrefix(route, "cut") {
		t.Errorf("the stream during the hand-over: %s", route)
	}
	term.shows("1 running dev", "idle")
}
