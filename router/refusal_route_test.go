package router

import (
	"net/http"
	"strings"
	"testing"
)

// TestARefusedTurnIsNamedAsPlacementSeesIt holds that the route of a refusal
// tells a resent opening of a known conversation for what it is.
func TestARefusedTurnIsNamedAsPlacementSeesIt(t *testing.T) {
	b := newBench(t, nil)
	read(t, b.claude("s1", user("hello")))
	b.configure("servers:\n  b: {url: " + b.servers["b"].URL() + ", key: none}\nagents:\n  claude-code: {server: b}\n")
	res := b.claude("s1", user("hello"))
	read(t, res)
	if got := res.Header.Get(RouteHeader); res.StatusCode != http.StatusBadRequest || !strings.Contains(got, "turn=continuation; pin=none; server=-") {
		t.Errorf("%d %q, want 400 with turn=continuation; pin=none; server=-", res.StatusCode, got)
	}
}
