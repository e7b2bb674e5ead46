package router

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// keptPool is the bench's connections to its server a, each of which is
// remembered.
type keptPool struct {
	*pool
	mu   sync.Mutex
	made []*conn
}

func newKeptPool(b *bench) *keptPool {
	b.t.Helper()
	s, _ := b.config().Server("a")
	base, err := url.Parse(s.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	p, err := b.router.transports.get(s, base)
	if err != nil {
		b.t.Fatal(err)
	}
	k := &keptPool{pool: p}
	dial := p.DialContext
	p.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err == nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.made = append(k.made, c.(*conn))
		}
		return c, err
	}
	return k
}

// ended reports whether every connection so far was closed: by the other end,
// or, where net/http reads along and closes what that has closed, by ours.
func (k *keptPool) ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !slices.ContainsFunc(k.made, func(c *conn) bool {
		if k.plain != nil {
			return !closedByPeer(c.Conn)
		}
		raw, err := c.Conn.(syscall.Conn).SyscallConn()
		return err == nil && raw.Control(func(uintptr) {}) == nil
	})
}

// overTLS makes serve one for connections with TLS, whose certificate nobody
// knows.
func overTLS(t *testing.T, serve func(net.Conn)) func(net.Conn) {
	t.Helper()
	lent := httptest.NewUnstartedServer(nil)
	lent.StartTLS()
	t.Cleanup(lent.Close)
	config := &tls.Config{Certificates: lent.TLS.Certificates, MinVersion: tls.VersionTLS12}
	return func(c net.Conn) { serve(tls.Server(c, config)) }
}

// byHand starts a server that treats connections as serve does, and gives its
// URL and what the configuration says of it.
func byHand(t *testing.T, secure bool, serve func(net.Conn)) (base, more string) {
	t.Helper()
	if !secure {
		return upstream(t, serve), "key: none"
	}
	return strings.Replace(upstream(t, overTLS(t, serve)), "http:", "https:", 1), "key: none, insecure_skip_verify: true"
}

// closer is a server that closes kept connections without saying so.
type closer struct {
	idle time.Duration // after so long without a request
	each int           // and at once after so many requests; 0 is without end

	mu      sync.Mutex
	arrived map[string]int // requests by their number
	closed  []time.Time    // when it closed connections
}

func (s *closer) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = append(s.closed, time.Now())
	}()
	r := bufio.NewReader(c)
	for n := 1; ; n++ {
		req, _ := request(r)
		if req == nil {
			return
		}
		s.mu.Lock()
		s.arrived[req.Header.Get("X-Number")]++
		s.mu.Unlock()
		_, _ = io.WriteString(c, answerJSON(200, "{}"))
		if n == s.each {
			return
		}
		if s.idle > 0 {
			_ = c.SetReadDeadline(time.Now().Add(s.idle))
		}
	}
}

// closedSince reports whether a connection was closed after a time.
func (s *closer) closedSince(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.closed, func(c time.Time) bool { return c.After(at) })
}

// A request that meets a connection which its server has closed meanwhile is
// carried by another one, and once. One that sets out while the close is on its
// way would be lost, whoever sends it: these are sent after it.
func TestKF_E6_ClosedConnectionsLoseNoRequest(t *testing.T) {
	rounds := 3
	if full() {
		rounds = 200
	}
	for _, secure := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			idle   time.Duration
			each   int
			rounds int
		}{
			{"closed after 300 ms", 300 * time.Millisecond, 0, 6},
			{"closed after a second", time.Second, 0, rounds},
			{"closed after the first answer", 0, 1, 20},
		} {
			t.Run(fmt.Sprintf("%s, TLS %v", c.name, secure), func(t *testing.T) {
				t.Parallel()
				s := &closer{idle: c.idle, each: c.each, arrived: map[string]int{}}
				b := newBench(t, nil)
				b.only(byHand(t, secure, s.serve))
				kept := newKeptPool(b)
				// As it is where the server's connections were seen to live on.
				kept.manners.Store(keepsConnections)
				for i := range c.rounds {
					if res, got := b.numbered(i); res.StatusCode != 200 {
						t.Errorf("request %d: %d %s", i, res.StatusCode, got)
					}
					waitFor(t, "the close", kept.ended)
				}
				s.onceEach(t, c.rounds)
			})
		}
	}
}

// A server that closes after each answer, a moment after its last byte, is not
// met on a connection that is about to be closed, however soon the next request
// follows.
func TestKF_E6_RequestsInARowLoseNone(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			s := &closer{each: 1, arrived: map[string]int{}}
			b := newBench(t, nil)
			b.only(byHand(t, secure, s.serve))
			for i := range 200 {
				began := time.Now()
				res, got := b.numbered(i)
				if res.StatusCode == 200 {
					continue
				}
				// A machine that stands still for longer than servers take to
				// close lets the request set out before the close all the same.
				if !s.closedSince(began) || !strings.Contains(got, "not sent again") {
					t.Errorf("request %d: %d %s", i, res.StatusCode, got)
				}
			}
			s.onceEach(t, -1)
		})
	}
}

