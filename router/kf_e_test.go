package router

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/fakeserver"
)

// The tests of this file are named by the ids of known failures of other
// proxies: errors and retries.

func TestKF_E1_AnErrorOfTheServerPassesUntouchedAndOnce(t *testing.T) {
	for _, status := range []int{400, 401, 402, 403, 404, 408, 413, 418, 422, 429, 500, 502, 503, 504, 529, 599} {
		passesOnce(t, status, http.Header{
			"Retry-After": {"7"}, "Request-Id": {"req_up"}, "Anthropic-Ratelimit-Requests-Remaining": {"0"}, "Anthropic-Ratelimit-Requests-Reset": {"2026-01-02T03:04:05Z"},
			"X-Ratelimit-Reset-Tokens": {"6m0s"}, "Retry-After-Ms": {"7000"}, "Www-Authenticate": {`Bearer realm="x"`}, "Set-Cookie": {"a=1", "b=2"},
		})
	}
	passesOnce(t, 429, http.Header{"Retry-After": {"Wed, 21 Oct 2026 07:28:00 GMT"}})
	passesOnce(t, 503, http.Header{"Retry-After": {"3600", "7"}})
}

// What the server says of trying again reaches the client, whatever the status
// and however it is written, and agentop adds no word of its own.
func TestKF_E2_ShouldRetryReachesTheClient(t *testing.T) {
	for _, status := range []int{400, 401, 408, 409, 429, 500, 503, 529} {
		for _, says := range [][]string{{"true"}, {"false"}, {"TRUE"}, {"maybe"}, {"true", "false"}, nil} {
			passesOnce(t, status, http.Header{"X-Should-Retry": says})
		}
	}
}

// passesOnce has a server, and the agents' own upstream, answer with an error in
// each format, and asserts that it comes as it is and that it was asked for once.
func passesOnce(t *testing.T, status int, sent http.Header) {
	t.Helper()
	body := fmt.Sprintf("{ \"error\": {\"type\":\"made_up\", \"message\":\"prompt is too long: %d\"}}\n", status)
	b := newBench(t, scripted(fakeserver.Behaviour{Status: status, Header: sent, Body: []byte(body)}))
	asked := 0
	for _, choice := range []string{"a", ""} {
		b.choose(choice)
		for _, f := range formats {
			asked++
			res := b.do("POST", f.path, strings.NewReader(f.body), nil)
			if got := read(t, res); got != body || res.StatusCode != status {
				t.Errorf("%s %d: came as %d %q", f.name, status, res.StatusCode, got)
			}
			for name, want := range sent {
				if !slices.Equal(res.Header[name], want) {
					t.Errorf("%s %d: %s = %q, want %q", f.name, status, name, res.Header[name], want)
				}
			}
			if n := b.servers["a"].Arrivals() + b.servers["b"].Arrivals() + b.servers["own"].Arrivals(); n != asked {
				t.Errorf("%s %d: %d requests arrived, want %d", f.name, status, n, asked)
			}
		}
	}
	if b.servers["own"].Arrivals() == 0 {
		t.Error("the own upstream was not asked")
	}
}

func TestKF_E3_OwnErrorsAreInTheFormatOfTheClient(t *testing.T) {
	cases := []struct {
		name   string
		config string
		header http.Header
		status int
		text   string
	}{
		{"no server", "agents:\n  claude-code: {upstream: none}\n  codex: {upstream: none}\n  opencode: {upstream: none}\n", nil, 400, "server use"},
		{"session id too long", "", http.Header{"X-Dynamo-Session-Id": {strings.Repeat("x", 257)}}, 400, "session id"},
		{"body refused", "", http.Header{"Content-Encoding": {"rot13"}}, 400, "Content-Encoding"},
		{"server down", "servers:\n  a: {url: http://127.0.0.1:1, key: none}\nagents:\n  claude-code: {server: a}\n  codex: {server: a}\n  opencode: {server: a}\n", nil, 503, `server \"a\"`},
		{"foreign page", "", http.Header{"Origin": {"https://evil.example"}}, 403, "refused"},
	}
	for _, c := range cases {
		for _, f := range formats {
			t.Run(c.name+" "+f.name, func(t *testing.T) {
				b := newBench(t, nil)
				log := b.watchLog()
				if c.config != "" {
					b.configure(c.config)
				}
				res := b.do("POST", f.path, strings.NewReader(f.body), c.header)
				body := read(t, res)
				if res.StatusCode != c.status || !strings.Contains(body, c.text) {
					t.Errorf("%d %s, want %d and %q", res.StatusCode, body, c.status, c.text)
				}
				if got := res.Header.Get("Retry-After"); (got != "") != (c.status == 503) {
					t.Errorf("Retry-After = %q", got)
				}
				checkShape(t, f.name, res, body)
				if id := res.Header.Get("X-Request-Id"); id == "" || strings.ContainsAny(id, "0123456789") || c.status != 503 && !strings.Contains(log.String(), id) {
					t.Errorf("request id %q has digits, or is not in the log:\n%s", id, log)
				}
			})
		}
	}
}

