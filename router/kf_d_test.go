package router

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"agentop/router/fakeserver"
)

// A stream goes on to its end whatever becomes of the configuration meanwhile;
// what comes after it is placed and sent by the new one, pins as they are.
func TestKF_D9_AReloadCutsNoStream(t *testing.T) {
	yaml := func(b *bench, a, more string) string {
		return fmt.Sprintf("servers:\n  a: {url: %s, key: none%s}\n  b: {url: %s, key: none}\nagents:\n  claude-code: {server: b, upstream: none}\n", a, more, b.servers["b"].URL())
	}
	for _, c := range []struct {
		name   string
		reload func(b *bench) string
		server string // that gets the conversation's next turn
		want   string // in its route or its error
	}{
		{"unrelated", func(b *bench) string { return yaml(b, b.servers["a"].URL(), "") + "titles: off\n" }, "a", "server=a"},
		{"another URL", func(b *bench) string { return yaml(b, b.servers["own"].URL(), "") }, "own", "server=a"},
		{"other settings", func(b *bench) string {
			return yaml(b, b.servers["a"].URL(), ", first_byte_timeout: 1s, session_header: x-some-id")
		}, "a", "server=a"},
		{"removed", func(b *bench) string {
			return fmt.Sprintf("servers:\n  b: {url: %s, key: none}\nagents:\n  claude-code: {server: b, upstream: none}\n", b.servers["b"].URL())
		}, "", `server "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			step := make(chan struct{})
			b := newBench(t, func(server string, rec *fakeserver.Record) fakeserver.Behaviour {
				if len(rec.History) > 0 || server != "a" {
					return fakeserver.Behaviour{}
				}
				return fakeserver.Behaviour{Gate: func(i int) {
					if i > 0 {
						<-step
					}
				}}
			})
			res := b.claude("s1", user("hello"))
			r := bufio.NewReader(res.Body)
			first := event(t, r)
			b.configure(c.reload(b))
			if got := b.claude("s2", user("another")).Header.Get(RouteHeader); !strings.Contains(got, "server=b") {
				t.Errorf("a new conversation after the reload: %s", got)
			}
			close(step)
			all := first
			for !strings.Contains(all, "message_stop") {
				all += event(t, r) // fails where the stream was cut
			}
			if want := string(b.last("a").Answer); all != want {
				t.Errorf("the stream came as\n%s\nwant\n%s", all, want)
			}
			before := map[string]int{}
			for name, s := range b.servers {
				before[name] = s.Arrivals()
			}
			next := b.claude("s1", user("hello")+","+assistant("as you said")+","+user("go on"))
			if got := next.Header.Get(RouteHeader) + strings.ReplaceAll(read(t, next), `\"`, `"`); !strings.Contains(got, c.want) {
				t.Errorf("the next turn: %s, want %s", got, c.want)
			}
			for name, s := range b.servers {
				want := 0
				if name == c.server {
					want = 1
				}
				if got := s.Arrivals() - before[name]; got != want {
					t.Errorf("%s got %d requests, want %d", name, got, want)
				}
			}
		})
	}
}
