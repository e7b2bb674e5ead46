package router

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentop/router/control"
	"agentop/router/placement"
	"agentop/router/reqlog"

	"log/slog"
)

// The tests of this file run in invented time, over connections in memory,
// with the server and the transport that agentop runs with.

// pipes is a network of pipes with one listener.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
}

// loopbackPipe is a pipe that ends at the proxy's address.
type loopbackPipe struct{ net.Conn }

var pipeAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4780}

func (loopbackPipe) LocalAddr() net.Addr { return pipeAddr }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return pipeAddr }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- loopbackPipe{theirs}:
		return loopbackPipe{ours}, nil
	case <-p.done:
		return nil, errors.New("nobody listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forgetful remembers nothing.
type forgetful struct{}

func (forgetful) Answered(placement.Conversation, string, uint64, string, time.Time) {}

func (forgetful) Append(reqlog.Line)                                         {}
func (forgetful) Register(placement.Conversation, string, uint64, time.Time) {}
func (forgetful) Last(placement.Conversation) (string, bool)                 { return "", false }
func (forgetful) Response(string) []placement.Owner                          { return nil }
func (forgetful) Key(uint64) []placement.Owner                               { return nil }
func (forgetful) Mark(uint64) []placement.Owner                              { return nil }
func (forgetful) Loaded() <-chan struct{}                                    { c := make(chan struct{}); close(c); return c }

// inTime runs client against a proxy before serve, both in invented time.
// more is added to the server's line in the configuration.
func inTime(t *testing.T, more string, serve http.HandlerFunc, client func(send func() (*http.Response, error))) {
	synctest.Test(t, func(t *testing.T) {
		front, back := newPipes(), newPipes()
		b := &bench{t: t, pins: &memoryPins{values: map[string]string{}}}
		b.only("http://127.0.0.1:8000", "key: none"+more)
		s, _ := b.config().Server("a")
		carrier, err := newTransport(transportKey{firstByte: s.FirstByteTimeout}, false)
		if err != nil {
			t.Fatal(err)
		}
		carrier.DialContext = back.dial
		quiet := log.New(io.Discard, "", 0)
		r := New(Parts{
			Config: b.config, Pins: b.pins, Recorder: forgetful{}, Credentials: noKeys{}, Meter: noMeter{},
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now,
			Publish: func(control.Event) {}, Metrics: http.NotFoundHandler(), Transport: carrier,
		})
		proxy, server := NewServer(r, quiet), &http.Server{Handler: serve, ErrorLog: quiet}
		go func() { _ = proxy.Serve(front) }()
		go func() { _ = server.Serve(back) }()
		agent := &http.Transport{DialContext: front.dial}
		client(func() (*http.Response, error) {
			req, _ := http.NewRequest("POST", "http://127.0.0.1:4780/claude-code/v1/messages", strings.NewReader(claudeBody(user("hello"))))
			return agent.RoundTrip(req)
		})
		agent.CloseIdleConnections()
		carrier.CloseIdleConnections()
		_ = proxy.Close()
		_ = server.Close()
	})
}

func TestKF_S4_NoLimitEndsALongStream(t *testing.T) {
	for _, c := range []struct {
		name    string
		every   time.Duration
		for_    time.Duration
		comment bool
	}{{"11 minutes, an event each 20 s", 20 * time.Second, 11 * time.Minute, false}, {"5 hours, an event each hour", time.Hour, 5 * time.Hour, false}, {"3 minutes of pings alone", 15 * time.Second, 3 * time.Minute, true}} {
		t.Run(c.name, func(t *testing.T) {
			var counted atomic.Int64
			inTime(t, "", func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				for passed := time.Duration(0); passed < c.for_; passed += c.every {
					sent := int(counted.Add(1))
					if c.comment {
						fmt.Fprint(w, ": keep-alive\n\n")
					} else {
						fmt.Fprintf(w, "event: ping\ndata: {\"type\":\"ping\",\"n\":%d}\n\n", sent)
					}
					_ = http.NewResponseController(w).Flush()
					time.Sleep(c.every)
				}
				fmt.Fprint(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
			}, func(send func() (*http.Response, error)) {
				began := time.Now()
				res, err := send()
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != 200 {
					body, _ := io.ReadAll(res.Body)
					t.Errorf("%d %s", res.StatusCode, body)
					return
				}
				r, events := bufio.NewReader(res.Body), 0
				for {
					if _, err := r.Peek(1); err != nil {
						if err != io.EOF {
							t.Errorf("after %v and %d events: %v", time.Since(began), events, err)
						}
						break
					}
					event(t, r)
					sent := int(counted.Load())
					// Invented time stands still while anything is under way: an
					// event that is there at its own instant was held up by nothing.
					if got, want := time.Since(began), time.Duration(min(events, sent))*c.every; got != want && events < sent {
						t.Errorf("event %d came after %v, was sent after %v", events, got, want)
					}
					events++
				}
				if sent := int(counted.Load()); events != sent+1 {
					t.Errorf("%d events came, %d were sent", events, sent+1)
				}
			})
		})
	}
}

func TestKF_S5_TheFirstByteMayTakeItsTime(t *testing.T) {
	for _, c := range []struct {
		more string
		wait time.Duration
		want int
	}{
		{"", 31 * time.Second, 200}, {"", 61 * time.Second, 200}, {"", 301 * time.Second, 200}, {"", 3 * time.Hour, 200},
		{", first_byte_timeout: 0", 301 * time.Second, 200},
		{", first_byte_timeout: 40s", 39 * time.Second, 200}, {", first_byte_timeout: 40s", 41 * time.Second, 503},
	} {
		t.Run(fmt.Sprint(c.wait, c.more), func(t *testing.T) {
			inTime(t, c.more, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				select {
				case <-time.After(c.wait):
				case <-req.Context().Done():
					return
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, "{}")
			}, func(send func() (*http.Response, error)) {
				began := time.Now()
				res, err := send()
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				if res.StatusCode != c.want {
					t.Errorf("after %v: %d %s", time.Since(began), res.StatusCode, body)
				}
				if c.want == 503 && (time.Since(began) != 40*time.Second || !strings.Contains(string(body), "first_byte_timeout")) {
					t.Errorf("given up after %v with %s", time.Since(began), body)
				}
			})
		})
	}
}
