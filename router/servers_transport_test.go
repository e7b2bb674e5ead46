package router

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/config"
)

// tlsServer answers {} over https, and says by which protocol it was asked.
func tlsServer(t *testing.T, h2 bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Asked-By", r.Proto)
		_, _ = fmt.Fprint(w, `{}`)
	}))
	s.EnableHTTP2 = h2
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// caOf writes the authority of a test server's certificate to a file.
func caOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	block := &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
	return writeFile(t, "ca.pem", string(pem.EncodeToMemory(block)), 0o600)
}

const oneServer = `
servers:
  it: {url: %q, key: none%s}
agents:
  claude-code: {server: it, upstream: none}
`

func hello(r *rig) (*http.Response, string) {
	return r.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s1"))
}

func TestTLSOfServers(t *testing.T) {
	s := tlsServer(t, true)
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.StartTLS()
	defer other.Close()
	ca := caOf(t, s)
	home := t.TempDir()
	t.Setenv("HOME", home)
	content, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "ca.pem"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	name := "https://localhost:" + s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	tests := []struct {
		name, url, more string
		status          int
		want            string
	}{
		{"system roots alone", s.URL, "", 400, "signed by an authority that is not known here; name its CA in `ca_file`"},
		{"ca_file", s.URL, ", ca_file: " + ca, 200, "{}"},
		{"ca_file in the home directory", s.URL, ", ca_file: ~/ca.pem", 200, "{}"},
		{"insecure_skip_verify", s.URL, ", insecure_skip_verify: true", 200, "{}"},
		{"a ca_file that is not there", s.URL, ", ca_file: /no/such/ca.pem", 400, "mend ca_file in config.yaml"},
		{"a ca_file without a certificate", s.URL, ", ca_file: " + writeFile(t, "x.pem", "nothing", 0o600), 400, "holds no PEM certificate"},
		{"another name", name, ", ca_file: " + ca, 400, "is for another name than localhost; mend the server's url"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, oneServer, c.url, c.more)
			res, text := hello(r)
			if res.StatusCode != c.status || !strings.Contains(text, c.want) {
				t.Errorf("%d %s, want %d with %q", res.StatusCode, text, c.status, c.want)
			}
			if c.status == 200 && res.Header.Get("X-Asked-By") != "HTTP/2.0" {
				t.Errorf("the server was asked by %s, want HTTP/2.0", res.Header.Get("X-Asked-By"))
			}
		})
	}
}

// TestInsecureAndPlainAreWarnedOf holds the lines that every start and status
// show.
func TestInsecureAndPlainAreWarnedOf(t *testing.T) {
	c, err := config.Parse("config.yaml", []byte(`
servers:
  a: {url: https://a.example.com, key: none, insecure_skip_verify: true}
  b: {url: http://b.example.com, key: none}
  c: {url: "http://127.0.0.1:8000", key: none}
  d: {url: "http://[::1]:8000", key: none}
  e: {url: http://localhost:8000, key: none}
`))
	if err != nil {
		t.Fatal(err)
	}
	lines := c.Warnings()
	if len(lines) != 2 || !strings.Contains(lines[0], "server a: insecure_skip_verify is on") || !strings.Contains(lines[1], "server b: b.example.com is plain http") {
		t.Errorf("warnings %q, want one of a and one of b", lines)
	}
}

func TestHTTP1IsKeptAlive(t *testing.T) {
	var seen sync.Map
	s := tlsServer(t, false)
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.RemoteAddr, true)
		inner.ServeHTTP(w, r)
	})
	r := newRig(t, oneServer, s.URL, ", ca_file: "+caOf(t, s))
	// As it is after a connection was once idle for a moment and lived on.
	carrier, err := r.router.transports.get(&r.config().Servers[0], parsed(t, s.URL))
	if err != nil {
		t.Fatal(err)
	}
	any(carrier).(*pool).manners.Store(keepsConnections)
	for range 5 {
		if res, text := hello(r); res.StatusCode != 200 || res.Header.Get("X-Asked-By") != "HTTP/1.1" {
			t.Fatalf("%d %s by %s", res.StatusCode, text, res.Header.Get("X-Asked-By"))
		}
	}
	connections := 0
	seen.Range(func(any, any) bool { connections++; return true })
	if connections != 1 {
		t.Errorf("%d connections for 5 turns, want 1", connections)
	}
}