// checkShape asserts that an error is one of agentop's, as a client of the
// format reads it.
func checkShape(t *testing.T, format string, res *http.Response, body string) {
	t.Helper()
	var e struct {
		Type  string `json:"type"`
		Error struct {
			Type, Message, Code, Source string
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("error %q: %v", body, err)
	}
	if res.Header.Get("Content-Type") != "application/json" || res.Header.Get(RouteHeader) == "" {
		t.Errorf("headers %v", res.Header)
	}
	if !strings.HasPrefix(e.Error.Message, "agentop: ") || e.Error.Type == "" || e.Error.Source != "agentop" {
		t.Errorf("error %+v", e.Error)
	}
	if messages := format == "messages"; messages != (e.Type == "error") || messages == (e.Error.Code != "") {
		t.Errorf("shape of %s: %s", format, body)
	}
}

func TestKF_E4_Unknown404sAreOursAndSaySo(t *testing.T) {
	b := newBench(t, nil)
	res := b.do("GET", "/favicon.ico", nil, nil)
	body := read(t, res)
	checkShape(t, "", res, body)
	if res.StatusCode != 404 || !strings.Contains(body, "favicon.ico") || !strings.Contains(body, "claude-code, codex, opencode") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestKF_E5_AMissingModelIsTheServersAnswer(t *testing.T) {
	b := newBench(t, func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
		if rec.Model == "small" {
			return fakeserver.Failure(rec, 404, "not_found_error", "model: small")
		}
		return fakeserver.Behaviour{}
	})
	body := strings.Replace(claudeBody(user("hello")), "claude-opus-5-5", "small", 1)
	res := b.post("/claude-code/v1/messages", body, claudeHeader("s1"))
	if got := read(t, res); res.StatusCode != 404 || !strings.Contains(got, "model: small") || strings.Contains(got, "agentop") {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	if n := b.servers["a"].Arrivals(); n != 1 {
		t.Errorf("%d arrivals, want 1", n)
	}
	b.only(b.servers["a"].URL(), `key: none, rename: {small: large}`)
	read(t, b.post("/claude-code/v1/messages", body, claudeHeader("s2")))
	if got := b.last("a").Model; got != "large" {
		t.Errorf("the server was asked for %q, want large from the start", got)
	}
}

func TestKF_E7_NeverTwiceOverHTTP2(t *testing.T) {
	var arrivals atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		if req.Header.Get("X-Warm") != "" {
			_, _ = fmt.Fprint(w, req.Proto)
			return
		}
		arrivals.Add(1)
		panic(http.ErrAbortHandler) // RST_STREAM
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	b := newBench(t, nil)
	b.only(srv.URL, "key: none, insecure_skip_verify: true")
	for i, method := range []string{"POST", "GET", "DELETE", "PUT"} {
		if got := read(t, b.do("GET", "/codex/v1/files", nil, http.Header{"X-Warm": {"1"}})); got != "HTTP/2.0" {
			t.Fatalf("the server was spoken to in %s", got)
		}
		res := b.do(method, "/codex/v1/files", strings.NewReader("{}"), http.Header{"Idempotency-Key": {"k"}})
		body := read(t, res)
		if n := arrivals.Load(); n != int64(i+1) || res.StatusCode != 503 {
			t.Errorf("%s: %d arrivals, want %d; %d %s", method, n, i+1, res.StatusCode, body)
		}
	}
}

// child runs this test binary again for one test, in another environment.
func child(t *testing.T, test string, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), append(env, "AGENTOP_TEST_CHILD=1")...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%s with %v: %v\n%s", test, env, err, out)
	}
}

// inChild skips a test that only makes sense in the environment of child.
func inChild(t *testing.T) {
	t.Helper()
	if os.Getenv("AGENTOP_TEST_CHILD") == "" {
		t.Skip("runs in a child only")
	}
}

