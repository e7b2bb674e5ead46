package router

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentop/router/config"
	"agentop/router/fakeserver"
)

// The tests of this file are named by the ids of known failures of other
// proxies: methods, paths and headers of requests.

func TestKF_R7_BetaFlagsArriveCompleteAndInOrder(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"Anthropic-Beta", "Openai-Beta"} {
		for _, values := range [][]string{
			{"oauth-2025-04-20,made-up-2099-01-01, context-1m-2025-08-07"},
			{"z-first", "a-second,b-third", ""},
		} {
			header := claudeHeader("s1")
			header[name] = values
			read(t, b.do("POST", "/claude-code/v1/messages?beta=true", strings.NewReader(claudeBody(user("hello"))), header))
			if got := b.last("a").Header[name]; !slices.Equal(got, values) {
				t.Errorf("%s = %q, want %q", name, got, values)
			}
		}
	}
}

func TestKF_R8_MethodPathAndQueryArriveAsSent(t *testing.T) {
	b := newBench(t, nil)
	cases := []struct{ method, path, query string }{
		{"POST", "/v1/messages", "beta=true"}, {"POST", "/v1/messages/count_tokens", "beta=true"},
		{"GET", "/v1/models", "a=1&a=2&b"}, {"GET", "/v1/models", "x=%zz&;y=%20+%2B&%C3%A4=ä&#frag?&&"},
		{"GET", "/v1/models/zai%2Fglm-5%20x", ""}, {"GET", "/v1/models//x", ""}, {"GET", "/v1/models/%61", ""},
		{"GET", "/v1/models/a|b^c\"d{}`<>[]\\\xff", "q=|"}, {"GET", "/v1/models/..%2f../x/./..", ""}, {"GET", "/v1/models;a=b/c:d@e!$&'()*+,=", ""},
		{"DELETE", "/v1/files/x", ""}, {"PUT", "/v1/files/x", "?"}, {"PROPFIND", "/v1/files", ""},
	}
	for _, c := range cases {
		target := c.path
		if c.query != "" {
			target += "?" + c.query
		}
		raw := fmt.Sprintf("%s /claude-code%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nAnthropic-Version: 2023-06-01\r\nConnection: close\r\n\r\n", c.method, target, strings.TrimPrefix(b.url, "http://"))
		b.raw(raw)
		var rec *fakeserver.Record
		for _, name := range []string{"a", "own"} {
			if list := b.servers[name].Records(); len(list) > 0 {
				rec = list[len(list)-1]
			}
			b.servers[name].Reset()
			if rec != nil {
				break
			}
		}
		if rec == nil {
			t.Errorf("%s %s reached no server", c.method, target)
			continue
		}
		if rec.Query != c.query || rec.Method != c.method || rec.Header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("sent %s %s, came %s %s?%s", c.method, target, rec.Method, rec.Path, rec.Query)
		}
	}
}

// raw sends bytes to the proxy on a connection of their own, and returns what
// came back until the end.
func (b *bench) raw(text string) string {
	b.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		b.t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		b.t.Fatalf("after %q: %v", answer, err)
	}
	return string(answer)
}

