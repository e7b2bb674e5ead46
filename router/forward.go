package router

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/credential"
	"agentop/router/placement"
)

// target is where a request is sent and with what.
type target struct {
	url   *url.URL
	pool  carrier
	key   credential.Secret
	mode  config.KeyKind // how the server is paid; KeyClient towards own upstreams
	place string         // server, pool/member or own: for load, health and the log
}

// forward sends the client's bytes and streams the answer back.
func (t *turn) forward() *failure {
	to, f := t.target()
	if f != nil {
		t.began() // it is pinned, and belongs in the lists
		return f
	}
	t.leave = t.r.load.add(to.place)
	defer func() { t.leave() }()
	t.began()
	res, err := t.send(to)
	if err != nil {
		t.unreached(err, to)
		return nil
	}
	t.pass(res, to)
	return nil
}

// send makes the request to the server and returns the answer's head. The
// caller must close its body.
func (t *turn) send(to *target) (*http.Response, error) {
	out := t.in.WithContext(t.in.Context()) // a copy: the client's is not ours to change
	out.URL, out.Host, out.RequestURI, out.Close = to.url, "", "", false
	out.Header = t.onward(to)
	body := t.outgoing(to)
	if !sameBytes(body, t.body) && t.coded {
		delete(out.Header, "Content-Encoding")
	}
	setBody(out, t.upload.reader(body))
	// What was read of the request has served; a model may think for minutes.
	t.body, t.plain = nil, nil
	t.letGo()
	return t.carrier(to).carry(out, t.interim)
}

// target finds the base URL, the connection pool and the key.
func (t *turn) target() (*target, *failure) {
	to := &target{place: placeName(t.decision.Server, t.member), mode: config.KeyClient}
	address := ""
	if t.server == nil {
		base, _ := t.ownUpstream()
		address = config.JoinUpstream(base, t.split.Path, "")
	} else {
		to.mode = t.server.Key.Kind
		address = config.JoinURL(baseURL(t.server, t.member), t.split.Path, "", t.server.StripV1)
	}
	var err error
	if to.url, err = upstreamURL(address, t.in.URL); err != nil {
		return nil, refuse("url", fmt.Sprintf("the URL of %s cannot be used: %v", t.serverWords(), err), "mend it in config.yaml")
	}
	if to.pool, err = t.transport(to.url); err != nil {
		return nil, refuse("ca-file", fmt.Sprintf("%s: %v", t.serverWords(), err), "mend ca_file in config.yaml")
	}
	if t.server != nil && to.mode != config.KeyClient && to.mode != config.KeyNone {
		if to.key, err = t.r.Credentials.Key(t.in.Context(), t.server); err != nil {
			return nil, t.keyless(err)
		}
	}
	return to, nil
}

// transport is what carries requests to base.
func (t *turn) transport(base *url.URL) (carrier, error) {
	if t.r.Transport != nil {
		if own, ok := t.r.Transport.(carrier); ok {
			return own, nil
		}
		return tripper{t.r.Transport}, nil
	}
	return t.r.transports.get(t.server, base)
}

// upstreamURL is the URL to send to: address is the server's and the client's
// path joined, still escaped, and in has the query. Both go out byte for byte,
// also where net/url would write them differently.
func upstreamURL(address string, in *url.URL) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return nil, fmt.Errorf("%q has no scheme", address)
	}
	host, path := rest, "/"
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	// For the host: zones and brackets are net/url's business.
	u, err := url.Parse(scheme + "://" + host)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawPath, u.RawQuery, u.ForceQuery = path, path, in.RawQuery, in.ForceQuery
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path = plain
	}
	if u.EscapedPath() != path && !strings.HasPrefix(path, "//") {
		u.Opaque = path
		if u.Scheme == "http" && proxyOf(u) != "" {
			u.Opaque = "//" + u.Host + path // an HTTP proxy wants to be told the whole of it
		}
	}
	return u, nil
}

// serverWords names the place in a sentence.
func (t *turn) serverWords() string {
	if t.server == nil {
		return fmt.Sprintf("the own upstream of %s", t.rec.Agent)
	}
	return fmt.Sprintf("server %q", placeName(t.server.Name, t.member))
}

// onward is the header to send: the client's, but for what is meant for its
// connection to us alone, and with the server's credential. Forwarding headers
// are the client's own, none is invented; what Expect asks for was done when
// the body was read.
func (t *turn) onward(to *target) http.Header {
	header := withoutHop(t.in.Header)
	for _, name := range []string{"Http2-Settings", "Expect"} {
		delete(header, name)
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = noUserAgent // net/http would tell its own
	}
	if t.server != nil {
		credential.Apply(t.in.Header, header, to.mode, to.key, t.rec.Format)
		if name := t.server.SessionHeader; name != "" && t.conv.Session != "" {
			header.Set(name, placement.Plain(t.conv.Session))
		}
	}
	return header
}

var noUserAgent = []string{""}

// setBody gives out a body that net/http will not send a second time by itself.
func setBody(out *http.Request, body *once) {
	out.Body = body
	out.ContentLength = int64(len(body.rest))
	out.TransferEncoding, out.Trailer = nil, nil
	switch out.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return
	}
	if len(body.rest) > 0 {
		return
	}
	// An empty body of these methods would go out in chunks, unless it is
	// NoBody; and that may be sent twice where these headers have the names
	// that net/http knows. Names have no letter case on the wire.
	out.Body = http.NoBody
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := out.Header[name]; ok {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = v
		}
	}
}

// outgoing is the body to send: the client's bytes, or with the permitted
// edits made in its decoded form.
func (t *turn) outgoing(to *target) []byte {
	o := &t.scratch.outline
	if t.server == nil || o.Format == outline.NoFormat || o.Err != nil {
		return t.body
	}
	dropBilling := o.Format == outline.Messages && !t.server.KeepBillingBlock && !speaksAnthropic(t.server, to.url.Hostname())
	out := edited(t.plain, o, t.sent, dropBilling)
	if sameBytes(out, t.plain) {
		return t.body
	}
	return out
}

// sameBytes reports whether a and b are one slice.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// carrier carries the request to its server. For a pool, a member that
// refuses the connection has seen nothing: then, and only then, the same
// request may go to another one.
func (t *turn) carrier(to *target) carrier {
	if t.server == nil || len(t.server.Pool) == 0 {
		return to.pool
	}
	return poolCarrier{t, to}
}

type poolCarrier struct {
	t  *turn
	to *target
}

func (c poolCarrier) carry(req *http.Request, told interim) (*http.Response, error) {
	body, _ := req.Body.(*once)
	var rest []byte
	if body != nil {
		rest = body.rest
	}
	for tried := 0; ; tried++ {
		res, err := c.to.pool.carry(req, told)
		if err == nil || !refused(err) || tried+1 >= len(c.t.server.Pool) || req.Context().Err() != nil {
			return res, err
		}
		c.t.r.health.note(c.to.place, healthDown, "refused the connection", c.t.r.Now())
		if !c.t.otherMember(c.to) {
			return res, err
		}
		req = req.Clone(req.Context())
		req.URL = c.to.url
		if body != nil {
			req.Body = body.from.reader(rest)
		}
	}
}

// refused reports whether err says that no connection was made, so that no
// byte can have reached the server.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !exhausted(err)
}