func TestKF_E8_ProxyVariables(t *testing.T) {
	child(t, "TestChildProxyVariables", "HTTPS_PROXY=http://user:sk-fake-password@127.0.0.1:9", "HTTP_PROXY=http://user:sk-fake-password@127.0.0.1:9",
		"NO_PROXY=.direct.invalid,192.168.0.0/16,exact.invalid:8443", "no_proxy=", "https_proxy=", "http_proxy=")
	child(t, "TestChildProxyIsNoURL", "HTTPS_PROXY=http://user:sk-fake-password@[::1", "https_proxy=")
}

func TestChildProxyVariables(t *testing.T) {
	inChild(t)
	for _, c := range []struct{ url, proxy string }{
		{"http://127.0.0.1:8000", ""}, {"http://localhost:8000", ""}, {"http://[::1]:8000", ""}, {"https://127.9.9.9", ""},
		{"https://x.direct.invalid", ""}, {"http://192.168.3.4:8000", ""}, {"https://exact.invalid:8443", ""},
		{"https://exact.invalid", "http://127.0.0.1:9"}, {"https://api.invalid", "http://127.0.0.1:9"}, {"http://10.0.0.1", "http://127.0.0.1:9"},
	} {
		u, _ := config.Parse("c", []byte("servers:\n  a: {url: \""+c.url+"\"}\n"))
		req, _ := http.NewRequest("POST", u.Servers[0].URL, nil)
		if got := proxyOf(req.URL); got != c.proxy {
			t.Errorf("the way to %s goes through %q, want %q", c.url, got, c.proxy)
		}
	}
	b := newBench(t, nil)
	read(t, b.claude("s1", user("hello"))) // loopback is direct
	if b.servers["a"].Arrivals() != 1 {
		t.Error("a server on loopback was not asked directly")
	}
	log := b.watchLog()
	b.only("https://api.invalid", "key: none")
	body := read(t, b.do("POST", "/claude-code/v1/messages", strings.NewReader("{}"), nil))
	if !strings.Contains(body, "HTTP proxy http://127.0.0.1:9 on the way to server") || !strings.Contains(body, "NO_PROXY") {
		t.Errorf("the error does not name the proxy: %s", body)
	}
	if strings.Contains(body+log.String(), "sk-fake-password") {
		t.Error("the proxy's password is shown")
	}
}

func TestChildProxyIsNoURL(t *testing.T) {
	inChild(t)
	b := newBench(t, nil)
	log := b.watchLog()
	b.only("https://api.invalid", "key: none")
	body := read(t, b.do("POST", "/claude-code/v1/messages", strings.NewReader("{}"), nil))
	if !strings.Contains(body, "HTTPS_PROXY") || strings.Contains(body+log.String(), "sk-fake-password") {
		t.Errorf("error %s\nlog %s", body, log)
	}
}

func TestKF_E8_AProxyThatRefusesIsNamed(t *testing.T) {
	base := upstream(t, func(c net.Conn) {
		if req, _ := request(bufio.NewReader(c)); req != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		}
	})
	child(t, "TestChildProxyRefuses", "HTTPS_PROXY="+base, "https_proxy=", "NO_PROXY=", "no_proxy=")
}

func TestChildProxyRefuses(t *testing.T) {
	inChild(t)
	b := newBench(t, nil)
	b.only("https://api.invalid", "key: none")
	body := read(t, b.do("POST", "/claude-code/v1/messages", strings.NewReader("{}"), nil))
	if want := "HTTP proxy " + os.Getenv("HTTPS_PROXY") + ` on the way to server \"a\" answered 407`; !strings.Contains(body, want) {
		t.Errorf("error %s, want %q", body, want)
	}
}

func TestKF_E9_LocalhostMayBeEitherFamily(t *testing.T) {
	for _, host := range []string{"[::1]", "127.0.0.1"} {
		l, err := net.Listen("tcp", host+":0")
		if err != nil {
			if os.Getenv("AGENTOP_TEST_REQUIRE") != "" {
				t.Fatal(err)
			}
			t.Logf("not tried on %s: %v", host, err)
			continue
		}
		s := fakeserver.New(fakeserver.Options{Name: "local"})
		s.Serve(l)
		b := newBench(t, nil)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		b.only("http://localhost:"+port, "key: none")
		res := b.claude("s1", user("hello"))
		if body := read(t, res); res.StatusCode != 200 {
			t.Errorf("a server on %s alone: %d %s", host, res.StatusCode, body)
		}
		_ = s.Close()
		body := read(t, b.claude("s2", user("hello")))
		if !strings.Contains(body, "tried ") || !strings.Contains(body, host+":"+port) {
			t.Errorf("the error lacks the addresses tried: %s", body)
		}
	}
}

