package router

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
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
	pool  http.RoundTripper
	key   credential.Secret
	mode  config.KeyKind // how the server is paid; KeyClient towards own upstreams
	place string         // server, pool/member or own: for load, health and the log
}

// forward sends the client's bytes and streams the answer back.
func (t *turn) forward() *failure {
	to, f := t.target()
	if f != nil {
		return f
	}
	t.leave = t.r.load.add(to.place)
	defer func() { t.leave() }()
	t.began()
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(pr *httputil.ProxyRequest) { t.rewrite(pr, to) },
		Transport:      t.carrier(to),
		FlushInterval:  -1, // each read of the answer is passed on at once
		BufferPool:     t.r.buffers,
		ErrorLog:       log.New(logWriter{t.r.Logger}, "", 0),
		ModifyResponse: func(res *http.Response) error { t.observe(res, to); return nil },
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { t.unreached(err, to) },
	}
	proxy.ServeHTTP(headFirst{t.w}, t.in)
	return nil
}

// headFirst sends an answer's head when it is there and not with the body's
// first bytes: a body that breaks before them is then a cut answer for the
// client too, and not a connection that never gave one.
type headFirst struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w headFirst) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if status >= 200 {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client may be gone: the body's copy tells
	}
}

// Unwrap is for http.ResponseController.
func (w headFirst) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
func (t *turn) transport(base *url.URL) (http.RoundTripper, error) {
	if t.r.Transport != nil {
		return t.r.Transport, nil
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

// rewrite makes the outgoing request. ReverseProxy has taken the hop-by-hop
// headers off; forwarding headers are the client's own, none is invented.
func (t *turn) rewrite(pr *httputil.ProxyRequest, to *target) {
	out := pr.Out
	out.URL = to.url
	out.Host = ""
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := pr.In.Header[name]; ok && !perHop(pr.In.Header, name) {
			out.Header[name] = v
		}
	}
	// ReverseProxy puts these back for upgrades and trailers, which are not
	// carried; what Expect asks for was done when the body was read.
	for _, name := range []string{"Te", "Connection", "Upgrade", "Http2-Settings", "Expect"} {
		delete(out.Header, name)
	}
	if t.server != nil {
		credential.Apply(pr.In.Header, out.Header, to.mode, to.key, t.rec.Format)
		if name := t.server.SessionHeader; name != "" && t.conv.Session != "" {
			out.Header.Set(name, placement.Plain(t.conv.Session))
		}
	}
	body := t.outgoing(to)
	if !sameBytes(body, t.body) && t.coded {
		out.Header.Del("Content-Encoding")
	}
	setBody(out, t.upload.reader(body))
}

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

// perHop reports whether a Connection header names name.
func perHop(h http.Header, name string) bool {
	for _, v := range h["Connection"] {
		for listed := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(listed), name) {
				return true
			}
		}
	}
	return false
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

// logWriter takes what the reverse proxy logs: broken copies, which the
// record tells better.
type logWriter struct {
	l interface{ Debug(string, ...any) }
}

func (w logWriter) Write(p []byte) (int, error) {
	w.l.Debug("reverse proxy", "message", string(bytes.TrimSpace(p)))
	return len(p), nil
}

// carrier carries the request to its server. For a pool, a member that
// refuses the connection has seen nothing: then, and only then, the same
// request may go to another one.
func (t *turn) carrier(to *target) http.RoundTripper {
	if t.server == nil || len(t.server.Pool) == 0 {
		return to.pool
	}
	return poolCarrier{t, to}
}

type poolCarrier struct {
	t  *turn
	to *target
}

func (c poolCarrier) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := req.Body.(*once)
	var rest []byte
	if body != nil {
		rest = body.rest
	}
	for tried := 0; ; tried++ {
		res, err := c.to.pool.RoundTrip(req)
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
