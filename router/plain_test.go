package router

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// plainTo is a carrier to a server that serve plays, a call for each
// connection.
func plainTo(t *testing.T, firstByte time.Duration, serve func(net.Conn)) (*pool, string) {
	t.Helper()
	p, err := newTransport(transportKey{firstByte: firstByte}, false)
	if err != nil {
		t.Fatal(err)
	}
	if p.plain == nil {
		t.Fatal("a plain HTTP server is not carried to by ours")
	}
	t.Cleanup(p.CloseIdleConnections)
	return p, upstream(t, serve)
}

// post is a request with a body of ours.
func post(t *testing.T, ctx context.Context, url string, body []byte) (*http.Request, *upload) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = ""
	up := &upload{}
	setBody(req, up.reader(body))
	return req, up
}

// unread is more than any socket takes of a peer that does not read.
var unread = bytes.Repeat([]byte("0123456789abcdef"), 2<<20)

func TestAnswerBeforeTheRequestIsRead(t *testing.T) {
	const answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong"
	tests := []struct {
		name  string
		serve func(net.Conn)
	}{
		{"and the connection is closed", func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 100))
			_, _ = io.WriteString(c, answer)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.CopyN(io.Discard, c, 1<<20)
		}},
		{"and the rest is read later", func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 100))
			_, _ = io.WriteString(c, answer)
			_, _ = io.Copy(io.Discard, c)
		}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			p, url := plainTo(t, 0, c.serve)
			req, up := post(t, t.Context(), url, unread)
			res, err := p.carry(req, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			if res.StatusCode != 413 || string(text) != "long" || err != nil {
				t.Errorf("%d %q, %v; want 413 long", res.StatusCode, text, err)
			}
			up.release()
		})
	}
}

func TestAnswerToWhoNeverReads(t *testing.T) {
	over := make(chan struct{})
	p, url := plainTo(t, 0, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 100))
		_, _ = io.WriteString(c, "HTTP/1.1 429 Slow Down\r\nContent-Length: 4\r\n\r\nbusy")
		<-over
	})
	defer close(over)
	req, up := post(t, t.Context(), url, unread)
	res, err := p.carry(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(res.Body); res.StatusCode != 429 || string(text) != "busy" || err != nil {
		t.Errorf("%d %q, %v; want 429 busy", res.StatusCode, text, err)
	}
	if up.sent() {
		t.Error("a body that nobody reads counts as sent")
	}
	if p.plain.kept != 0 {
		t.Error("a connection with half a request on it was kept")
	}
}

// TestNoBodyIsHeldWhileTheModelThinks looks at a body's memory between the
// request's end and the answer's beginning.
func TestNoBodyIsHeldWhileTheModelThinks(t *testing.T) {
	for name, body := range map[string][]byte{"one that the socket takes": unread[:1000], "one that it does not": unread} {
		var up *upload
		ready := make(chan struct{})
		p, url := plainTo(t, 0, func(c net.Conn) {
			<-ready
			req, _ := http.ReadRequest(bufio.NewReaderSize(c, 1<<20))
			_, _ = io.Copy(io.Discard, req.Body)
			for held := true; held; { // the answer waits for it
				up.mu.Lock()
				held = !up.gone
				up.mu.Unlock()
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		})
		req, memory := post(t, t.Context(), url, body)
		up = memory
		close(ready)
		res, err := p.carry(req, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text, err := io.ReadAll(res.Body); string(text) != "ok" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestFirstByteIsTimedFromTheRequestsEnd(t *testing.T) {
	const limit = 300 * time.Millisecond
	goOn := make(chan struct{})
	p, url := plainTo(t, limit, func(c net.Conn) {
		<-goOn // for longer than the limit
		req, _ := http.ReadRequest(bufio.NewReaderSize(c, 1<<20))
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.Copy(io.Discard, c) // and never an answer
	})
	req, _ := post(t, t.Context(), url, unread)
	began := time.Now()
	time.AfterFunc(2*limit, func() { close(goOn) })
	_, err := p.carry(req, nil)
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < 3*limit-limit/2 {
		t.Errorf("after %v: %v, want a time-out %v after the request's end", time.Since(began), err, limit)
	}
}

func TestCancelEndsEveryWait(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(net.Conn, func())
	}{
		{"while the request is written", func(c net.Conn, reached func()) {
			_, _ = io.ReadFull(c, make([]byte, 100))
			reached()
		}},
		{"while the head is awaited", func(c net.Conn, reached func()) {
			req, _ := http.ReadRequest(bufio.NewReader(c))
			_, _ = io.Copy(io.Discard, req.Body)
			reached()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			defer close(over)
			p, url := plainTo(t, 0, func(nc net.Conn) { c.serve(nc, cancel); <-over })
			req, _ := post(t, ctx, url, unread)
			if res, err := p.carry(req, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, %v; want %v", res, err, context.Canceled)
			}
		})
	}
	t.Run("while the body is read", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		defer close(over)
		p, url := plainTo(t, 0, func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
			<-over
		})
		req, _ := post(t, ctx, url, []byte("{}"))
		res, err := p.carry(req, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		cancel()
		if n, err := res.Body.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("read %d, %v after the cancel; want an error", n, err)
		}
	})
}

// serveAll answers every request on a connection by its number there.
func serveAll(c net.Conn) {
	r := bufio.NewReader(c)
	for i := 1; ; i++ {
		if req, _ := request(r); req == nil {
			return
		}
		_, _ = io.WriteString(c, answerJSON(200, fmt.Sprint(i)))
	}
}

// It runs in invented time: a connection is young for as long as nothing waits.
func TestConnectionsAreKeptOnceTheServerIsKnownTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := newTransport(transportKey{}, false)
		if err != nil {
			t.Fatal(err)
		}
		back := newPipes()
		p.plain.dial = back.dial
		go func() {
			for {
				c, err := back.Accept()
				if err != nil {
					return
				}
				go serveAll(c)
			}
		}()
		ask := func() string {
			req, _ := post(t, t.Context(), "http://127.0.0.1:8000", []byte("{}"))
			res, err := p.carry(req, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			return string(text)
		}
		if first, second := ask(), ask(); first != "1" || second != "1" {
			t.Errorf("answers %s, %s of their connections; want 1, 1: nothing is known of the server yet", first, second)
		}
		time.Sleep(proof)
		if third, fourth := ask(), ask(); third != "2" || fourth == "1" {
			t.Errorf("answers %s, %s; want 2, and no new connection", third, fourth)
		}
		p.CloseIdleConnections()
		_ = back.Close()
	})
}