func TestKF_R8_RequestTargetsArriveByteForByte(t *testing.T) {
	targets := make(chan string, 1)
	b := newBench(t, nil)
	base := upstream(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		line, _ := r.ReadString('\n')
		for l := line; strings.TrimSpace(l) != ""; l, _ = r.ReadString('\n') {
		}
		targets <- strings.Fields(line)[1]
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	for _, target := range []string{
		"/v1/models", "/v1/models?", "/v1/models??", "/v1/models?a=1&a=2;b=%zz&#f", "/v1/models/a|b^c\"d{}`<>\\", "/v1/models/\xc3\xa4\xff",
		"/v1/models/%c3%A4%2F%2f", "/v1/models//x", "/v1/models/../x/.", "/v1/models;a=b/c:d@e!$&'()*+,=[]~", "/v1/models?q=\xff\xfe|^", "/v1/models#x",
	} {
		for _, prefix := range []string{"", "/some%2Fprefix"} {
			b.only(base+prefix, "key: none")
			b.raw("GET /claude-code" + target + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(b.url, "http://") + "\r\nConnection: close\r\n\r\n")
			if got := <-targets; got != prefix+target {
				t.Errorf("sent %q, came %q", prefix+target, got)
			}
		}
	}
}

// joining is a base URL with more of its server's settings, a client's path,
// and the path that must arrive.
type joining struct{ base, more, path, want string }

func joins(t *testing.T, cases ...joining) {
	t.Helper()
	for _, c := range cases {
		b := newBench(t, nil)
		b.configure(fmt.Sprintf("servers:\n  a: {url: %q, key: none%s}\nagents:\n  claude-code: {server: a, upstream: none}\n  codex: {server: a, upstream: none}\n", fmt.Sprintf(c.base, b.servers["a"].URL()), c.more))
		read(t, b.do("POST", c.path, strings.NewReader("{}"), nil))
		if got := b.last("a").Path; got != c.want {
			t.Errorf("base %q%s, path %s: came as %q, want %q", c.base, c.more, c.path, got, c.want)
		}
	}
}

func TestKF_R9_OneSlashAtTheSeam(t *testing.T) {
	joins(t,
		joining{"%s", "", "/claude-code/v1/messages", "/v1/messages"},
		joining{"%s/", "", "/claude-code/v1/messages", "/v1/messages"},
		joining{"%s//", "", "/claude-code/v1/messages", "/v1/messages"},
		joining{"%s/glm//", "", "/claude-code/v1/messages", "/glm/v1/messages"},
		joining{"%s", "", "/claude-code//v1/messages", "/v1/messages"},
	)
	for _, base := range []string{" %s ", "%s/ ", "\t%s"} { // stray white space is taken off, or refused with the place
		text := fmt.Sprintf(base, "http://127.0.0.1:1")
		c, err := config.Parse("c.yaml", fmt.Appendf(nil, "servers:\n  a: {url: %q}\n", text))
		if err == nil && c.Servers[0].URL != "http://127.0.0.1:1" && c.Servers[0].URL != "http://127.0.0.1:1/" || err != nil && !strings.Contains(err.Error(), "c.yaml:2:") {
			t.Errorf("base %q: %v, %+v", text, err, c)
		}
	}
}

func TestKF_R10_V1IsNotDoubled(t *testing.T) {
	joins(t,
		joining{"%s/v1", "", "/claude-code/v1/messages", "/v1/messages"},
		joining{"%s/v1/", "", "/claude-code/v1/messages/count_tokens", "/v1/messages/count_tokens"},
		joining{"%s", "", "/codex/responses", "/v1/responses"},
		joining{"%s/v1/", "", "/codex/responses", "/v1/responses"},
		joining{"%s/v1", "", "/codex/v1/responses", "/v1/responses"},
	)
	for url, want := range map[string]string{
		"http://a/v1/messages": "write http://a", "http://a/v1/responses": "write http://a", "http://a/v1/chat/completions": "write http://a",
		"http://a/glm/v1/messages": "write http://a/glm", "http://a/responses": "write http://a", "http://a/v1/models": "write http://a",
	} {
		if _, err := config.Parse("c.yaml", []byte("servers:\n  a: {url: "+url+"}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a whole endpoint as a base URL, %s: %v, want %q", url, err, want)
		}
	}
}

func TestKF_R11_AServerWithoutV1CanBeReached(t *testing.T) {
	joins(t,
		joining{"%s/openai", ", v1: strip", "/codex/v1/responses", "/openai/responses"},
		joining{"%s/openai", ", v1: strip", "/codex/responses", "/openai/responses"},
		joining{"%s/openai/", ", v1: strip", "/claude-code/v1/messages", "/openai/messages"},
		joining{"%s", ", v1: strip", "/codex/v1/models", "/models"},
		joining{"%s/openai", ", v1: keep", "/codex/responses", "/openai/v1/responses"},
	)
}

func TestKF_R9_WrongBaseURLsAreShown(t *testing.T) {
	for _, c := range []struct {
		name, want string
		behave     fakeserver.Behaviour
	}{
		{"HTML 200", "web page", fakeserver.HTML()},
		{"text 404", "no such path (404)", fakeserver.Behaviour{Status: 404, Media: "text/plain", Body: []byte("404 page not found\n")}},
		{"redirect", "redirects elsewhere (308)", fakeserver.Redirect(308, "https://example.com/")},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, scripted(c.behave))
			log := b.watchLog()
			res := b.claude("s1", user("hello"))
			if body := read(t, res); res.StatusCode != c.behave.Status || body != string(c.behave.Body) {
				t.Errorf("the answer did not pass as it is: %d %q", res.StatusCode, body)
			}
			for _, want := range []string{"wrong base URL", "server=a", b.servers["a"].URL() + "/v1/messages"} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q:\n%s", want, log)
				}
			}
			s, _ := b.config().Server("a")
			if health, _, _, _ := b.router.ServerState(s); !strings.Contains(health.Error, c.want) {
				t.Errorf("status shows %+v, want %q", health, c.want)
			}
		})
	}
}

