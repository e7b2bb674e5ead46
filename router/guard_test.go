package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/peer"
	"agentop/router/reqlog"
)

// serve puts the server that agents talk to in front of a bench, as the
// program does, and returns its port.
func (b *bench) serve(address string) string {
	b.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		b.t.Fatal(err)
	}
	s := NewServer(b.router, log.New(io.Discard, "", 0))
	go func() { _ = s.Serve(l) }()
	b.t.Cleanup(func() { _ = s.Close() })
	b.url = "http://" + l.Addr().String()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// raw sends bytes on a connection of their own and reads one answer.
func (b *bench) rawAnswer(request string) *http.Response {
	b.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, request); err != nil {
		b.t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		b.t.Fatalf("after %q: %v", request, err)
	}
	return res
}

// arrivals counts what all servers got.
func (b *bench) arrivals() (n int) {
	for _, s := range b.servers {
		n += s.Arrivals()
	}
	return n
}

// refusedByGuard asserts the guard's answer.
func (b *bench) refusedByGuard(what string, res *http.Response, method string) {
	b.t.Helper()
	body := read(b.t, res)
	if res.StatusCode != http.StatusForbidden {
		b.t.Errorf("%s: status %d, want 403", what, res.StatusCode)
	}
	if method != http.MethodHead && (!strings.Contains(body, "agentop: refused: ") || !strings.Contains(body, "on this machine")) {
		b.t.Errorf("%s: the answer does not explain itself: %q", what, body)
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			b.t.Errorf("%s: the answer has %s", what, name)
		}
	}
	if b.arrivals() != 0 {
		b.t.Fatalf("%s: a server was reached", what)
	}
}

