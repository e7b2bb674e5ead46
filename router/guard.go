package router

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guard says why a request must not be served at all: it did not come from a
// program of this user that was pointed here, but from a web page or through
// a name that is not ours. The empty string lets it pass.
//
// Only Host, Origin, Referer and Sec-Fetch-Site are judged. Sec-Fetch-Mode is
// not: OpenCode's and Claude Code's HTTP libraries send it on every request.
func guard(req *http.Request) string {
	port := localPort(req)
	if !isLocalHost(req.Host, port) {
		return "the Host header names another place than this proxy"
	}
	if req.Method == http.MethodOptions && req.Header.Get("Access-Control-Request-Method") != "" {
		return "a web page asked whether it may send requests (CORS preflight)"
	}
	switch strings.ToLower(req.Header.Get("Sec-Fetch-Site")) {
	case "", "none", "same-origin":
	default:
		return "a web page of another site sent it (Sec-Fetch-Site)"
	}
	for _, name := range []string{"Origin", "Referer"} {
		for _, v := range req.Header.Values(name) {
			if v != "" && !isLocalOrigin(v, port) {
				return "a web page of another site sent it (" + name + ")"
			}
		}
	}
	return ""
}

// localPort is the port that the request's connection came in on, "" when
// that is not known (then no Host with a port matches).
func localPort(req *http.Request) string {
	addr, ok := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return ""
	}
	return port
}

// isLocalHost reports whether a Host header is exactly a loopback name or
// address with our port. A suffix or prefix never matches: a page that
// rebinds its own name to 127.0.0.1 still sends its own name.
func isLocalHost(host, port string) bool {
	name, p, err := net.SplitHostPort(host)
	if err != nil || p != port || port == "" {
		return false
	}
	if strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func isLocalOrigin(origin, port string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && isLocalHost(u.Host, port)
}