func TestKF_R12_ProbesAreAnsweredAndMakeNoPin(t *testing.T) {
	b := newBench(t, nil)
	for _, key := range []string{"", "sk-fake-client"} {
		for _, base := range []string{"", "/claude-code"} {
			for _, c := range []struct {
				method, path string
				ours         bool
				status       int
			}{
				{"HEAD", "/", true, 200}, {"HEAD", "/api/hello", true, 200}, {"HEAD", "", true, 200},
				{"GET", "/", false, 200}, {"GET", "/v1/models", false, 200}, {"GET", "/v1/models/x", false, 404},
			} {
				header := http.Header{"User-Agent": {"claude-cli/2.1.332 (external, cli)"}}
				if key != "" {
					header.Set("X-Api-Key", key)
				}
				before := b.servers["a"].Arrivals() + b.servers["own"].Arrivals()
				path := base + c.path
				if path == "" {
					path = "/"
				}
				res := b.do(c.method, path, nil, header)
				read(t, res)
				passed := b.servers["a"].Arrivals()+b.servers["own"].Arrivals() > before
				if res.StatusCode != c.status || passed == c.ours {
					t.Errorf("%s %s: %d, passed on %v", c.method, path, res.StatusCode, passed)
				}
			}
		}
	}
	if len(b.pins.values) != 0 {
		t.Errorf("pins were made: %v", b.pins.values)
	}
}

func TestKF_R13_NoCountTokensIsNoFault(t *testing.T) {
	for _, missing := range []fakeserver.Behaviour{
		{Status: 404, Body: []byte(`{"detail":"Not Found"}`)},
		{Status: 404, Media: "text/plain", Body: []byte("404 page not found\n")},
	} {
		b := newBench(t, func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
			if strings.HasSuffix(rec.Path, "/count_tokens") {
				return missing
			}
			return fakeserver.Behaviour{}
		})
		read(t, b.claude("s1", user("hello")))
		s, _ := b.config().Server("a")
		before, _, _, _ := b.router.ServerState(s)
		pins := fmt.Sprint(b.pins.values)
		res := b.post("/claude-code/v1/messages/count_tokens", claudeBody(user("hello")), claudeHeader("s1"))
		if body := read(t, res); res.StatusCode != 404 || body != string(missing.Body) {
			t.Errorf("count_tokens: %d %q", res.StatusCode, body)
		}
		after, _, _, _ := b.router.ServerState(s)
		if after.State != before.State || after.Error != before.Error || fmt.Sprint(b.pins.values) != pins {
			t.Errorf("health %+v became %+v, or the pin changed", before, after)
		}
		if res := b.claude("s1", user("hello")); res.StatusCode != 200 {
			t.Errorf("the next message: %d", res.StatusCode)
		}
	}
}

func TestKF_R14_WebSocketsGetOneCleanAnswer(t *testing.T) {
	b := newBench(t, nil)
	upgrade := func(path string) string {
		return b.raw("GET " + path + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(b.url, "http://") +
			"\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" +
			"User-Agent: codex_cli_rs/0.171.0\r\nAuthorization: Bearer sk-fake\r\n\r\nGET /-/healthy HTTP/1.1\r\nHost: " + strings.TrimPrefix(b.url, "http://") + "\r\nConnection: close\r\n\r\n")
	}
	for _, path := range []string{"/codex/v1/responses", "/codex/responses", "/v1/responses", "/codex/v1/realtime"} {
		got := upgrade(path)
		if !strings.HasPrefix(got, "HTTP/1.1 426 ") || !strings.Contains(got, RouteHeader+": agent=codex;") || !strings.Contains(got, "agentop: ") {
			t.Errorf("%s: %s", path, got)
		}
		if !strings.HasSuffix(got, "agentop is here\n") {
			t.Errorf("%s: the connection was not good for another request: %s", path, got)
		}
	}
	if n := b.servers["a"].Arrivals() + b.servers["own"].Arrivals(); n != 0 {
		t.Errorf("%d requests were passed on", n)
	}
	res := b.do("GET", "/codex/v1/responses", nil, nil)
	read(t, res)
	if n := b.servers["a"].Arrivals() + b.servers["own"].Arrivals(); n != 1 {
		t.Errorf("an ordinary GET was passed on %d times, want once", n)
	}
}