// targets are one of each route.
var targets = []string{
	"/", "*", "/-/healthy", "/-/ready", "/-/metrics", "/-/other", "/api/hello", "/claude-code/v1/messages", "/claude-code/v1/messages/count_tokens",
	"/claude-code/v1/models", "/codex/v1/responses", "/opencode/openai/v1/chat/completions", "/v1/messages", "/nobody", "/../x", "//claude-code/v1/messages",
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"}

func TestPromise7_LocalOnly(t *testing.T) {
	b := newBench(t, nil)
	port := b.serve("127.0.0.1:0")
	for _, c := range []struct{ name, headers string }{
		{"rebound name", "Host: evil.example:" + port},
		{"rebound name and its origin", "Host: evil.example:" + port + "\r\nOrigin: http://evil.example:" + port},
		{"foreign origin", "Host: 127.0.0.1:" + port + "\r\nOrigin: https://evil.example"},
		{"foreign referer", "Host: 127.0.0.1:" + port + "\r\nReferer: https://evil.example/page"},
		{"other site", "Host: 127.0.0.1:" + port + "\r\nSec-Fetch-Site: cross-site"},
		{"websocket", "Host: 127.0.0.1:" + port + "\r\nOrigin: https://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket"},
	} {
		for _, target := range targets {
			for _, method := range methods {
				if target == "*" && method != "OPTIONS" {
					continue
				}
				what := c.name + ": " + method + " " + target
				b.refusedByGuard(what, b.rawAnswer(method+" "+target+" HTTP/1.1\r\n"+c.headers+"\r\nConnection: close\r\n\r\n"), method)
			}
		}
	}
	b.refusedByGuard("CONNECT", b.rawAnswer("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"), "CONNECT")
	b.refusedByGuard("whole URL", b.rawAnswer("GET http://evil.example/v1/models HTTP/1.1\r\nHost: 127.0.0.1:"+port+"\r\n\r\n"), "GET")
	b.refusedByGuard("no Host", b.rawAnswer("GET /-/healthy HTTP/1.0\r\n\r\n"), "GET")
	form := "Host: 127.0.0.1:" + port + "\r\nOrigin: null\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"
	b.refusedByGuard("form", b.rawAnswer("POST /claude-code/v1/messages HTTP/1.1\r\n"+form), "POST")
	for _, name := range []string{"127.0.0.1", "localhost", "LOCALHOST", "[::1]"} {
		res := b.rawAnswer("GET /-/healthy HTTP/1.1\r\nHost: " + name + ":" + port + "\r\n\r\n")
		if read(t, res); res.StatusCode != http.StatusOK {
			t.Errorf("Host %s: status %d, want 200", name, res.StatusCode)
		}
	}
}

func TestKF_X1_WebPagesAreRefusedBeforeRouting(t *testing.T) {
	const port = "4780"
	local := "127.0.0.1:" + port
	for _, c := range []struct {
		name, method string
		header       http.Header // with Host
		ok           bool
	}{
		{"address", "POST", http.Header{"Host": {local}}, true},
		{"name", "POST", http.Header{"Host": {"localhost:" + port}}, true},
		{"name in capitals", "POST", http.Header{"Host": {"LocalHost:" + port}}, true},
		{"name with the root's dot", "POST", http.Header{"Host": {"localhost.:" + port}}, true},
		{"two dots", "POST", http.Header{"Host": {"localhost..:" + port}}, false},
		{"IPv6", "POST", http.Header{"Host": {"[::1]:" + port}}, true},
		{"IPv6, long", "POST", http.Header{"Host": {"[0:0:0:0:0:0:0:1]:" + port}}, true},
		{"IPv4 in IPv6", "POST", http.Header{"Host": {"[::ffff:127.0.0.1]:" + port}}, true},
		{"other loopback address", "POST", http.Header{"Host": {"127.9.9.9:" + port}}, true},
		{"IPv6 with a zone", "POST", http.Header{"Host": {"[::1%25lo]:" + port}}, false},
		{"IPv6 without brackets", "POST", http.Header{"Host": {"::1:" + port}}, false},
		{"brackets around a name", "POST", http.Header{"Host": {"[localhost]:" + port}}, false},
		{"brackets around IPv4", "POST", http.Header{"Host": {"[127.0.0.1]:" + port}}, false},
		{"open bracket", "POST", http.Header{"Host": {"[::1:" + port}}, false},
		{"no port", "POST", http.Header{"Host": {"127.0.0.1"}}, false},
		{"no port, IPv6", "POST", http.Header{"Host": {"[::1]"}}, false},
		{"empty port", "POST", http.Header{"Host": {"127.0.0.1:"}}, false},
		{"other port", "POST", http.Header{"Host": {"127.0.0.1:80"}}, false},
		{"port with a zero", "POST", http.Header{"Host": {"127.0.0.1:04780"}}, false},
		{"port with a sign", "POST", http.Header{"Host": {"127.0.0.1:+4780"}}, false},
		{"port's prefix", "POST", http.Header{"Host": {"127.0.0.1:478"}}, false},
		{"longer port", "POST", http.Header{"Host": {"127.0.0.1:47800"}}, false},
		{"nothing", "POST", http.Header{}, false},
		{"suffix", "POST", http.Header{"Host": {"localhost.evil.example:" + port}}, false},
		{"prefix", "POST", http.Header{"Host": {"evil-localhost:" + port}}, false},
		{"subdomain", "POST", http.Header{"Host": {"x.localhost:" + port}}, false},
		{"address as a prefix", "POST", http.Header{"Host": {"127.0.0.1.nip.example:" + port}}, false},
		{"address with a dot", "POST", http.Header{"Host": {"127.0.0.1.:" + port}}, false},
		{"short address", "POST", http.Header{"Host": {"127.1:" + port}}, false},
		{"number", "POST", http.Header{"Host": {"2130706433:" + port}}, false},
		{"any address", "POST", http.Header{"Host": {"0.0.0.0:" + port}}, false},
		{"any IPv6", "POST", http.Header{"Host": {"[::]:" + port}}, false},
		{"another machine", "POST", http.Header{"Host": {"192.168.1.5:" + port}}, false},
		{"user info", "POST", http.Header{"Host": {"evil@localhost:" + port}}, false},

		{"own origin", "POST", http.Header{"Host": {local}, "Origin": {"http://" + local}}, true},
		{"own origin by name", "POST", http.Header{"Host": {local}, "Origin": {"http://localhost:" + port}}, true},
		{"empty origin", "POST", http.Header{"Host": {local}, "Origin": {""}}, true},
		{"null origin", "POST", http.Header{"Host": {local}, "Origin": {"null"}}, false},
		{"other port's origin", "POST", http.Header{"Host": {local}, "Origin": {"http://127.0.0.1:3000"}}, false},
		{"origin over TLS", "POST", http.Header{"Host": {local}, "Origin": {"https://" + local}}, false},
		{"origin with user info", "POST", http.Header{"Host": {local}, "Origin": {"http://x@" + local}}, false},
		{"editor's origin", "POST", http.Header{"Host": {local}, "Origin": {"vscode-webview://" + local}}, false},
		{"second origin", "POST", http.Header{"Host": {local}, "Origin": {"http://" + local, "https://evil.example"}}, false},
		{"own referer", "GET", http.Header{"Host": {local}, "Referer": {"http://" + local + "/-/metrics"}}, true},
		{"foreign referer", "GET", http.Header{"Host": {local}, "Referer": {"http://evil.example/" + local}}, false},
		{"broken referer", "GET", http.Header{"Host": {local}, "Referer": {"%"}}, false},

		{"typed address", "GET", http.Header{"Host": {local}, "Sec-Fetch-Site": {"none"}, "Sec-Fetch-Mode": {"navigate"}}, true},
		{"client's library", "POST", http.Header{"Host": {local}, "Sec-Fetch-Mode": {"cors"}}, true},
		{"cross-site", "GET", http.Header{"Host": {local}, "Sec-Fetch-Site": {"cross-site"}}, false},
		{"same-site", "GET", http.Header{"Host": {local}, "Sec-Fetch-Site": {"same-site"}}, false},
		{"second value", "GET", http.Header{"Host": {local}, "Sec-Fetch-Site": {"none", "cross-site"}}, false},
		{"preflight", "OPTIONS", http.Header{"Host": {local}, "Origin": {"http://" + local}, "Access-Control-Request-Method": {"POST"}}, false},
		{"preflight with nothing in it", "OPTIONS", http.Header{"Host": {local}, "Access-Control-Request-Method": {""}}, false},
		{"options of a client", "OPTIONS", http.Header{"Host": {local}}, true},
	} {
		req, err := http.NewRequest(c.method, "/v1/messages", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = c.header
		req.Host = c.header.Get("Host")
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:" + port))
		req = req.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at))
		if reason := guard(req); (reason == "") != c.ok {
			t.Errorf("%s: guard says %q, want it to pass: %v", c.name, reason, c.ok)
		}
	}
	for host, ok := range map[string]bool{"localhost": true, "[::1]": true, "127.0.0.1:80": true, "localhost:4780": false, "evil.example": false} {
		if got := isLocalHost(host, 80); got != ok {
			t.Errorf("on port 80, Host %s: %v, want %v", host, got, ok)
		}
	}
}

