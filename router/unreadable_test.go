package router

import (
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"strings"
	"testing"
)

// TestWhatIsNoHTTPIsAnsweredByAgentop holds that requests which net/http
// refuses by itself get an error in agentop's shape, with the route.
func TestWhatIsNoHTTPIsAnsweredByAgentop(t *testing.T) {
	b := newBench(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(b.router, log.New(io.Discard, "", 0))
	go func() { _ = s.Serve(NewRoom(slog.New(slog.NewTextHandler(io.Discard, nil))).Listen(l)) }()
	t.Cleanup(func() { _ = s.Close() })
	b.url = "http://" + l.Addr().String()
	head := "POST /claude-code/v1/messages HTTP/1.1\r\nHost: " + l.Addr().String() + "\r\n"
	for _, c := range []struct {
		name, request string
		status        int
		words         string
	}{
		{"garbage", "garbage\r\n\r\n", 400, "cannot be read"},
		{"a TLS handshake without an end of a line", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "send it as HTTP/1.1"},
		{"a control character", head + "X-Claude-Code-Session-Id: a\x01b\r\nContent-Length: 2\r\n\r\n{}", 400, "cannot be read"},
		{"no Host", "GET /-/healthy HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		{"too many headers", head + strings.Repeat("X-A: 0123456789\r\n", 40000) + "\r\n", 431, "headers are too large (256 KB"},
		{"an unknown transfer coding", head + "Transfer-Encoding: odd\r\n\r\n", 501, "cannot be read"},
	} {
		res := b.rawAnswer(c.request)
		body := read(t, res)
		var e struct {
			Type  string
			Error struct{ Type, Code, Message string }
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil || res.StatusCode != c.status || e.Type != "error" || e.Error.Code == "" ||
			!strings.HasPrefix(e.Error.Message, "agentop: ") || !strings.Contains(e.Error.Message, c.words) {
			t.Errorf("%s: %d %q (%v), want %d and %q", c.name, res.StatusCode, body, err, c.status, c.words)
		}
		if res.Header.Get(RouteHeader) == "" {
			t.Errorf("%s: no route", c.name)
		}
	}
}