func TestIPv6Server(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		testkit.Lacks(t, "there is no IPv6 loopback: "+err.Error())
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Host)
	})}}
	s.Start()
	defer s.Close()
	res, text := hello(newRig(t, oneServer, "http://"+l.Addr().String()+"/base", ""))
	if res.StatusCode != 200 || text != l.Addr().String() {
		t.Errorf("%d %s, want the host %s", res.StatusCode, text, l.Addr())
	}
}

// TestServersDoNotShareConnections holds that each server has a pool of its
// own: one whose answers hang does not hold up another on the same host.
func TestServersDoNotShareConnections(t *testing.T) {
	c, err := config.Parse("config.yaml", []byte(`
servers:
  a: {url: "https://127.0.0.1:1/a", key: none}
  b: {url: "https://127.0.0.1:1/b", key: none}
`))
	if err != nil {
		t.Fatal(err)
	}
	all := newTransports()
	pool := func(i int) http.RoundTripper {
		p, err := all.get(&c.Servers[i], parsed(t, c.Servers[i].URL))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if pool(0) == pool(1) {
		t.Error("two servers share one pool")
	}
	if pool(0) != pool(0) {
		t.Error("one server has two pools")
	}
	// A changed setting gives a new pool, and the old one is dropped.
	before := pool(0)
	changed := *c
	changed.Servers = []config.Server{c.Servers[0]}
	changed.Servers[0].FirstByteTimeout = time.Minute
	all.keep(&changed)
	if len(all.pools) != 0 {
		t.Errorf("%d pools of servers that are not there as they were", len(all.pools))
	}
	if after, _ := all.get(&changed.Servers[0], parsed(t, c.Servers[0].URL)); after == before {
		t.Error("a changed server kept its pool")
	}
}

func TestFirstByteTimeout(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-hang:
			_, _ = fmt.Fprint(w, "late")
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	res, text := hello(newRig(t, oneServer, s.URL, ", first_byte_timeout: 50ms"))
	if res.StatusCode != 503 || !strings.Contains(text, "sent no answer in time; the conversation is kept there") {
		t.Errorf("with a timeout: %d %s", res.StatusCode, text)
	}
	// Without one nothing ends the wait.
	r := newRig(t, oneServer, s.URL, "")
	done := make(chan string, 1)
	go func() {
		_, text, err := r.try("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s1"))
		done <- fmt.Sprint(text, err)
	}()
	for r.router.load.at("it") == 0 {
		// Spin until the request is on its way; nothing but the scheduler is waited for.
	}
	close(hang)
	if got := <-done; got != "late<nil>" {
		t.Errorf("without a timeout: %s", got)
	}
	if p, err := newTransport(transportKey{}, false); err != nil || p.ResponseHeaderTimeout != 0 {
		t.Errorf("the default first-byte timeout is %v (%v), want none", p.ResponseHeaderTimeout, err)
	}
}

// TestProxyEnvironment runs this test's second half in a process of its own,
// since net/http reads the environment once. A request to a remote server goes
// through the proxy, one to a host in NO_PROXY and one to loopback do not.
func TestProxyEnvironment(t *testing.T) {
	if os.Getenv("AGENTOP_TEST_PROXIED") == "1" {
		proxied(t)
		return
	}
	asked := make(chan string, 8)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.RequestURI
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprint(w, "by proxy")
	}))
	defer proxy.Close()
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "direct") }))
	defer local.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProxyEnvironment$", "-test.count=1")
	cmd.Env = append(os.Environ(), "AGENTOP_TEST_PROXIED=1", "AGENTOP_TEST_LOCAL="+local.URL, "HTTP_PROXY="+proxy.URL, "HTTPS_PROXY="+proxy.URL,
		"http_proxy="+proxy.URL, "https_proxy="+proxy.URL, "NO_PROXY=direct..invalid", "no_proxy=direct..invalid")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	close(asked)
	var got []string
	for line := range asked {
		got = append(got, line)
	}
	want := []string{"POST http://gpu.invalid/v1/messages", "CONNECT secure.invalid:443"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the proxy was asked %q, want %q", got, want)
	}
}

func proxied(t *testing.T) {
	for _, c := range []struct {
		url    string
		status int
		want   string
	}{
		{"http://gpu.invalid", 200, "by proxy"},
		{"https://secure.invalid", 503, "agentop: "},
		// No name at all, which is known without a name server.
		{"http://direct..invalid", 503, "was not found"},
		{os.Getenv("AGENTOP_TEST_LOCAL"), 200, "direct"},
	} {
		res, text := hello(newRig(t, oneServer, c.url, ""))
		if res.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %d with %q", c.url, res.StatusCode, text, c.status, c.want)
		}
	}
}
