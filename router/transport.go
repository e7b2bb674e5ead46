package router

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"agentop/router/config"
)

// How long an idle connection may be used again. Over plain HTTP a new
// connection costs next to nothing, and model servers close idle ones after a
// few seconds (uvicorn: 5 s): a request that meets such a close is lost and
// must not be sent twice, so ours are given up long before. Over TLS a
// connection is worth keeping; HTTP/2 says which requests it did not process.
const (
	idlePlain = 500 * time.Millisecond
	idleTLS   = 30 * time.Second
)

// transportKey is what makes two connection pools different.
type transportKey struct {
	server, base, caFile string
	insecure             bool
	firstByte            time.Duration
}

// transports keeps one connection pool for each server and own upstream, so
// that a slow server never starves another.
type transports struct {
	mu    sync.Mutex
	pools map[transportKey]*pool
}

func newTransports() *transports {
	return &transports{pools: make(map[transportKey]*pool)}
}

// get returns the connection pool for base, one base URL of server s (nil for
// an own upstream). It reads ca_file on first use.
func (t *transports) get(s *config.Server, base *url.URL) (*pool, error) {
	key := transportKey{base: base.Scheme + "://" + base.Host}
	if s != nil {
		key.server, key.caFile = s.Name, caFile(s)
		key.insecure, key.firstByte = s.InsecureSkipVerify, s.FirstByteTimeout
	}
	t.mu.Lock()
	made, ok := t.pools[key]
	t.mu.Unlock()
	if ok {
		return made, nil
	}
	transport, err := newTransport(key, base.Scheme == "https")
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if first, ok := t.pools[key]; ok {
		return first, nil
	}
	t.pools[key] = transport
	return transport, nil
}

// keep drops the pools of servers that c no longer has as they were. Requests
// that run on them end undisturbed; only idle connections are closed.
func (t *transports) keep(c *config.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, made := range t.pools {
		if key.server == "" {
			continue
		}
		if s, ok := c.Server(key.server); ok && key.of(s) {
			continue
		}
		delete(t.pools, key)
		made.CloseIdleConnections()
	}
}

// of says whether the pool is one of the server as it is configured.
func (k transportKey) of(s *config.Server) bool {
	return k.caFile == caFile(s) && k.insecure == s.InsecureSkipVerify && k.firstByte == s.FirstByteTimeout &&
		slices.ContainsFunc(s.URLs(), func(address string) bool {
			u, err := url.Parse(address)
			return err == nil && u.Scheme+"://"+u.Host == k.base
		})
}

// caFile is the server's ca_file, with this user's home in the place of "~".
func caFile(s *config.Server) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return s.CAFile // nothing to put there: reading it will say so
	}
	return s.CAPath(home)
}

// Carrier is what carries requests to base, one of server s's addresses: the
// connections that its turns use. It reads ca_file on first use.
func (r *Router) Carrier(s *config.Server, base *url.URL) (http.RoundTripper, error) {
	if r.Transport != nil {
		return r.Transport, nil
	}
	return r.transports.get(s, base)
}

// NewCarrier makes a carrier of its own for a server, without a Router.
func NewCarrier(s *config.Server, base *url.URL) (http.RoundTripper, error) {
	return newTransports().get(s, base)
}

func newTransport(key transportKey, secure bool) (*pool, error) {
	idle := idlePlain
	if secure {
		idle = idleTLS
	}
	tlsConfig := &tls.Config{InsecureSkipVerify: key.insecure} //nolint:gosec // the user's own setting, warned of at each start
	if key.caFile != "" {
		roots, err := rootsWith(key.caFile)
		if err != nil {
			return nil, err
		}
		tlsConfig.RootCAs = roots
	}
	p := &pool{}
	p.Transport = &http.Transport{
		Proxy:                 environmentProxy,
		DialContext:           p.dial,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		DisableCompression:    true, // the client's Accept-Encoding stands
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   maxIdle,
		IdleConnTimeout:       idle,
		ResponseHeaderTimeout: key.firstByte,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
			if res.StatusCode != http.StatusOK {
				return &proxyRefusal{status: res.StatusCode}
			}
			return nil
		},
	}
	if base, err := url.Parse(key.base); !secure && err == nil && direct(base) {
		p.plain = newPlain(p, key.firstByte)
	}
	return p, nil
}

// direct reports whether requests to u go there without an HTTP proxy.
func direct(u *url.URL) bool {
	by, err := environmentProxy(&http.Request{URL: u})
	return err == nil && by == nil
}

// errProxySetting says that HTTPS_PROXY or HTTP_PROXY is no URL. Its value is
// not repeated: it may hold a password.
var errProxySetting = errors.New("HTTPS_PROXY or HTTP_PROXY cannot be read as a URL")

// proxyRefusal is an HTTP proxy's answer when it does not open the way to a
// server.
type proxyRefusal struct{ status int }

func (p *proxyRefusal) Error() string {
	return fmt.Sprintf("the HTTP proxy answered %d to CONNECT", p.status)
}

// environmentProxy is the HTTP proxy on the way to a server, as HTTPS_PROXY,
// HTTP_PROXY and NO_PROXY have it; never one for loopback.
func environmentProxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, errProxySetting
	}
	return u, nil
}

// proxyOf names the HTTP proxy on the way to u, without its credentials; ""
// when there is none.
func proxyOf(u *url.URL) string {
	p, err := environmentProxy(&http.Request{URL: u})
	if err != nil || p == nil {
		return ""
	}
	return p.Scheme + "://" + p.Host
}

func rootsWith(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read ca_file: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file %q holds no PEM certificate", file)
	}
	return roots, nil
}
