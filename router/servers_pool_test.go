package router

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

// poolRig is a router over a pool of fakes.
type poolRig struct {
	*rig
	members []*fakeserver.Server
}

// newPoolRig starts a pool; script may be nil. Each member takes two requests
// at once, and the second one costs more.
func newPoolRig(t *testing.T, size int, headroom string, script func(member int, rec *fakeserver.Record) fakeserver.Behaviour) *poolRig {
	t.Helper()
	p := &poolRig{}
	var list []string
	for i := range size {
		opts := fakeserver.Options{Name: fmt.Sprintf("m%d", i)}
		if script != nil {
			opts.Script = func(rec *fakeserver.Record) fakeserver.Behaviour { return script(i, rec) }
		}
		s := fakeserver.New(opts)
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		p.members = append(p.members, s)
		list = append(list, fmt.Sprintf("{url: %s, capacity: 2, cost: %d}", s.URL(), i+1))
	}
	p.rig = newRig(t, `
servers:
  lab: {key: none, headroom: %s, pool: [%s]}
agents:
  claude-code: {server: lab, upstream: none}
`, headroom, strings.Join(list, ", "))
	return p
}

func (p *poolRig) place(member int) string {
	return "lab/" + p.config().Servers[0].Pool[member].Name
}

// turn sends a turn of a session and returns where it went.
func (p *poolRig) turn(session string) string {
	p.t.Helper()
	res, text := p.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader(session))
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("turn of %s: %d %s", session, res.StatusCode, text)
	}
	return placeOf(res)
}

func placeOf(res *http.Response) string {
	_, server, _ := strings.Cut(res.Header.Get(RouteHeader), "server=")
	return server
}

// TestPoolTakesCapacityAndHeadroomFromTheConfiguration fills the cheap member
// and watches when the next conversations and the bound one go elsewhere.
func TestPoolTakesCapacityAndHeadroomFromTheConfiguration(t *testing.T) {
	hold := make(chan struct{})
	p := newPoolRig(t, 2, "2", func(_ int, rec *fakeserver.Record) fakeserver.Behaviour {
		if strings.HasPrefix(rec.Header.Get("X-Claude-Code-Session-Id"), "held") {
			return fakeserver.Behaviour{Hold: hold}
		}
		return fakeserver.Behaviour{}
	})
	if got := p.turn("s1"); got != p.place(0) {
		t.Fatalf("the first conversation went to %s, want the cheap %s", got, p.place(0))
	}
	var wait sync.WaitGroup
	occupy := func(session string, at int, n int) {
		wait.Go(func() {
			_, _, _ = p.try("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader(session))
		})
		for p.router.load.at(p.place(at)) < n {
			// Spin until it is on its way; nothing but the scheduler is waited for.
		}
	}
	// One of two places is taken: the other member has twice the room, which
	// is what headroom asks.
	occupy("held1", 0, 1)
	if got := p.turn("s2"); got != p.place(1) {
		t.Errorf("with half the room at the cheap member a new conversation went to %s, want %s", got, p.place(1))
	}
	occupy("held2", 1, 1)
	// Equal room: the cheaper one, and the bound one stays.
	if got := p.turn("s3"); got != p.place(0) {
		t.Errorf("with equal room a new conversation went to %s, want %s", got, p.place(0))
	}
	if got := p.turn("s2"); got != p.place(1) {
		t.Errorf("with equal room the bound conversation went to %s, want %s", got, p.place(1))
	}
	close(hold)
	wait.Wait()
	if n := p.router.load.total(); n != 0 {
		t.Errorf("%d requests are counted as in flight after all have ended", n)
	}
}

// TestPoolCountsAreNeverWrong cancels requests at random moments of their
// lives: in the end nothing is in flight, and never less than nothing.
func TestPoolCountsAreNeverWrong(t *testing.T) {
	p := newPoolRig(t, 3, "2", func(_ int, rec *fakeserver.Record) fakeserver.Behaviour {
		return fakeserver.Behaviour{Interval: time.Millisecond, Events: int(rec.N % 20)}
	})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var wait sync.WaitGroup
	for i := range 150 {
		after := time.Duration(random.IntN(12)) * time.Millisecond
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			if i%3 == 0 {
				ctx, cancel = context.WithCancel(t.Context())
			}
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/claude-code/v1/messages", strings.NewReader(claudeBody(user("hi"))))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header = claudeHeader(fmt.Sprintf("s%d", i%40))
			if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			p.router.load.mu.Lock()
			defer p.router.load.mu.Unlock()
			for place, n := range p.router.load.n {
				if n <= 0 {
					t.Errorf("%d requests are counted at %s", n, place)
				}
			}
		})
	}
	wait.Wait()
	waitFor(t, "nothing to be in flight", func() bool {
		p.router.load.mu.Lock()
		defer p.router.load.mu.Unlock()
		return len(p.router.load.n) == 0
	})
}

