package router

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/control"
	"agentop/router/placement"
)

// crowd listens with room for limit connections and serves all with 200.
func crowd(t *testing.T, limit int) (*Room, string, *logged) {
	t.Helper()
	log := new(logged)
	room := &Room{log: slog.New(slog.NewTextHandler(log, nil)), limit: limit}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }), nil)
	go func() { _ = s.Serve(room.Listen(l)) }()
	t.Cleanup(func() { _ = s.Close() })
	return room, l.Addr().String(), log
}

// hold opens a connection, and uses it once so that it is known to be held.
func hold(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if res := exchange(t, c, address); res.StatusCode != 200 {
		t.Fatalf("status %d", res.StatusCode)
	}
	return c
}

func exchange(t *testing.T, c net.Conn, address string) *http.Response {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", address); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestLimitOfConnectionsIsToldAndPasses(t *testing.T) {
	room, address, log := crowd(t, 4)
	var held []net.Conn
	for range 4 {
		held = append(held, hold(t, address))
	}
	for range 3 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		res := exchange(t, c, address)
		body, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusServiceUnavailable || err != nil || !strings.Contains(string(body), "agentop: 4 connections are open") || res.Header.Get("Retry-After") == "" {
			t.Errorf("beyond the limit: %d %s, %v", res.StatusCode, body, err)
		}
		_ = c.Close()
	}
	if res := exchange(t, held[0], address); res.StatusCode != 200 {
		t.Errorf("a connection that is held got %d", res.StatusCode)
	}
	if n := strings.Count(log.String(), "turned away"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
	_ = held[0].Close()
	for end := time.Now().Add(patience); room.Open() > 3; {
		if time.Now().After(end) {
			t.Fatalf("%d connections are counted, want 3", room.Open())
		}
		time.Sleep(time.Millisecond) // between looks at another goroutine's work
	}
	hold(t, address)
}

func TestConnectionLimitLeavesFilesToOpen(t *testing.T) {
	if n := connectionLimit(); n < 16 || n > maxConnections {
		t.Errorf("limit %d", n)
	}
}

// 100,000 conversations of one client are neither kept nor slow.
func TestLimitOfRows(t *testing.T) {
	r := newRoster(func() bool { return true }, func(control.Session) {})
	at := time.Now()
	busy := placement.Conversation{Agent: agents.Codex, Session: "busy"}
	r.update(busy, func(s *control.Session) { s.Streams = 1 })
	for i := range 100_000 {
		c := placement.Conversation{Agent: agents.ClaudeCode, Session: fmt.Sprint(i)}
		r.update(c, func(s *control.Session) { s.LastTurn = at.Add(time.Duration(i)) })
	}
	if n := len(r.rows); n > maxRows {
		t.Errorf("%d rows, want at most %d", n, maxRows)
	}
	if _, ok := r.get(busy, at); !ok {
		t.Error("a conversation that streams was dropped")
	}
	for i := 100_000 - maxRows + maxRows/64 + 1; i < 100_000; i++ {
		if _, ok := r.get(placement.Conversation{Agent: agents.ClaudeCode, Session: fmt.Sprint(i)}, at); !ok {
			t.Fatalf("conversation %d was dropped before older ones", i)
		}
	}
}

func TestLimitOfHeaders(t *testing.T) {
	b := newBench(t, nil)
	port := b.serve("127.0.0.1:0")
	head := "POST /claude-code/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nContent-Length: 2\r\nConnection: close\r\n"
	for _, c := range []struct {
		name, headers string
		status        int
	}{
		{"many headers", strings.Repeat("X-A: 0123456789\r\n", 4000), 200},
		{"too many headers", strings.Repeat("X-A: 0123456789\r\n", 40000), 431},
		{"one long header", "X-A: " + strings.Repeat("a", 200<<10) + "\r\n", 200},
		{"one too long header", "X-A: " + strings.Repeat("a", 300<<10) + "\r\n", 431},
		{"id", "X-Claude-Code-Session-Id: " + strings.Repeat("a", 256) + "\r\n", 200},
		{"too long id", "X-Claude-Code-Session-Id: " + strings.Repeat("a", 257) + "\r\n", 400},
	} {
		res := b.rawAnswer(head + c.headers + "\r\n{}")
		if body := read(t, res); res.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %.300s", c.name, res.StatusCode, c.status, body)
		}
	}
}

// A body that says it is larger than the limit is refused before it is read.
func TestLimitOfBodies(t *testing.T) {
	b := newBench(t, nil)
	port := b.serve("127.0.0.1:0")
	b.configure(fmt.Sprintf("max_body: 1MB\nservers:\n  a: {url: %s, key: none}\nagents:\n  claude-code: {server: a, upstream: none}\n", b.servers["a"].URL()))
	head := "POST /claude-code/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nConnection: close\r\n"
	res := b.rawAnswer(head + "Content-Length: 99999999999\r\n\r\n")
	if body := read(t, res); res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(body, "max_body") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	sent := make(chan struct{})
	go func() { // it never says how long it is
		defer close(sent)
		_, _ = io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n")
		chunk := "10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n"
		for range 1000 {
			if _, err := io.WriteString(c, chunk); err != nil {
				return
			}
		}
	}()
	res, err = http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("endless body: %d", res.StatusCode)
	}
	_ = c.Close()
	<-sent
}

// A client that sends all before it reads must still get the reason.
func TestLimitIsToldToClientsThatSendFirst(t *testing.T) {
	b := newBench(t, nil)
	port := b.serve("127.0.0.1:0")
	b.configure(fmt.Sprintf("max_body: 1MB\nservers:\n  a: {url: %s, key: none}\nagents:\n  claude-code: {server: a, upstream: none}\n", b.servers["a"].URL()))
	for _, c := range []struct{ name, header, body string }{
		{"length told", "Content-Length: 20000000\r\n", strings.Repeat(" ", 20_000_000)},
		{"in chunks", "Transfer-Encoding: chunked\r\n", strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 700) + "0\r\n\r\n"},
	} {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, err = io.WriteString(conn, "POST /claude-code/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:"+port+"\r\nX-Claude-Code-Session-Id: s1\r\n"+c.header+"\r\n"+c.body)
		if err != nil {
			t.Fatalf("%s: the body could not be sent: %v", c.name, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if body := read(t, res); res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(body, "max_body") {
			t.Errorf("%s: %d %s", c.name, res.StatusCode, body)
		}
		if got := res.Header.Get(RouteHeader); !strings.HasPrefix(got, "agent=claude-code; session=s1;") {
			t.Errorf("%s: the route %q does not name the agent and session", c.name, got)
		}
		_ = conn.Close()
	}
}