// Over HTTP/2 a server says that it closes, and what it has not taken is
// carried by another connection.
func TestKF_E6_ClosedHTTP2ConnectionsLoseNoRequest(t *testing.T) {
	s := &closer{arrived: map[string]int{}}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.arrived[req.Header.Get("X-Number")]++
		s.mu.Unlock()
		_, _ = fmt.Fprint(w, req.Proto)
	}))
	srv.EnableHTTP2, srv.Config.IdleTimeout = true, 20*time.Millisecond
	srv.StartTLS()
	defer srv.Close()
	b := newBench(t, nil)
	b.only(srv.URL, "key: none, insecure_skip_verify: true")
	kept := newKeptPool(b)
	const rounds = 4
	for i := range rounds {
		if res, got := b.numbered(i); res.StatusCode != 200 || got != "HTTP/2.0" {
			t.Errorf("request %d: %d %s", i, res.StatusCode, got)
		}
		waitFor(t, "the close", kept.ended)
	}
	s.onceEach(t, rounds)
}

// numbered sends a request that bears a number, and all that makes libraries
// think that they may send it again.
func (b *bench) numbered(i int) (*http.Response, string) {
	b.t.Helper()
	method := []string{"POST", "GET", "PUT"}[i%3]
	var body io.Reader
	if method != "GET" {
		body = strings.NewReader("{}")
	}
	res := b.do(method, "/claude-code/v1/files", body, http.Header{"X-Number": {fmt.Sprint(i)}, "Idempotency-Key": {fmt.Sprint(i)}})
	return res, read(b.t, res)
}

// onceEach asserts that none of n requests arrived twice, and that all did; n
// below zero is for any number.
func (s *closer) onceEach(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= 0 && len(s.arrived) != n {
		t.Errorf("%d requests arrived, want %d", len(s.arrived), n)
	}
	for number, times := range s.arrived {
		if times != 1 {
			t.Errorf("request %s arrived %d times", number, times)
		}
	}
}

func TestKF_E7_NothingIsEverSentTwice(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, end := range []struct {
			name string
			end  func(c net.Conn)
		}{
			{"closed", func(net.Conn) {}},
			{"reset", func(c net.Conn) { _ = tcpOf(c).SetLinger(0) }},
			{"half a head", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le") }},
			{"not HTTP", func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n") }},
			{"only a 100", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n") }},
		} {
			t.Run(fmt.Sprintf("%s, TLS %v", end.name, secure), func(t *testing.T) { neverTwice(t, secure, end.end) })
		}
	}
}

func tcpOf(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*net.TCPConn)
}

// neverTwice sends requests over fresh and over kept connections to a server
// that takes each whole and then ends the connection without an answer.
func neverTwice(t *testing.T, secure bool, end func(net.Conn)) {
	var arrivals, onKept atomic.Int64
	b := newBench(t, nil)
	b.only(byHand(t, secure, func(c net.Conn) {
		r := bufio.NewReader(c)
		for n := 0; ; n++ {
			req, _ := request(r)
			if req == nil {
				return
			}
			if req.Header.Get("X-Warm") != "" { // so that the next one meets a kept connection
				_, _ = io.WriteString(c, answerJSON(200, "{}"))
				continue
			}
			if arrivals.Add(1); n > 0 {
				onKept.Add(1)
			}
			end(c)
			return
		}
	}))
	kept := newKeptPool(b)
	for i, c := range []struct{ method, path, body string }{
		{"POST", "/claude-code/v1/messages", claudeBody(user("hello"))}, {"GET", "/claude-code/v1/models", ""}, {"HEAD", "/claude-code/v1/models", ""},
		{"POST", "/codex/v1/responses", "{}"}, {"PUT", "/codex/v1/files", ""}, {"POST", "/codex/v1/files", ""}, {"DELETE", "/codex/v1/files/1", ""}, {"OPTIONS", "/codex/v1/files", ""},
	} {
		for _, warm := range []bool{false, true} {
			kept.CloseIdleConnections()
			kept.manners.Store(keepsConnections) // a young connection is used again
			if warm {
				read(t, b.do("GET", "/codex/v1/files", nil, http.Header{"X-Warm": {"1"}}))
			}
			before, beforeKept := arrivals.Load(), onKept.Load()
			res := b.do(c.method, c.path, strings.NewReader(c.body), http.Header{"Idempotency-Key": {fmt.Sprint(i)}, "X-Idempotency-Key": {"k"}, "User-Agent": {"claude-cli/2"}})
			body := read(t, res)
			if n := arrivals.Load() - before; n != 1 {
				t.Errorf("%s %s arrived %d times, want once", c.method, c.path, n)
			}
			if n := onKept.Load() - beforeKept; warm != (n == 1) {
				t.Errorf("%s %s arrived on a kept connection %d times, want that: %v", c.method, c.path, n, warm)
			}
			if c.method != "HEAD" && (res.StatusCode != 503 || !strings.Contains(body, "not sent again")) {
				t.Errorf("%s %s: %d %s", c.method, c.path, res.StatusCode, body)
			}
		}
	}
}
