package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/control"
	"agentop/router/fakeserver"
	"agentop/router/preflight/kinds"
)

// docsServers are the servers that the pages name, by host, and the kind of
// server that answers there. Those on this machine get another port.
var docsServers = map[string]string{
	"api.anthropic.com": "anthropic", "api.openai.com": "openai", "openrouter.ai": "openrouter",
	"glm.example.com": "vllm", "gpu1:8000": "vllm", "gpu2:8000": "vllm", "gpu1:30000": "sglang",
	"127.0.0.1:8080": "llama.cpp", "127.0.0.1:11434": "ollama", "127.0.0.1:1234": "lm-studio", "127.0.0.1:4000": "litellm",
}

// docsWorld is where a page's commands run: a home with nothing in it, an HTTP
// proxy that is the way to every server of docsServers, and no other network.
type docsWorld struct {
	t       *testing.T
	dir     string // the commands' folder; HOME is below it
	home    string // agentop's
	env     []string
	local   map[string]string // addresses of the pages to those of the fakes
	running bool
}

func newDocsWorld(t *testing.T) *docsWorld {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the pages' commands are run on Linux, where a program can be told whom to trust")
	}
	testkit.Need(t, "bash", "curl")
	dir, err := os.MkdirTemp("/tmp", "ao-docs") // short: a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &docsWorld{t: t, dir: dir, home: filepath.Join(dir, ".agentop"), local: map[string]string{"127.0.0.1:4780": freeLocal(t)}}
	remote := map[string]*url.URL{}
	for host, name := range docsServers {
		fake := kinds.Named(name).Start()
		t.Cleanup(fake.Close)
		if strings.HasPrefix(host, "127.") {
			w.local[host] = fake.Listener.Addr().String()
			continue
		}
		if remote[host], err = url.Parse(fake.URL); err != nil {
			t.Fatal(err)
		}
	}
	way, authority := startWay(t, remote)
	for name, text := range map[string]string{"authority.pem": authority, "key.txt": kinds.Key + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.yaml"), []byte("listen: "+w.local["127.0.0.1:4780"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb", "LC_ALL=C.UTF-8", "GLM_KEY=" + kinds.Key, "GOCOVERDIR=" + t.TempDir(),
		"HTTP_PROXY=" + way, "http_proxy=" + way, "HTTPS_PROXY=" + way, "https_proxy=" + way, "NO_PROXY=127.0.0.1,localhost,::1", "no_proxy=127.0.0.1,localhost,::1",
		"SSL_CERT_FILE=" + filepath.Join(dir, "authority.pem"), "SSL_CERT_DIR=/nowhere",
	}
	return w
}

// translate puts the addresses of this world in the place of the pages', in
// one pass: one's port may begin with the digits of another's.
func (w *docsWorld) translate(line string) string {
	var pairs []string
	for from, to := range w.local {
		pairs = append(pairs, from, to)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// startProxy is `agentop proxy` in a terminal of its own.
func (w *docsWorld) startProxy() {
	w.t.Helper()
	if w.running {
		return
	}
	w.running = true
	cmd := exec.Command("agentop", "proxy")
	cmd.Dir, cmd.Env = w.dir, w.env
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		killer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killer.Stop()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // between looks at another process
		if _, err := os.Stat(filepath.Join(w.home, control.SocketName)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the proxy does not come up")
		}
	}
}

func freeLocal(t *testing.T) string {
	t.Helper()
	address, err := fakeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// startWay is an HTTP proxy that has every host of servers behind it. Towards
// TLS it is that host itself, by certificates of an authority of its own.
func startWay(t *testing.T, servers map[string]*url.URL) (address, authority string) {
	t.Helper()
	issue, authority := newAuthority(t)
	handler := func(host string) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			to, ok := servers[host]
			if !ok {
				http.Error(rw, "no page names "+host, http.StatusBadGateway)
				return
			}
			(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }, FlushInterval: -1}).ServeHTTP(rw, r)
		})
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			handler(r.Host).ServeHTTP(rw, r)
			return
		}
		host := strings.TrimSuffix(r.Host, ":443")
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		one := &oneConn{conn: tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{issue(host)}, MinVersion: tls.VersionTLS12}), closed: make(chan struct{})}
		server := &http.Server{Handler: handler(host), ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				one.end()
			}
		}, ReadHeaderTimeout: time.Minute}
		_ = server.Serve(one)
	}))
	t.Cleanup(s.CloseClientConnections)
	return s.URL, authority
}

// newAuthority gives what issues certificates, and the authority in PEM.
func newAuthority(t *testing.T) (func(host string) tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := func(serial int64) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	}
	root := template(1)
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(host string) tls.Certificate {
		leaf := template(2)
		leaf.DNSNames = []string{host}
		der, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	return issue, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// oneConn is a listener with one connection. Accept fails when that is closed.
type oneConn struct {
	conn   net.Conn
	given  bool
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) end() {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
