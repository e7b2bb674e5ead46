package router

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"agentop/router/fakeserver"
)

func TestPromise1_NeverMoved(t *testing.T) {
	b := newBench(t, nil)
	read(t, b.claude("s1", user("hello")))
	b.choose("b")
	for _, messages := range []string{
		user("hello") + "," + assistant("hi") + "," + user("go on"),
		user("after a rewind to the first message"),
	} {
		res := b.claude("s1", messages)
		read(t, res)
		if got := res.Header.Get(RouteHeader); !strings.Contains(got, "pin=kept; server=a") {
			t.Errorf("route of a continuation = %q, want it kept on a", got)
		}
	}
	res := b.claude("s2", user("hello"))
	read(t, res)
	if got, want := res.Header.Get(RouteHeader), "agent=claude-code; session=s2; turn=opening; pin=new; server=b"; got != want {
		t.Errorf("route of a new conversation = %q, want %q", got, want)
	}
	if got := b.servers["a"].Arrivals(); got != 3 {
		t.Errorf("a got %d requests, want 3", got)
	}
	if got := b.servers["b"].Arrivals(); got != 1 {
		t.Errorf("b got %d requests, want 1", got)
	}
}

func TestPromise2_DurableBeforeSent(t *testing.T) {
	b := newBench(t, nil)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release() // also where the test fails: the server waits for its requests
	entered := make(chan struct{})
	var once sync.Once
	b.pins.before = func() { once.Do(func() { close(entered) }); <-hold }

	done := make(chan *http.Response, 2)
	go func() { done <- b.claude("s1", user("hello")) }()
	select {
	case <-entered:
	case res := <-done:
		t.Fatalf("answered (%d), and its pin was not written durably", res.StatusCode)
	}
	// A second request of the same conversation finds the pin in memory. It
	// must not overtake the write either.
	go func() { done <- b.claude("s1", user("hello")) }()
	for !b.router.gates.waiting(2) { // until both are at the gate
		select {
		case res := <-done:
			t.Fatalf("answered (%d) before the pin was on disk", res.StatusCode)
		default:
			runtime.Gosched()
		}
	}
	if got := b.servers["a"].Arrivals(); got != 0 {
		t.Fatalf("%d requests reached the server before the pin was on disk", got)
	}
	release()
	read(t, <-done)
	read(t, <-done)
	if b.pins.durable != 1 {
		t.Errorf("%d durable writes for one conversation, want 1", b.pins.durable)
	}
}

// waiting reports whether n requests are at one conversation's gate.
func (g *gates) waiting(n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.held {
		if h.users == n {
			return true
		}
	}
	return false
}

func TestPromise2_DiskRefusesThenMemoryServes(t *testing.T) {
	b := newBench(t, nil)
	b.pins.fail = true
	read(t, b.claude("s1", user("hello")))
	b.choose("b")
	res := b.claude("s1", user("hello")+","+assistant("x")+","+user("go on"))
	read(t, res)
	if got := res.Header.Get(RouteHeader); !strings.Contains(got, "server=a") {
		t.Errorf("route = %q, want a", got)
	}
}

func TestUnknownContinuationGoesToOwnUpstream(t *testing.T) {
	b := newBench(t, nil)
	res := b.claude("old", user("hello")+","+assistant("an answer that nobody here has seen before, long enough")+","+user("go on"))
	read(t, res)
	if got := res.Header.Get(RouteHeader); !strings.Contains(got, "turn=continuation; pin=new; server=own") {
		t.Errorf("route = %q, want own", got)
	}
}

func TestStreamWithoutTerminatorIsCut(t *testing.T) {
	b := newBench(t, func(string, *fakeserver.Record) fakeserver.Behaviour {
		return fakeserver.Behaviour{Cut: fakeserver.CutTidy, CutAfter: 4}
	})
	res := b.claude("s1", user("hello"))
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("a stream that ended without message_stop was passed on as whole")
	}
}

func TestServerDownIsA503ThatSaysSo(t *testing.T) {
	b := newBench(t, nil)
	_ = b.servers["a"].Close()
	res := b.claude("s1", user("hello"))
	body := read(t, res)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, retry-after %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	for _, want := range []string{`"type":"error"`, "agentop: ", `server \"a\"`, "the conversation is kept"} {
		if !strings.Contains(body, want) {
			t.Errorf("error %s lacks %q", body, want)
		}
	}
}
