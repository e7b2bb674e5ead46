package setup

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// Proxy is where agentop listens.
type Proxy struct {
	Listen string // loopback host:port
	Token  string // secret path segment; "" = none
}

// Base is the beginning of every base URL: scheme, address and the secret
// segment if there is one.
func (p Proxy) Base() string {
	host, port, err := net.SplitHostPort(p.Listen)
	if err != nil {
		return "http://" + p.Listen
	}
	base := "http://" + net.JoinHostPort(host, port)
	if p.Token != "" {
		base += "/" + url.PathEscape(p.Token)
	}
	return base
}

// ours says whether an address is one of agentop's for the agent: a loopback
// address whose path names the agent (behind the secret segment, if there is
// one), or agentop's own port. The port alone does not decide, since it may
// have been another when the address was written.
func (p Proxy) ours(agent, address string) bool {
	u, ok := loopback(address)
	if !ok {
		return false
	}
	segments := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' })
	if i := slices.Index(segments, agent); i == 0 || i == 1 && !isVersion(segments[0]) {
		return true
	}
	_, port, err := net.SplitHostPort(p.Listen)
	return err == nil && u.Port() == port
}

// loopback reads an address and says whether it is on this machine.
func loopback(address string) (*url.URL, bool) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" {
		return nil, false
	}
	host := strings.ToLower(u.Hostname())
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return u, true
	}
	ip := net.ParseIP(host)
	return u, ip != nil && ip.IsLoopback()
}

func isVersion(segment string) bool {
	return len(segment) > 1 && segment[0] == 'v' && segment[1] >= '0' && segment[1] <= '9'
}

// endsInV1 says whether a base URL has the version in it, so that the agent
// does not add one.
func endsInV1(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1")
}

// baseLike is the base URL below agentop for an agent's path that has a /v1
// exactly if the address before had one; def is what it has where there was
// none. So an own upstream is asked for the very paths that the agent would
// have asked for.
func (p Proxy) baseLike(path, before string, def bool) string {
	v1 := def
	if before != "" {
		v1 = endsInV1(before)
	}
	if v1 {
		path += "/v1"
	}
	return p.Base() + path
}

// withoutSecrets is an address for people: user name, password and query are
// left out.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Here says whether an address leads to where agentop listens, with the secret
// segment if one is asked for.
func (p Proxy) Here(address string) bool {
	u, ok := loopback(address)
	if !ok {
		return false
	}
	_, port, err := net.SplitHostPort(p.Listen)
	if err != nil || u.Port() != port {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimLeft(u.Path, "/"), "/")
	return p.Token == "" || first == p.Token
}

// hide takes the secret segment out of an address for lists.
func (p Proxy) hide(address string) string {
	if p.Token == "" {
		return address
	}
	return strings.ReplaceAll(address, url.PathEscape(p.Token), "(token)")
}
