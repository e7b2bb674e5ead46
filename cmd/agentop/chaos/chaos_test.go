//go:build linux

package chaos

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/control"
)

// full is the whole campaign instead of its short form.
var full = os.Getenv("AGENTOP_TEST_FULL") != ""

// fault is one way to break what is around agentop.
type fault struct {
	name  string
	brief bool // also in the short form
	needs func() string
	stage stageOptions
	// begin makes the fault; end takes it away. Both are called by the test's
	// goroutine, any number of times in turn.
	begin, end func(*stage)
	// told says whether status tells of the fault; nil where there is nothing
	// that a person would have to know.
	told func(control.Status) bool
	// loud faults make clients see errors or cuts, which they answer by asking again.
	loud bool
}

// row is what a fault did, counted at the servers and the clients.
type row struct {
	fault                   string
	times                   int
	inFlight                int64 // most, when the fault began
	conversations, turns    int64
	lost, moved             int
	refused, errors, broken int64
	recovery                time.Duration // longest
}

// TestChaos lives through each fault under a load of conversations. After each
// no conversation has moved and no pin that was acknowledged is lost, also
// when everything is killed right then; status told of the fault, and all
// agents work again by themselves.
func TestChaos(t *testing.T) {
	var rows []row
	for _, f := range faults() {
		if !f.brief && !full {
			continue
		}
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			if f.needs != nil {
				if missing := f.needs(); missing != "" {
					testkit.Lacks(t, missing)
				}
			}
			rows = append(rows, f.live(t))
		})
	}
	t.Log("\n" + table(rows))
}

// live makes the fault a number of times and counts.
func (f *fault) live(t *testing.T) row {
	clientsAtOnce, times, during := 12, 1, 200*time.Millisecond
	if full {
		clientsAtOnce, times, during = 32, 10, 400*time.Millisecond
	}
	s := newStage(t, f.stage)
	l := s.startLoad(clientsAtOnce)
	r := row{fault: f.name, times: times}
	s.until("each agent has been answered", patience, func() bool { return l.answeredSince(time.Time{}) })
	for range times {
		s.switchOver()
		r.inFlight = max(r.inFlight, l.inFlight.Load())
		f.begin(s)
		if f.told != nil {
			s.until("status tells of it", patience, func() bool { st, ok := s.status(); return ok && f.told(st) })
		}
		time.Sleep(during) // how long the fault lasts
		s.switchOver()
		f.end(s)
		over := time.Now()
		s.until("everything works again", patience, func() bool {
			st, ok := s.status()
			s.seen = st
			return ok && healthy(st) && l.answeredSince(over)
		})
		r.recovery = max(r.recovery, time.Since(over))
	}
	talks := l.finish()
	s.settle(t)
	r.turns, r.conversations = l.turns.Load(), int64(len(talks))
	r.refused, r.errors, r.broken = l.refused.Load(), l.errors.Load(), l.cut.Load()
	r.lost = s.lost(t, talks)
	moved := s.witness.moved()
	r.moved = len(moved)
	if r.lost > 0 || r.moved > 0 || r.refused > 0 {
		t.Errorf("%+v; moved: %v", r, moved[:min(5, len(moved))])
	}
	if !f.loud && (r.errors > 0 || r.broken > 0) {
		t.Errorf("%d errors and %d cuts, want none: %v", r.errors, r.broken, l.texts)
	}
	t.Logf("%+v; %d errors of servers; %v", r, l.server.Load(), l.texts)
	return r
}

// healthy says whether status has nothing to tell. Of the servers it looks at
// the chosen one: what it knows of the other may be the last that it saw.
func healthy(st control.Status) bool {
	chosen := func(s control.Server) bool {
		return len(st.Agents) > 0 && s.Name == st.Agents[0].Server && s.Health.State != "ok"
	}
	return st.Store.Error == "" && st.Store.Unsaved == 0 && st.Store.ReadOnly == "" && st.Log.Error == "" && st.ConfigError == "" &&
		st.Log.Loaded && !slices.ContainsFunc(st.Servers, chosen)
}

// settle waits until all that was acknowledged is on disk.
func (s *stage) settle(t *testing.T) {
	t.Helper()
	s.until("everything is saved", patience, func() bool {
		st, ok := s.status()
		return ok && st.Store.Error == "" && st.Store.Unsaved == 0
	})
}

// lost kills everything, chooses the other server, starts again and lets each
// conversation go on: it is at home only where its pin was kept.
func (s *stage) lost(t *testing.T, talks []*talk) (n int) {
	t.Helper()
	s.kill()
	s.switchOver()
	s.start()
	for _, c := range talks {
		if !s.witness.saw(c.id) {
			continue // no server has seen it: there is nothing to lose
		}
		messages := append(slices.Clone(c.history), message{"user", "after all"})
		_, route, err := s.send(c, messages)
		if err != nil || !strings.Contains(route, "pin=kept;") {
			if n++; n <= 3 {
				t.Logf("%s with %d turns: route %q, %v", c.id, c.turns, route, err)
			}
		}
	}
	return n
}

// table is what docs/security.md shows.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| fault | times | in flight | conversations | turns | lost pins | moved conversations | refused connections | errors shown | cut answers | seconds to recover |\n")
	b.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %.1f |\n", r.fault, r.times, r.inFlight, r.conversations, r.turns,
			r.lost, r.moved, r.refused, r.errors, r.broken, r.recovery.Seconds())
	}
	return b.String()
}
