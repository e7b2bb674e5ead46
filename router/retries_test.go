package router

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/placement"
)

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// asAgent sends an opening of each agent's.
func (b *bench) asAgent(agent, session string) *http.Response {
	switch agent {
	case "codex":
		return b.post("/codex/v1/responses", `{"model":"m","stream":true,"tools":[{"type":"function","name":"shell"}],"input":[{"type":"message","role":"user","content":"hello"}]}`,
			http.Header{"User-Agent": {"codex_cli_rs/0.171.0"}, "Session-Id": {session}})
	case "opencode":
		return b.post("/opencode/lab/v1/chat/completions", `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"user","content":"hello"}]}`,
			http.Header{"User-Agent": {"opencode/1.18.33"}, "X-Session-Id": {session}})
	}
	return b.claude(session, user("hello"))
}

// An agent that asks a server in vain is let try for ten seconds, and then
// answered in the way on which it tells its person.
func TestWhoAsksInVainIsToldInTheEnd(t *testing.T) {
	for agent, last := range map[string]int{"claude-code": 503, "codex": 400, "opencode": 503} {
		t.Run(agent, func(t *testing.T) {
			b := newBench(t, nil)
			c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			b.router.Now = c.now
			url := b.servers["a"].URL()
			_ = b.servers["a"].Close()
			ask := func(what, session string, status int, retry string) {
				t.Helper()
				res := b.asAgent(agent, session)
				body := read(t, res)
				if !strings.Contains(body, `server \"a\" does not answer`) || res.StatusCode != status || res.Header.Get("X-Should-Retry") != retry {
					t.Errorf("%s: %d, X-Should-Retry %q, %s; want %d and %q", what, res.StatusCode, res.Header.Get("X-Should-Retry"), body, status, retry)
				}
				if after := res.Header.Get("Retry-After"); (after != "") != (status == 503) {
					t.Errorf("%s: Retry-After %q with %d", what, after, status)
				}
			}
			finally := ""
			if last == 503 {
				finally = "false"
			}
			ask("at first", "s1", 503, "")
			c.add(9 * time.Second)
			ask("after 9 s", "s1", 503, "")
			c.add(time.Second)
			ask("another conversation", "s2", 503, "")
			ask("after 10 s", "s1", last, finally)
			ask("the person tries once more", "s1", 503, "")
			c.add(retryGap + time.Second)
			ask("and again after a while", "s1", 503, "")
			c.add(time.Second)

			b.only(b.servers["b"].URL(), "key: none") // it is back
			if res := b.asAgent(agent, "s1"); res.StatusCode != 200 {
				t.Errorf("with the server there: %d", res.StatusCode)
			} else {
				read(t, res)
			}
			b.only(url, "key: none")
			c.add(9 * time.Second)
			ask("down once more", "s1", 503, "")
		})
	}
}

// What clients can make agentop remember of themselves is bounded.
func TestRetriesAreBounded(t *testing.T) {
	p, now := newRetries(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	who := func(i int) asking {
		return asking{placement.Conversation{Agent: agents.Codex, Session: fmt.Sprint(i)}, "a"}
	}
	for i := range 2 * maxSpells {
		p.failed(who(i), now, now)
	}
	if n := len(p.spells); n != maxSpells {
		t.Errorf("%d spells, want %d", n, maxSpells)
	}
	now = now.Add(retryFor)
	if !p.failed(who(0), now, now) {
		t.Error("a full table forgot who was in it")
	}
	now = now.Add(retryGap + time.Second)
	p.failed(who(-1), now, now)
	p.failed(who(-2), now, now)
	if n := len(p.spells); n != 2 {
		t.Errorf("%d spells after a while, want 2", n)
	}
	p.answered(who(-1))
	p.answered(who(-2))
	if n := len(p.spells); n != 0 || p.some.Load() {
		t.Errorf("%d spells after an answer, want none", n)
	}
}
