//go:build linux

package chaos

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/fakeserver"
)

// logSize is the size of all files of the request log, in bytes.
func (s *stage) logSize() (n int64) {
	for _, path := range s.match("log/requests-*") {
		if info, err := os.Stat(path); err == nil {
			n += info.Size()
		}
	}
	return n
}

// The request log of a small disk leaves room for pins: each opening is saved,
// however many requests there are.
func TestLogOnASmallDisk(t *testing.T) {
	if missing := mounting(); missing != "" {
		testkit.Lacks(t, missing)
	}
	s := newStage(t, stageOptions{size: "10m"})
	quick := func(string, *fakeserver.Record) fakeserver.Behaviour { return fakeserver.Behaviour{Text: "ok"} }
	s.script.Store(&quick)
	requests := 2000
	if full {
		requests = 20_000 // some 10 MB of lines, in less time than upkeep takes turns
	}
	in(requests, 16, func(i int) {
		c := &talk{client: &clients[i%len(clients)], id: fmt.Sprintf("small-%d-%s", i%300, strings.Repeat("x", 200))}
		if _, _, err := s.send(c, []message{{"user", c.id}}); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	})
	s.until("everything is saved", 3*time.Minute, func() bool {
		st, ok := s.status()
		return ok && st.Store.Error == "" && st.Store.Unsaved == 0 && st.Log.Error == ""
	})
	if full {
		s.until("the log has given room back", 3*time.Minute, func() bool { return s.logSize() < 2<<20 })
	}
	t.Logf("the log has %d bytes after %d requests", s.logSize(), requests)
}

// One program that opens far more conversations than are kept: bounded, and
// the latest ones are there.
func TestManyConversationsOfOneClient(t *testing.T) {
	n := 3000
	if full {
		n = 100_000
	}
	s := newStage(t, stageOptions{})
	quick := func(string, *fakeserver.Record) fakeserver.Behaviour { return fakeserver.Behaviour{Text: "ok"} }
	s.script.Store(&quick)
	began := time.Now()
	in(n, 64, func(i int) {
		c := &talk{client: &clients[0], id: fmt.Sprint("many-", i)}
		if _, _, err := s.send(c, []message{{"user", c.id}}); err != nil {
			t.Errorf("opening %d: %v", i, err)
		}
	})
	h := s.holds(s.worker())
	st, _ := s.status()
	t.Logf("%d openings in %s: %d pins, memory %d kB", n, time.Since(began).Round(time.Second), st.Store.Pins, h.rss)
	if st.Store.Pins > 65_536 || st.Store.Pins < min(n, 60_000) {
		t.Errorf("%d pins of %d conversations", st.Store.Pins, n)
	}
	if h.rss > 1<<20 {
		t.Errorf("memory: %d kB", h.rss)
	}
	s.switchOver()
	s.until("the other choice is in force", patience, func() bool {
		st, ok := s.status()
		return ok && len(st.Agents) > 0 && st.Agents[0].Server == s.choice
	})
	for _, i := range []int{0, n / 2, n - 1} {
		c := &talk{client: &clients[0], id: fmt.Sprint("many-", i)}
		if _, route, err := s.send(c, []message{{"user", c.id}, {"assistant", "ok"}, {"user", "go on"}}); err != nil || !strings.Contains(route, "server=a") {
			t.Errorf("conversation %d: route %q, %v", i, route, err)
		}
	}
}