// fakeOwners answers as told.
type fakeOwners struct {
	uid   int
	err   error
	asked int
}

func (f *fakeOwners) Owner(netip.AddrPort, netip.AddrPort) (int, error) {
	f.asked++
	return f.uid, f.err
}

func TestGuardJudgesTheOwner(t *testing.T) {
	const us = 1000
	loopback := netip.MustParseAddrPort("127.0.0.1:50000")
	for _, c := range []struct {
		name   string
		from   string
		owners Owners
		ok     bool
	}{
		{"this user", "127.0.0.1:50000", &fakeOwners{uid: us}, true},
		{"root", "[::1]:50000", &fakeOwners{uid: 0}, true},
		{"mapped", "[::ffff:127.0.0.1]:50000", &fakeOwners{uid: us}, true},
		{"another account", "127.0.0.1:50000", &fakeOwners{uid: 1001}, false},
		{"nobody", "127.0.0.1:50000", &fakeOwners{uid: 65534}, false},
		{"gone", "127.0.0.1:50000", &fakeOwners{uid: 0, err: peer.ErrGone}, false},
		{"not told", "127.0.0.1:50000", &fakeOwners{uid: 0, err: io.ErrUnexpectedEOF}, false},
		{"system that cannot tell", "127.0.0.1:50000", nil, true},
		{"another machine", "192.168.1.5:50000", &fakeOwners{uid: us}, false},
		{"another machine, system that cannot tell", "192.168.1.5:50000", nil, false},
	} {
		v := &visitor{owners: c.owners, from: netip.MustParseAddrPort(c.from), to: loopback}
		if reason := v.judge(us); (reason == "") != c.ok {
			t.Errorf("%s: %q, want it to pass: %v", c.name, reason, c.ok)
		}
	}
	f := &fakeOwners{uid: os.Getuid()}
	v := &visitor{owners: f, from: loopback, to: loopback}
	for range 3 {
		if reason := v.stranger(); reason != "" {
			t.Error(reason)
		}
	}
	if f.asked != 1 {
		t.Errorf("asked %d times on one connection, want once", f.asked)
	}
}

// strangerEnv makes the test binary a client of another account.
const strangerEnv = "AGENTOP_TEST_STRANGER"

func TestMain(m *testing.M) {
	if url := os.Getenv(strangerEnv); url != "" {
		res, err := http.Post(url, "application/json", strings.NewReader(claudeBody(user("hello"))))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		body, _ := io.ReadAll(res.Body)
		fmt.Println(res.StatusCode, string(body))
		return
	}
	os.Exit(m.Run())
}