// TestPoolRefusedMember holds that a refused connection, and it alone, sends
// the same request to another member.
func TestPoolRefusedMember(t *testing.T) {
	p := newPoolRig(t, 2, "2", nil)
	if got := p.turn("s1"); got != p.place(0) {
		t.Fatalf("went to %s", got)
	}
	_ = p.members[0].Close()
	if got := p.turn("s1"); got != p.place(1) {
		t.Errorf("with its member down the turn went to %s, want %s", got, p.place(1))
	}
	if n := p.meter.count("member"); n != 1 {
		t.Errorf("%d pin writes for the move, want 1", n)
	}
	// The client has its answer a moment before the request is counted out.
	waitFor(t, "no request to be counted, at the member that refused either", func() bool { return p.router.load.total() == 0 })
	p.restart()
	if got := p.turn("s1"); got != p.place(1) {
		t.Errorf("after a restart the turn went to %s, want %s: the pin names the member", got, p.place(1))
	}
}

// TestPoolBrokenMember holds that after any other failure the request is not
// sent again, and that the conversation's next one moves.
func TestPoolBrokenMember(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	p := newPoolRig(t, 2, "2", func(member int, _ *fakeserver.Record) fakeserver.Behaviour {
		if member == 0 && broken.Load() {
			return fakeserver.Behaviour{Raw: func(c net.Conn, _ *fakeserver.Record) { _ = c.Close() }}
		}
		return fakeserver.Behaviour{}
	})
	res, text := p.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s1"))
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "was not sent again") {
		t.Errorf("the broken turn: %d %s", res.StatusCode, text)
	}
	if n := p.members[1].Arrivals(); n != 0 {
		t.Errorf("the broken request was sent to another member too")
	}
	if got := p.turn("s1"); got != p.place(1) {
		t.Errorf("the next turn went to %s, want %s", got, p.place(1))
	}
	broken.Store(false)
	if got := p.turn("s1"); got != p.place(1) {
		t.Errorf("it went back to %s at once", got)
	}
}

// TestPinWritesAreFew holds when a pin is written: to set, move or renew it.
func TestPinWritesAreFew(t *testing.T) {
	p := newPoolRig(t, 2, "2", nil)
	for range 20 {
		p.turn("s1")
	}
	for reason, want := range map[string]int{"new": 1, "member": 0, "model": 0, "renew": 0, "move": 0} {
		if got := p.meter.count(reason); got != want {
			t.Errorf("%d pin writes for %q after 20 turns, want %d", got, reason, want)
		}
	}
	p.later.Store(int64(25 * time.Hour))
	p.turn("s1")
	p.turn("s1")
	if got := p.meter.count("renew"); got != 1 {
		t.Errorf("%d renewals after a day, want 1", got)
	}
	if err := p.router.Move(t.Context(), p.router.Conversation("claude-code", "s1"), "lab"); err != nil {
		t.Fatal(err)
	}
	if got := p.meter.count("move"); got != 1 {
		t.Errorf("%d writes for a move, want 1", got)
	}
}

// TestPoolPinIsHard holds that a conversation of a pool stays in the pool when
// the agent's choice is another server.
func TestPoolPinIsHard(t *testing.T) {
	p := newPoolRig(t, 2, "2", nil)
	p.turn("s1")
	other := fakeserver.New(fakeserver.Options{Name: "other"})
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	p.configure(`
servers:
  lab: {key: none, pool: [{url: %s}, {url: %s}]}
  other: {url: %s, key: none}
agents:
  claude-code: {server: other, upstream: none}
`, p.members[0].URL(), p.members[1].URL(), other.URL())
	if got := p.turn("s1"); !strings.HasPrefix(got, "lab/") {
		t.Errorf("went to %s, want a member of lab", got)
	}
	for _, m := range p.members {
		_ = m.Close()
	}
	res, text := p.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s1"))
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "agentop: ") || other.Arrivals() != 0 {
		t.Errorf("with the whole pool down: %d %s, and %d requests at another server", res.StatusCode, text, other.Arrivals())
	}
}
