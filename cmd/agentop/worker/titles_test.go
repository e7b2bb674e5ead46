package worker

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"agentop/router/control"
	"agentop/router/fakeserver"
)

// A screen that is open hides its titles when config.yaml says so, and shows
// them again.
func TestTitlesOffIsToldToWhoeverReadsEvents(t *testing.T) {
	server := fakeserver.New(fakeserver.Options{Name: "a"})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const yaml = `
titles: %s
servers:
  a: {url: %s, key: none}
agents:
  claude-code: {server: a, upstream: none}
`
	r := start(t, yaml, "on", server.URL())
	if got := r.turn("s1", "claude-opus-5-5"); got != http.StatusOK {
		t.Fatalf("the turn got %d", got)
	}
	events, err := r.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	shows := func(want string) {
		t.Helper()
		for {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind != control.EventSnapshot {
				continue
			}
			if len(e.Sessions) != 1 || e.Sessions[0].Title != want {
				t.Fatalf("a snapshot of %+v, want one conversation with the title %q", e.Sessions, want)
			}
			return
		}
	}
	shows("hi")
	for _, c := range []struct{ titles, title string }{{"off", ""}, {"on", "hi"}} {
		if err := os.WriteFile(r.home.Config(), fmt.Appendf(nil, "listen: 127.0.0.1:0\n"+yaml, c.titles, server.URL()), 0o600); err != nil {
			t.Fatal(err)
		}
		shows(c.title)
	}
}