func TestServerThatClosesKeptConnectionsIsRemembered(t *testing.T) {
	asked := make(chan string, 2)
	p, url := plainTo(t, 0, func(c net.Conn) {
		if req, _ := request(bufio.NewReader(c)); req != nil {
			asked <- req.Header.Get("Connection")
			_, _ = io.WriteString(c, answerJSON(200, "1"))
		}
	})
	for i, want := range []string{"", "close"} {
		req, _ := post(t, t.Context(), url, []byte("{}"))
		res, err := p.carry(req, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, _ = io.ReadAll(res.Body)
		if got := <-asked; got != want {
			t.Errorf("request %d was sent with Connection %q, want %q", i, got, want)
		}
		p.plain.mu.Lock()
		kept := p.plain.idle[strings.TrimPrefix(url, "http://")]
		p.plain.mu.Unlock()
		for _, l := range kept {
			waitFor(t, "the close", func() bool { return closedByPeer(l.Conn) })
			p.plain.mu.Lock()
			l.since = time.Now() // however long that took
			p.plain.mu.Unlock()
		}
	}
}

func TestIdleConnectionsAreGivenUp(t *testing.T) {
	p, url := plainTo(t, 0, serveAll)
	req, _ := post(t, t.Context(), url, []byte("{}"))
	res, err := p.carry(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(res.Body)
	p.plain.mu.Lock()
	if p.plain.kept != 1 || p.plain.sweep == nil {
		t.Fatalf("%d connections are kept, want 1 and a timer", p.plain.kept)
	}
	for _, list := range p.plain.idle {
		list[0].since = list[0].since.Add(-idlePlain)
	}
	p.plain.mu.Unlock()
	p.plain.sweepIdle()
	if p.plain.kept != 0 || len(p.plain.idle) != 0 || p.plain.sweep != nil {
		t.Errorf("%d connections are kept after their time, for %d addresses", p.plain.kept, len(p.plain.idle))
	}
}

func TestHeadOverTheLimit(t *testing.T) {
	p, url := plainTo(t, 0, func(c net.Conn) {
		_, _ = request(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		line := "X-Long: " + strings.Repeat("x", 1<<20) + "\r\n"
		for range 2 * maxHead >> 20 {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	req, _ := post(t, t.Context(), url, []byte("{}"))
	if res, err := p.carry(req, nil); err == nil || !strings.Contains(err.Error(), "malformed") {
		t.Errorf("%v, %v; want an error that says malformed", res, err)
	}
}

func TestNoHeaderBreaksTheHead(t *testing.T) {
	req, _ := post(t, t.Context(), "http://127.0.0.1:1/", nil)
	for _, value := range []string{"a\r\nX-Smuggled: 1", "a\nb", "a\x00"} {
		req.Header.Set("X-Test", value)
		if head, err := appendHead(nil, req, nil, false); err == nil {
			t.Errorf("%q went into the head %q", value, head)
		}
	}
}

// TestHeadersSentAreNobodyElses has requests at once whose headers have names
// that no other has. One that is carried by RoundTrip keeps its header.
func TestHeadersSentAreNobodyElses(t *testing.T) {
	p, url := plainTo(t, 0, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			names := ""
			for name := range req.Header {
				if strings.HasPrefix(name, "X-") {
					names += name
				}
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(names), names)
		}
	})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				name := fmt.Sprintf("X-%d-%d", i, j)
				req, up := post(t, t.Context(), url, []byte("body"))
				req.Header = withoutHop(http.Header{name: {"a"}, "X-Hop": {"b"}, "Connection": {"X-Hop"}})
				carry := p.RoundTrip
				if j%2 > 0 {
					carry = func(req *http.Request) (*http.Response, error) { return p.carry(req, nil) }
				}
				res, err := carry(req)
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := io.ReadAll(res.Body); string(text) != name || err != nil {
					t.Errorf("%s: the server got %q, %v", name, text, err)
				}
				if j%2 == 0 && (len(req.Header) != 1 || req.Header.Get(name) != "a") {
					t.Errorf("%s: RoundTrip left %v", name, req.Header)
				}
				up.release()
			}
		})
	}
	all.Wait()
}