// A program of another account gets nothing, whatever its request says.
func TestPromise7_OtherAccountsAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		testkit.Lacks(t, "only root can run a program as another account")
	}
	if !TellsOwners() {
		t.Skip("this system does not tell who connects") // then `token` is the guard
	}
	b := newBench(t, nil)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		b.serve(address)
		for _, path := range []string{"/claude-code/v1/messages", "/-/healthy", "/-/metrics"} {
			cmd := exec.Command("/proc/self/exe") // not by its path, which others may not enter
			cmd.Env = append(os.Environ(), strangerEnv+"="+b.url+path)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got := string(out); !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "another account of this machine") {
				t.Errorf("%s: a stranger got %q, want 403", path, got)
			}
		}
	}
	if n := b.arrivals(); n != 0 {
		t.Errorf("%d requests of a stranger reached a server", n)
	}
	res := b.claude("s1", user("hello"))
	if read(t, res); res.StatusCode != http.StatusOK {
		t.Errorf("this user got %d", res.StatusCode)
	}
}

// Who leaves at once cannot be told from root by a careless look: its request
// must not be served.
func TestPromise7_WhoLeavesAtOnceIsNotServed(t *testing.T) {
	if !TellsOwners() {
		t.Skip("this system does not tell who connects")
	}
	b := newBench(t, nil)
	gate := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-gate // until the client has gone
		b.router.ServeHTTP(w, r)
		close(served)
	}), log.New(io.Discard, "", 0))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body := claudeBody(user("hello"))
	if _, err := fmt.Fprintf(c, "POST /claude-code/v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", l.Addr(), len(body), body); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	close(gate)
	within(t, served, "the handler's end")
	if n := b.arrivals(); n != 0 {
		t.Errorf("%d requests of a client that cannot be told reached a server", n)
	}
}

// The secret segment keeps out who does not know it, from the proxy's own
// numbers too; what a service manager asks stays open.
func TestPromise7_TokenKeepsOthersOut(t *testing.T) {
	b := newBench(t, nil)
	b.serve("127.0.0.1:0")
	const token = "0123456789abcdef0123456789abcdef"
	b.configure(fmt.Sprintf("token: %s\nservers:\n  a: {url: %s, key: none}\nagents:\n  claude-code: {server: a, upstream: none}\n", token, b.servers["a"].URL()))
	for path, status := range map[string]int{
		"/-/healthy": 200, "/-/ready": 200, "/-/metrics": 400, "/-/other": 400, "/": 400, "/claude-code/v1/models": 400, "/v1/models": 400,
		"/wrong/claude-code/v1/models": 400, "/" + token[1:] + "/claude-code/v1/models": 400,
		"/" + token + "/-/healthy": 200, "/" + token + "/-/metrics": 404 /* the bench has none */, "/" + token + "/claude-code/v1/models": 200,
	} {
		before := b.arrivals()
		res := b.do("GET", path, nil, nil)
		if body := read(t, res); res.StatusCode != status || strings.Contains(body, token) {
			t.Errorf("GET %s: %d %s, want %d", path, res.StatusCode, body, status)
		}
		if status != 200 && b.arrivals() != before {
			t.Errorf("GET %s: a server was reached", path)
		}
	}
}

// Strangers must not push the log's lines out.
func TestStrangersAreToldOfRarely(t *testing.T) {
	b := newBench(t, nil)
	port := b.serve("127.0.0.1:0")
	log := b.watchLog()
	for range 50 {
		read(t, b.rawAnswer("GET /v1/models HTTP/1.1\r\nHost: evil.example:"+port+"\r\nConnection: close\r\n\r\n"))
	}
	if n := strings.Count(log.String(), "request refused"); n != 1 {
		t.Errorf("%d lines for 50 requests of strangers, want 1:\n%s", n, log)
	}
	lines, err := b.router.Recorder.(logRecorder).log.Tail(t.Context(), 10, reqlog.Filter{})
	if err != nil || len(lines) != 0 {
		t.Errorf("%d lines in the request log, %v; want none", len(lines), err)
	}
	at := time.Now()
	s := new(strangers)
	for i, c := range []struct {
		after  time.Duration
		untold int
		ok     bool
	}{{0, 0, true}, {time.Second, 0, false}, {9 * time.Second, 0, false}, {10 * time.Second, 2, true}, {11 * time.Second, 0, false}, {-time.Hour, 1, true}} {
		if untold, ok := s.tell(true, at.Add(c.after)); untold != c.untold || ok != c.ok {
			t.Errorf("refusal %d: %d untold, told %v; want %d, %v", i, untold, ok, c.untold, c.ok)
		}
	}
}