func TestKF_E12_RedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		b := newBench(t, nil)
		elsewhere := b.servers["b"].URL() + "/v1/messages"
		b.servers["a"].Reset()
		base := upstream(t, func(c net.Conn) {
			if req, _ := request(bufio.NewReader(c)); req != nil {
				fmt.Fprintf(c, "HTTP/1.1 %d x\r\nLocation: %s\r\nContent-Length: 5\r\n\r\nmoved", status, elsewhere)
			}
		})
		b.configure(fmt.Sprintf("servers:\n  a: {url: %s, key: client}\nagents:\n  claude-code: {server: a}\n", base))
		log := b.watchLog()
		res := b.claude("s1", user("hello"))
		if body := read(t, res); res.StatusCode != status || res.Header.Get("Location") != elsewhere || body != "moved" {
			t.Errorf("%d: came as %d to %q with %q", status, res.StatusCode, res.Header.Get("Location"), body)
		}
		if b.servers["b"].Arrivals() != 0 {
			t.Errorf("%d: it was followed", status)
		}
		if !strings.Contains(log.String(), "wrong base URL") {
			t.Errorf("%d: the log does not say what to mend: %s", status, log)
		}
	}
}

// keyed are credentials for tests: one key for all servers, or an error.
type keyed struct {
	key credential.Secret
	err error
}

func (k keyed) Key(context.Context, *config.Server) (credential.Secret, error) { return k.key, k.err }
func (keyed) Rejected(string)                                                  {}

func TestKF_E13_ThreeKindsOfMissingKeysAreToldApart(t *testing.T) {
	const clientKey = "sk-fake-client"
	cases := []struct {
		name   string
		set    func(b *bench)
		status int
		texts  []string
		logged string
	}{
		{"agentop has none", func(b *bench) {
			b.only(b.servers["a"].URL(), "key: stored")
			b.router.Credentials = keyed{err: &credential.Error{Server: "a", Reason: "no key is stored for it", Do: "run `agentop server add a`"}}
		}, 400, []string{`server \"a\"`, "no key is stored for it", "agentop server add a", "the conversation is kept there", "agentop sessions move s1 SERVER"}, "class=key"},
		{"the server refuses ours", func(b *bench) {
			b.only(b.servers["a"].URL(), "key: stored")
			b.router.Credentials = keyed{key: credential.NewSecret("sk-fake-of-server")}
		}, 401, []string{"made_up"}, "the server refused its key"},
		{"the client lacks the token", func(b *bench) {
			b.configure("token: 0123456789abcdef0123\nagents:\n  claude-code: {upstream: none}\n")
		}, 400, []string{"secret path segment", "agentop agent enable"}, "class=token"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, scripted(fakeserver.Behaviour{Status: 401, Body: []byte(`{"error":{"type":"made_up"}}`)}))
			log := b.watchLog()
			c.set(b)
			res := b.claude("s1", user("hello"))
			body := read(t, res)
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", res.StatusCode, c.status, body)
			}
			listed := slices.ContainsFunc(b.router.Sessions(), func(s control.Session) bool { return s.ID == "s1" && s.Server == "a" })
			if pinned := len(b.pins.values) > 0; listed != pinned {
				t.Errorf("the conversation is pinned: %v, and listed: %v", pinned, listed)
			}
			for _, want := range c.texts {
				if !strings.Contains(body, want) {
					t.Errorf("%s lacks %q", body, want)
				}
			}
			line := ""
			for l := range strings.Lines(log.String()) {
				if strings.Contains(l, c.logged) {
					line += l
				}
			}
			if strings.Count(line, "\n") != 1 || !strings.Contains(line, "X-Api-Key") {
				t.Errorf("log lines %q, want one with header names", line)
			}
			if all := log.String() + body; strings.Contains(all, clientKey) || strings.Contains(all, "sk-fake-of-server") || strings.Contains(all, "0123456789abcdef") {
				t.Errorf("a secret is shown: %s", all)
			}
		})
	}
}
