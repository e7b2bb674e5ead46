package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long what must happen may take before a test fails.
const patience = time.Minute

// start serves h until the test ends.
func start(t *testing.T, h http.HandlerFunc) (s *Server, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = &Server{HTTP: &http.Server{Handler: h, ReadHeaderTimeout: patience, IdleTimeout: patience, ErrorLog: log.New(io.Discard, "", 0)}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, l.Addr().String()
}

// client is one connection to a server.
type client struct {
	*net.TCPConn
	t *testing.T
	r *bufio.Reader
}

func connect(t *testing.T, address string) *client {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &client{c.(*net.TCPConn), t, bufio.NewReader(c)}
}

func (c *client) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// hear reads an answer with its body.
func (c *client) hear(method string) (*http.Response, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(body)
}

// ended reports whether the server closes the connection, or its system one
// that was never accepted.
func (c *client) ended() bool {
	_, err := c.r.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func post(body string) string {
	return fmt.Sprintf("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%s %s", r.Method, body)
}

func TestRequestsFollowEachOtherOnAConnection(t *testing.T) {
	_, address := start(t, echo)
	c := connect(t, address)
	for _, body := range []string{"one", "", strings.Repeat("long ", 100_000)} {
		c.say(post(body))
		if res, got := c.hear("POST"); res.StatusCode != 200 || got != "POST "+body {
			t.Fatalf("%d %.40q, want %.40q", res.StatusCode, got, body)
		}
	}
	c.say(post("a") + post("b") + "GET /x HTTP/1.1\r\nHost: a\r\n\r\n") // before the first answer
	for _, want := range []string{"POST a", "POST b", "GET "} {
		if _, got := c.hear("POST"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWhatIsOddIsServedByNetHTTP sends one plain request and then one that is
// not, in one piece and byte by byte.
func TestWhatIsOddIsServedByNetHTTP(t *testing.T) {
	_, address := start(t, echo)
	for name, c := range map[string]struct{ request, want string }{
		"chunks":         {"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST abc"},
		"HTTP/1.0":       {"POST /x HTTP/1.0\r\nContent-Length: 2\r\n\r\nab", "POST ab"},
		"a long head":    {"GET /x HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("l", 2*headSize) + "\r\n\r\n", "GET "},
		"bare line ends": {"GET /x HTTP/1.1\nHost: a\n\n", "GET "},
	} {
		for _, pieces := range []bool{false, true} {
			c, odd, want := connect(t, address), c.request, c.want
			c.say(post("plain"))
			if _, got := c.hear("POST"); got != "POST plain" {
				t.Fatalf("%s: %q first", name, got)
			}
			if pieces {
				for i := range len(odd) {
					c.say(odd[i : i+1])
				}
			} else {
				c.say(odd)
			}
			if _, got := c.hear("POST"); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	c := connect(t, address)
	c.say("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	if res, err := http.ReadResponse(c.r, nil); err != nil || res.StatusCode != 100 {
		t.Fatalf("%v, %v: want 100", res, err)
	}
	c.say("ab")
	if _, got := c.hear("POST"); got != "POST ab" {
		t.Errorf("after 100: %q", got)
	}
	c = connect(t, address)
	c.say("no HTTP\r\n")
	if res, _ := c.hear("GET"); res.StatusCode != 400 || !c.ended() {
		t.Errorf("garbage: %d", res.StatusCode)
	}
}

// TestAClientThatLeavesCancelsItsRequest leaves at each stage of a request.
func TestAClientThatLeavesCancelsItsRequest(t *testing.T) {
	began, done := make(chan struct{}), make(chan error)
	_, address := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Stream") != "" {
			_, _ = io.WriteString(w, "event")
			_ = http.NewResponseController(w).Flush()
		}
		began <- struct{}{}
		select {
		case <-r.Context().Done():
			done <- r.Context().Err()
		case <-time.After(patience):
			done <- errors.New("nobody told")
		}
	})
	for name, request := range map[string]string{
		"before the answer": post("body"), "without a body": "GET /x HTTP/1.1\r\nHost: a\r\n\r\n",
		"in a stream":   "POST /x HTTP/1.1\r\nHost: a\r\nX-Stream: 1\r\nContent-Length: 2\r\n\r\nab",
		"in the upload": "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nab",
	} {
		c := connect(t, address)
		c.say(request)
		if name == "in the upload" {
			_ = c.Close()
		}
		<-began
		_ = c.Close()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAWatchedConnectionCarriesTheNextRequest lets a request last until its
// client is watched, and sends the next one meanwhile or afterwards.
func TestAWatchedConnectionCarriesTheNextRequest(t *testing.T) {
	release := make(chan struct{})
	s, address := start(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) == "slow" {
			<-release
		}
		if r.Context().Err() != nil {
			t.Error("cancelled, though the client is there")
		}
		_, _ = w.Write(body)
	})
	c := connect(t, address)
	for range 3 {
		c.say(post("slow"))
		time.AfterFunc(2*watchAfter, func() { release <- struct{}{} })
		c.hear("POST")
		c.say(post("slow") + post("next"))
		time.AfterFunc(2*watchAfter, func() { release <- struct{}{} })
		c.hear("POST")
		if _, got := c.hear("POST"); got != "next" {
			t.Fatalf("%q", got)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		if n := len(conn.watch.over); n > 0 {
			t.Error("a watch that began was not awaited: the next one would not end")
		}
	}
}

func TestShutdownEndsIdleConnectionsAndLetsRequestsFinish(t *testing.T) {
	release := make(chan struct{})
	s, address := start(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "slow" {
			_ = http.NewResponseController(w).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "whole")
	})
	idle, fresh, busy := connect(t, address), connect(t, address), connect(t, address)
	idle.say(post(""))
	idle.hear("POST")
	busy.say(post("slow"))
	res, err := http.ReadResponse(busy.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	down := make(chan error)
	go func() { down <- s.Shutdown(t.Context()) }()
	if !idle.ended() || !fresh.ended() {
		t.Error("an idle connection stays")
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(release)
	if body, err := io.ReadAll(res.Body); string(body) != "whole" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
	if !busy.ended() {
		t.Error("a connection stays after its last answer")
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// TestCloseEndsAShutdownThatWaits cuts the request that Shutdown waits for.
func TestCloseEndsAShutdownThatWaits(t *testing.T) {
	s, address := start(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c := connect(t, address)
	c.say(post(""))
	if _, err := http.ReadResponse(c.r, nil); err != nil {
		t.Fatal(err)
	}
	down := make(chan error)
	go func() { down <- s.Shutdown(t.Context()) }()
	for !s.closing.Load() {
		runtime.Gosched()
	}
	_ = s.Close()
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// TestARequestThatCameJustThenIsServed interrupts the wait for a request that
// is already there.
func TestARequestThatCameJustThenIsServed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := connect(t, l.Addr().String())
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := newConn(&Server{HTTP: &http.Server{ReadHeaderTimeout: patience}}, nc)
	c.r = bufio.NewReader(nc)
	client.say("G")
	for !arrived(c.raw) { // the system hands it over
		_ = c.SetReadDeadline(time.Time{})
	}
	c.setIdle(true)
	c.interruptIdle()
	if err := c.await(); err != nil {
		t.Errorf("await: %v", err)
	}
}

// TestACutAnswerIsSeen lets handlers break an answer off.
func TestACutAnswerIsSeen(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"abort": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"a mistake": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			panic("mistake")
		},
		"less than told": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "part")
		},
	} {
		_, address := start(t, h)
		c := connect(t, address)
		c.say(post(""))
		res, err := http.ReadResponse(c.r, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if body, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q, %v: the client takes it for whole", name, body, err)
		}
	}
}

// TestAnEarlyAnswerReachesAClientThatStillSends answers before the body.
func TestAnEarlyAnswerReachesAClientThatStillSends(t *testing.T) {
	_, address := start(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "too large", 413) })
	c := connect(t, address)
	go func() { _, _ = c.Write(bigPost(8 << 20)) }()
	res, body := c.hear("POST")
	if res.StatusCode != 413 || !res.Close || !strings.Contains(body, "too large") {
		t.Errorf("%d, close %v, %q", res.StatusCode, res.Close, body)
	}
}

func bigPost(n int) []byte {
	return append(fmt.Appendf(nil, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", n), bytes.Repeat([]byte("b"), n)...)
}

func TestHalfAHeadIsRefused(t *testing.T) {
	_, address := start(t, echo)
	c := connect(t, address)
	c.say("POST /x HTTP/1.1\r\nHo")
	_ = c.CloseWrite()
	if res, _ := c.hear("POST"); res.StatusCode != 400 || !c.ended() {
		t.Errorf("half a head: %d", res.StatusCode)
	}
}

// TestAStreamHoldsNoMemoryBetweenEvents looks inside.
func TestAStreamHoldsNoMemoryBetweenEvents(t *testing.T) {
	_, address := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for range 3 {
			_, _ = io.WriteString(w, "event")
			_ = http.NewResponseController(w).Flush()
			if in := w.(*response); in.out != nil || in.pending != nil || in.conn.r != nil {
				t.Errorf("out %v, pending %v, reader %v", in.out, in.pending, in.conn.r)
			}
		}
	})
	c := connect(t, address)
	c.say(post("body"))
	if _, got := c.hear("POST"); got != "eventeventevent" {
		t.Errorf("%q", got)
	}
}

// TestHeadersAreNobodyElses has connections at once whose requests and answers
// have headers of names that no other has.
func TestHeadersAreNobodyElses(t *testing.T) {
	_, address := start(t, func(w http.ResponseWriter, r *http.Request) {
		tag := strings.TrimPrefix(r.URL.Path, "/")
		want := http.Header{"Content-Length": {"1"}, "X-In-" + tag: {"a", "b"}}
		if !reflect.DeepEqual(r.Header, want) {
			t.Errorf("request %s has %v", tag, r.Header)
		}
		w.Header()["X-Out-"+tag] = []string{tag}
		_, _ = io.Copy(w, r.Body)
	})
	var all sync.WaitGroup
	for i := range 8 {
		c := connect(t, address)
		all.Go(func() {
			for j := range 50 {
				tag := fmt.Sprintf("%d-%d", i, j)
				fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: a\r\nX-In-%s: a\r\nX-In-%s: b\r\nContent-Length: 1\r\n\r\n.", tag, tag, tag)
				res, err := http.ReadResponse(c.r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				for name := range res.Header {
					if strings.HasPrefix(name, "X-") && name != "X-Out-"+tag {
						t.Errorf("answer to %s has %s", tag, name)
					}
				}
				if res.Header.Get("X-Out-"+tag) != tag {
					t.Errorf("answer to %s lacks its header", tag)
				}
			}
		})
	}
	all.Wait()
}
