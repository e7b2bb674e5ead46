package router

import (
	"net/http"
	"strings"

	"agentop/agents"
)

// RouteHeader is the response header that says what agentop made of a
// request. Every response has it, agentop's own errors included.
const RouteHeader = "X-Agentop-Route"

// route is the content of RouteHeader.
type route struct {
	agent   agents.Agent
	session string
	turn    agents.Turn
	pin     string // new, kept, followed, restored, none
	server  string // a server's name, pool/member, own, or - for a refusal
}

// set writes the header. It is called again when a decision has changed it.
func (r route) set(h http.Header) {
	var b strings.Builder
	b.Grow(96 + len(r.session))
	field := func(name, value string) {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(name)
		b.WriteByte('=')
		escape(&b, value)
	}
	field("agent", string(r.agent))
	field("session", r.session)
	field("turn", r.turn.String())
	field("pin", r.pin)
	field("server", r.server)
	h[RouteHeader] = []string{b.String()}
}

// escape percent-encodes every byte outside A-Za-z0-9._~:/-.
func escape(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("._~:/-", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}
