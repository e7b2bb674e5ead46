package router

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/control"
	"agentop/router/placement"
)

// countingNetwork answers each request with a line, and counts them.
type countingNetwork struct{ sent atomic.Int64 }

func (c *countingNetwork) RoundTrip(req *http.Request) (*http.Response, error) {
	c.sent.Add(1)
	_, _ = io.Copy(io.Discard, req.Body)
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: req,
	}, nil
}

// panics counts what the router says of its own mistakes.
type panics struct {
	noMeter
	n atomic.Int64
}

func (p *panics) Refused(reason string) {
	if reason == "panic" {
		p.n.Add(1)
	}
}

// FuzzRequest sends any bytes as a request: it is answered with a route
// header, reaches at most one server, once, and none if its Host is another's.
func FuzzRequest(f *testing.F) {
	for _, form := range formats {
		f.Add([]byte(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1:4780\r\nX-Claude-Code-Session-Id: s\r\nContent-Length: %d\r\n\r\n%s", form.path, len(form.body), form.body)))
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: localhost:4780\r\n\r\n", "HEAD /api/hello HTTP/1.0\r\n\r\n",
		"POST /codex/v1/responses HTTP/1.1\r\nHost: [::1]:4780\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"GET /codex/v1/responses HTTP/1.1\r\nHost: localhost:4780\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"GET //x/../%2e%2e/?a=%zz HTTP/1.1\r\nHost: localhost.:4780\r\n\r\n", "CONNECT localhost:4780 HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return // net/http's to refuse
		}
		network, meter := new(countingNetwork), new(panics)
		b := newBareBench(t, network, meter)
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:4780"))
		w := httptest.NewRecorder()
		// Shorter than a title waits for its opening.
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), http.LocalAddrContextKey, at), 200*time.Millisecond)
		defer cancel()
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
					t.Errorf("panic: %v", p)
				}
			}()
			b.ServeHTTP(w, req.WithContext(ctx))
		}()
		if meter.n.Load() > 0 {
			t.Error("the router panicked")
		}
		if n := network.sent.Load(); n > 1 {
			t.Errorf("%d requests were sent for one", n)
		} else if n == 1 && !isLocalHost(req.Host, 4780) {
			t.Errorf("a request with Host %q was sent on", req.Host)
		}
		if w.Header().Get(RouteHeader) == "" {
			t.Errorf("no route header on a %d", w.Code)
		}
	})
}

// FuzzHost compares the guard's reading of Host with net's.
func FuzzHost(f *testing.F) {
	for _, host := range []string{"localhost:4780", "[::1]:4780", "127.0.0.1:4780", "LOCALHOST.:4780", "[::1%lo]:4780", "evil.example:4780", "::1:4780", "[127.0.0.1]:4780", ""} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !isLocalHost(host, 4780) {
			return
		}
		name, port, err := net.SplitHostPort(host)
		if err != nil || port != "4780" {
			t.Fatalf("%q passes, its port is %q, %v", host, port, err)
		}
		if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
			return
		}
		if name = strings.ToLower(name); name != "localhost" && name != "localhost." {
			t.Fatalf("%q passes", host)
		}
	})
}

// FuzzPin reads any bytes as a stored pin: what is no pin is an error, and what
// is one is written as it was read.
func FuzzPin(f *testing.F) {
	good := (&pinRecord{Agent: agents.Codex, Session: "s", Server: "a", Names: map[string]string{"m": "n"}, Title: "t"}).encode()
	for _, text := range []string{good, "{}", "null", "", `{"agent":"codex","session":"s"}`, `{"agent":"codex","session":"s","server":"a","opened":"x"}`, strings.Repeat("[", 10_000)} {
		f.Add(text)
	}
	c := placement.Conversation{Agent: agents.Codex, Session: "s"}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := decodePin(c, text)
		if err != nil {
			if p != nil {
				t.Error("a pin with an error")
			}
			return
		}
		if p.conversation() != c || p.Server == "" {
			t.Errorf("%q is taken for a pin of %v at %q", text, p.conversation(), p.Server)
		}
		again, err := decodePin(c, p.encode())
		if err != nil || again.encode() != p.encode() {
			t.Errorf("%q is read as %s, and that as %v, %v", text, p.encode(), again, err)
		}
	})
}

// newBareBench is a router without a disk, on a network of the test's.
func newBareBench(t *testing.T, network http.RoundTripper, meter Meter) *Router {
	t.Helper()
	b := &bench{t: t, pins: &memoryPins{values: map[string]string{}}}
	b.configure("servers:\n  a: {url: http://127.0.0.1:1, key: none}\nagents:\n  claude-code: {server: a, upstream: none}\n  codex: {server: a, upstream: none}\n  opencode: {server: a, upstream: none}\n")
	return New(Parts{
		Config: b.config, Pins: b.pins, Recorder: forgetful{}, Credentials: noKeys{}, Meter: meter,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now,
		Publish: func(control.Event) {}, Metrics: http.NotFoundHandler(), Transport: network,
	})
}
