package router

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentop/router/fakeserver"
)

// TestReloadUnderLoad adds, changes, renames and removes servers and choices
// while conversations run. No request fails for it but those of conversations
// that are pinned to a removed server, and their error tells how to bring it
// back.
func TestReloadUnderLoad(t *testing.T) {
	servers := map[string]*fakeserver.Server{}
	for _, name := range []string{"a", "b", "c"} {
		s := fakeserver.New(fakeserver.Options{Name: name})
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		servers[name] = s
	}
	yaml := func(choice string, names ...string) string {
		var b strings.Builder
		b.WriteString("servers:\n")
		for _, name := range names {
			at := name
			if _, ok := servers[name]; !ok {
				at = "b" // a name that b was given
			}
			fmt.Fprintf(&b, "  %s: {url: %s, key: none}\n", name, servers[at].URL())
		}
		fmt.Fprintf(&b, "agents:\n  claude-code: {server: %q, upstream: none}\n", choice)
		return b.String()
	}
	steps := []string{
		yaml("a", "a", "b"), yaml("b", "a", "b"), yaml("b", "a", "b", "c"), yaml("c", "a", "b", "c"), yaml("c", "a", "c"), // b removed
		yaml("c", "a", "c", "renamed"), yaml("renamed", "a", "renamed", "c"), yaml("a", "a", "b", "c"), // b is back
		strings.Replace(yaml("a", "a", "b", "c"), "key: none}", "key: none, session_header: x-some-id}", 1),
	}
	r := newRig(t, "%s", steps[0])

	var stop atomic.Bool
	var mu sync.Mutex
	removed := 0 // answers that said that a server is gone
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			home := map[string]string{} // where each session began
			for n := 0; !stop.Load(); n++ {
				session := fmt.Sprintf("s%d-%d", worker, n%12)
				res, text, err := r.try("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader(session))
				if err != nil {
					t.Errorf("%s: %v", session, err)
					return
				}
				place := placeOf(res)
				switch {
				case res.StatusCode == http.StatusOK && home[session] == "":
					home[session] = place
				case res.StatusCode == http.StatusOK && home[session] != place:
					t.Errorf("%s moved from %s to %s", session, home[session], place)
				case res.StatusCode == http.StatusBadRequest && goneWords(text, home[session]):
					mu.Lock()
					removed++
					mu.Unlock()
				case res.StatusCode != http.StatusOK:
					t.Errorf("%s of %s: %d %s", session, home[session], res.StatusCode, text)
				}
			}
		})
	}
	total := func() int {
		return servers["a"].Arrivals() + servers["b"].Arrivals() + servers["c"].Arrivals()
	}
	for range 3 {
		for _, step := range steps {
			r.configure("%s", step)
			for before := total(); total() < before+60; {
				// Spin until some turns have met this configuration; each is one that ends.
				if t.Failed() {
					break
				}
			}
		}
	}
	stop.Store(true)
	wait.Wait()
	if removed == 0 {
		t.Error("no turn met the removed server: the test shows nothing")
	}
}

// goneWords says whether an error is the one of a conversation whose server is
// gone: it names the server, and what to do.
func goneWords(text, server string) bool {
	return (server == "b" || server == "renamed" || server == "c") && strings.Contains(text, "agentop: ") &&
		strings.Contains(text, server) && strings.Contains(text, "agentop server add "+server)
}

// TestRemovedServerComesBack holds that a conversation goes on when its server
// is there again, and what it is told meanwhile.
func TestRemovedServerComesBack(t *testing.T) {
	a, b := fakeserver.New(fakeserver.Options{Name: "a"}), fakeserver.New(fakeserver.Options{Name: "b"})
	for _, s := range []*fakeserver.Server{a, b} {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	both := fmt.Sprintf("servers:\n  a: {url: %s, key: none}\n  b: {url: %s, key: none}\nagents: {claude-code: {server: a, upstream: none}}\n", a.URL(), b.URL())
	alone := fmt.Sprintf("servers:\n  b: {url: %s, key: none}\nagents: {claude-code: {server: b, upstream: none}}\n", b.URL())
	r := newRig(t, "%s", both)
	send := func(session string) (*http.Response, string) {
		return r.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader(session))
	}
	send("s1")
	r.configure("%s", alone)
	res, text := send("s1")
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, want 400", res.StatusCode)
	}
	for _, want := range []string{"agentop: ", "a", "agentop server add a URL", "a new one works at once"} {
		if !strings.Contains(text, want) {
			t.Errorf("error %s lacks %q", text, want)
		}
	}
	if res, text := send("s2"); res.StatusCode != http.StatusOK {
		t.Errorf("a new conversation: %d %s", res.StatusCode, text)
	}
	r.configure("%s", both)
	res, _ = send("s1")
	if got := res.Header.Get(RouteHeader); res.StatusCode != http.StatusOK || !strings.Contains(got, "pin=kept; server=a") {
		t.Errorf("back again: %d, route %q", res.StatusCode, got)
	}
	// A running stream is not cut when its server goes.
	hold := make(chan struct{})
	slow := fakeserver.New(fakeserver.Options{Name: "slow", Script: func(*fakeserver.Record) fakeserver.Behaviour {
		return fakeserver.Behaviour{Hold: hold}
	}})
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	r.configure("servers:\n  slow: {url: %s, key: none}\nagents: {claude-code: {server: slow, upstream: none}}\n", slow.URL())
	done := make(chan string, 1)
	go func() {
		res, text, err := r.try("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s3"))
		if err != nil {
			done <- err.Error()
			return
		}
		done <- fmt.Sprint(res.StatusCode, strings.Contains(text, "message_stop"))
	}()
	for slow.InFlight() == 0 {
		// Spin until it is there; nothing but the scheduler is waited for.
	}
	r.configure("%s", alone)
	send("s4") // the configuration is in force
	close(hold)
	if got := <-done; got != "200 true" {
		t.Errorf("the stream of a server that was removed meanwhile ended with %s", got)
	}
}
