package router

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// exhaustedTransport is a machine without a descriptor left.
type exhaustedTransport struct{ tried int }

func (e *exhaustedTransport) RoundTrip(*http.Request) (*http.Response, error) {
	e.tried++
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EMFILE}
}

// What this machine lacks is no fault of a server's.
func TestNoDescriptorsIsNoServersFault(t *testing.T) {
	b := newBench(t, nil)
	b.configure("servers:\n  lab: {key: none, pool: [{url: " + b.servers["a"].URL() + "}, {url: " + b.servers["b"].URL() + "}]}\nagents:\n  claude-code: {server: lab, upstream: none}\n")
	network := &exhaustedTransport{}
	b.router.Transport = network
	res := b.claude("s1", user("hello"))
	body := read(t, res)
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "no file descriptors are left here") || strings.Contains(body, "start the server") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if network.tried != 1 {
		t.Errorf("%d members were tried, want 1", network.tried)
	}
	lab, _ := b.config().Server("lab")
	if health, _, _, _ := b.router.ServerState(lab); health.State != healthUnknown {
		t.Errorf("the server counts as %q", health.State)
	}
}
