package router

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentop/router/peer"
)

// Owners tells who connects: peer.Finder, or nil where the system cannot tell.
type Owners interface {
	// Owner is the user id of the program that connected from one address to
	// the other, which is ours.
	Owner(from, to netip.AddrPort) (uid int, err error)
}

// guard says why a request must not be served at all: it did not come from a
// program of this user that was pointed here, but from another account, from a
// web page, or through a name that is not ours. The empty string lets it pass.
//
// Only the connection's owner, Host, Origin, Referer and Sec-Fetch-Site are
// judged. Sec-Fetch-Mode is not: OpenCode's and Claude Code's HTTP libraries
// send it on every request.
func guard(req *http.Request) string {
	if v, ok := req.Context().Value(visitorKey{}).(*visitor); ok {
		if reason := v.stranger(); reason != "" {
			return reason
		}
	}
	port := localPort(req)
	if !isLocalHost(req.Host, port) {
		return "the Host header names another place than this proxy"
	}
	if req.Method == http.MethodOptions && req.Header["Access-Control-Request-Method"] != nil {
		return "a web page asked whether it may send requests (CORS preflight)"
	}
	for _, site := range req.Header["Sec-Fetch-Site"] {
		switch strings.ToLower(site) {
		case "", "none", "same-origin":
		default:
			return "a web page of another site sent it (Sec-Fetch-Site)"
		}
	}
	for _, name := range []string{"Origin", "Referer"} {
		for _, v := range req.Header[name] {
			if v != "" && !isLocalOrigin(v, port) {
				return "a web page of another site sent it (" + name + ")"
			}
		}
	}
	return ""
}

// localPort is the port that the request's connection came in on; 0, which no
// Host has, when that is not known.
func localPort(req *http.Request) int {
	if addr, ok := req.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return addr.Port
	}
	return 0
}

// isLocalHost reports whether a Host header is exactly a loopback name or
// address with our port, which may be left out where it is HTTP's own. A
// suffix or prefix never matches: a page that rebinds its own name to
// 127.0.0.1 still sends its own name.
func isLocalHost(host string, port int) bool {
	name, rest := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, rest = host[:i], host[i+1:]
		if rest != strconv.Itoa(port) {
			return false
		}
	} else if port != 80 {
		return false
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		return ok && strings.Contains(inner, ":") && isLoopback(inner)
	}
	// With the dot of a full name it is the same name (RFC 6761, 6.3).
	return strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") || !strings.Contains(name, ":") && isLoopback(name)
}

func isLoopback(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

func isLocalOrigin(origin string, port int) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && u.User == nil && isLocalHost(u.Host, port)
}

// visitor is who holds the other end of a connection. It is looked up with the
// connection's first request.
type visitor struct {
	owners   Owners
	from, to netip.AddrPort

	once   sync.Once
	reason string // why it must not be served
}

type visitorKey struct{}

// withVisitor makes the owner of c known to the guard.
func withVisitor(ctx context.Context, c net.Conn, owners Owners) context.Context {
	if v := visitorOf(c, owners); v != nil {
		return context.WithValue(ctx, visitorKey{}, v)
	}
	return ctx
}

// visitorOf is who holds the other end of c; nil where c is no TCP connection,
// which nobody else could use.
func visitorOf(c net.Conn, owners Owners) *visitor {
	from, ok1 := c.RemoteAddr().(*net.TCPAddr)
	to, ok2 := c.LocalAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return nil
	}
	return &visitor{owners: owners, from: from.AddrPort(), to: to.AddrPort()}
}

// stranger says why the connection's owner must not be served; "" lets it pass.
func (v *visitor) stranger() string {
	v.once.Do(func() { v.reason = v.judge(os.Getuid()) })
	return v.reason
}

func (v *visitor) judge(us int) string {
	if !v.from.Addr().Unmap().IsLoopback() || !v.to.Addr().Unmap().IsLoopback() {
		return "it came from another machine"
	}
	if v.owners == nil {
		return "" // `token` in config.yaml is what keeps other accounts out here
	}
	uid, err := v.owners.Owner(v.from, v.to)
	switch {
	case errors.Is(err, peer.ErrGone):
		return "the program that sent it closed the connection before it could be told whose it is"
	case err != nil:
		return "the system did not tell which account sent it"
	case uid != us && uid != 0:
		return "another account of this machine sent it"
	}
	return ""
}

// strangers tells of the requests that the guard refused, but not of each: a
// web page that asks again and again must not push everything else out of the
// log.
type strangers struct {
	mu     sync.Mutex
	told   time.Time
	untold int
}

// strangersEvery is the least time between two lines about strangers.
const strangersEvery = 10 * time.Second

// tell says whether a refusal is logged now, and how many were not since the
// last one that was. Refusals of this user's own requests always are.
func (s *strangers) tell(stranger bool, now time.Time) (untold int, ok bool) {
	if !stranger {
		return 0, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.told.IsZero() && now.Sub(s.told) < strangersEvery && !now.Before(s.told) {
		s.untold++
		return 0, false
	}
	untold, s.untold, s.told = s.untold, 0, now
	return untold, true
}