func TestKF_R15_ExpectContinueIsAnsweredAtOnce(t *testing.T) {
	b := newBench(t, nil)
	log := b.watchLog()
	for _, chunked := range []bool{false, true} {
		body := bigClaude(2 << 20)
		c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		framing := fmt.Sprintf("Content-Length: %d", len(body))
		if chunked {
			framing = "Transfer-Encoding: chunked"
		}
		fmt.Fprintf(c, "POST /claude-code/v1/messages HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\n%s\r\nX-Claude-Code-Session-Id: s%v\r\nConnection: close\r\n\r\n", c.RemoteAddr(), framing, chunked)
		asked := time.Now()
		r := bufio.NewReader(c)
		line, err := r.ReadString('\n')
		if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		t.Logf("100 Continue after %v", time.Since(asked))
		_, _ = r.ReadString('\n')
		if chunked {
			fmt.Fprintf(c, "%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		} else {
			_, _ = io.WriteString(c, body)
		}
		answer, err := io.ReadAll(r)
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) {
			t.Errorf("answer %.200s, %v", answer, err)
		}
		_ = c.Close()
		rec := b.last("a")
		if string(rec.Body) != body || rec.Header.Get("Expect") != "" {
			t.Errorf("the server got %d bytes, Expect %q", len(rec.Body), rec.Header.Get("Expect"))
		}
	}
	if got := b.servers["a"].Arrivals(); got != 2 {
		t.Errorf("the server got %d requests, want 2", got)
	}
	if strings.Contains(log.String(), "panic") {
		t.Errorf("the log tells of a panic: %s", log)
	}
}

func TestKF_R16_ConnectionHeadersEndHere(t *testing.T) {
	b := newBench(t, nil)
	b.choose("")
	raw := "POST /claude-code/v1/messages HTTP/1.1\r\nHost: " + strings.TrimPrefix(b.url, "http://") + "\r\n" +
		"Connection: close, foo, X-Forwarded-For, Upgrade, HTTP2-Settings, TE\r\nfoo: x\r\nX-Forwarded-For: 10.9.9.9\r\nTE: trailers, deflate\r\nTrailer: X-Sum\r\n" +
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nProxy-Authorization: Basic Zm9v\r\nProxy-Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n" +
		"Transfer-Encoding: chunked\r\nX-Claude-Code-Session-Id: s1\r\nX-Kept: 1\r\nX-Kept: 2\r\nX-Empty:\r\nVia: 1.0 fred\r\nForwarded: for=1.2.3.4\r\nX-Real-Ip: 1.2.3.4\r\nX-Upstream: http://evil.example\r\nCookie: a=b\r\nDate: yesterday\r\nContent-MD5: x\r\n\r\n" +
		"2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n"
	b.raw(raw)
	got := b.last("own").Header.Clone()
	want := http.Header{
		"X-Claude-Code-Session-Id": {"s1"}, "X-Kept": {"1", "2"}, "X-Empty": {""}, "Via": {"1.0 fred"}, "Forwarded": {"for=1.2.3.4"}, "X-Real-Ip": {"1.2.3.4"},
		"X-Upstream": {"http://evil.example"}, "Cookie": {"a=b"}, "Date": {"yesterday"}, "Content-Md5": {"x"}, "Content-Length": {"2"},
	}
	for name := range want {
		if !slices.Equal(got[name], want[name]) {
			t.Errorf("%s = %q, want %q", name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("headers that should not be there: %v", got)
	}
}

func TestKF_R16_NothingIsInvented(t *testing.T) {
	heads := make(chan string, 1)
	base := upstream(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		var head strings.Builder
		for {
			line, err := r.ReadString('\n')
			head.WriteString(line)
			if err != nil || line == "\r\n" {
				break
			}
		}
		heads <- head.String()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	})
	b := newBench(t, nil)
	b.only(base, "key: none")
	u, _ := url.Parse(base)
	for _, c := range []struct{ method, more, body, want string }{
		{"GET", "", "", ""}, {"POST", "Content-Length: 0\r\n", "", "Content-Length: 0\r\n"}, {"DELETE", "", "", ""},
		{"PUT", "", "", "Content-Length: 0\r\n"}, {"GET", "Content-Length: 2\r\n", "{}", "Content-Length: 2\r\n"},
		{"POST", "Content-Length: 0\r\nIdempotency-Key: k\r\n", "", "Content-Length: 0\r\nidempotency-key: k\r\n"},
	} {
		answer := b.raw(c.method + " /claude-code/v1/files HTTP/1.1\r\nHost: " + strings.TrimPrefix(b.url, "http://") + "\r\nConnection: close\r\n" + c.more + "\r\n" + c.body)
		if len(heads) == 0 {
			t.Fatalf("%s: nothing reached the server: %s", c.method, answer)
		}
		// A server that closes without saying so is asked to close.
		if got, want := strings.Replace(<-heads, "Connection: close\r\n", "", 1), c.method+" /v1/files HTTP/1.1\r\nHost: "+u.Host+"\r\n"+c.want+"\r\n"; got != want {
			t.Errorf("the server got\n%q, want\n%q", got, want)
		}
		if head, _, _ := strings.Cut(answer, "\r\n\r\n"); strings.Contains(head, "Date:") || strings.Contains(head, "Content-Type:") {
			t.Errorf("the answer has headers that nobody sent: %q", head)
		}
	}
}
