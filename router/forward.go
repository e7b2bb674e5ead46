package router

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"agentop/agents"
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
	proxy.ServeHTTP(t.w, t.in)
	return nil
}

// target finds the base URL, the connection pool and the key.
func (t *turn) target() (*target, *failure) {
	to := &target{place: placeName(t.decision.Server, t.member), mode: config.KeyClient}
	base, strip := "", false
	if t.server == nil {
		base, _ = t.ownUpstream()
		strip = config.UpstreamStripsV1(base)
	} else {
		base, strip, to.mode = baseURL(t.server, t.member), t.server.StripV1, t.server.Key.Kind
	}
	var err error
	if to.url, err = url.Parse(config.JoinURL(base, t.split.Path, t.in.URL.RawQuery, strip)); err != nil {
		return nil, refuse("url", fmt.Sprintf("the URL of %s cannot be used: %v", t.serverWords(), err), "mend it in config.yaml")
	}
	if to.pool, err = t.transport(to.url); err != nil {
		return nil, refuse("ca-file", fmt.Sprintf("%s: %v", t.serverWords(), err), "mend ca_file in config.yaml")
	}
	if t.server != nil && to.mode != config.KeyClient && to.mode != config.KeyNone {
		if to.key, err = t.r.Credentials.Key(t.in.Context(), t.server); err != nil {
			return nil, refuse("key", fmt.Sprintf("no key for %s: %v", t.serverWords(), err),
				fmt.Sprintf("set it with `agentop server add %s %s`", t.server.Name, t.server.URL))
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
		if v, ok := pr.In.Header[name]; ok {
			out.Header[name] = v
		}
	}
	out.Header.Del("Te")
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
	out.Body = &once{rest: body}
	out.ContentLength = int64(len(body))
	out.TransferEncoding = nil
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

// unreached answers for an upstream that gave no answer.
func (t *turn) unreached(err error, to *target) {
	if t.in.Context().Err() != nil {
		t.cut = "client"
		t.status = 499 // the client closed the request, as nginx's log has it
		return
	}
	f := t.describe(err, to)
	t.r.health.note(to.place, stateOf(f), f.text, t.r.Now())
	t.r.Logger.Warn("no answer from upstream", "server", to.place, "url", redacted(to.url), "class", f.class, "error", err)
	t.failure, t.status = f, f.status
	t.route().set(t.w.Header())
	f.write(t.w, agents.BodyFormatOf(t.in.Method, t.split.Path), t.id)
}

func stateOf(f *failure) string {
	if f.class == "broken" || f.class == "first-byte" {
		return healthFailing
	}
	return healthDown
}

// redacted is a URL as logs may show it: without the query, where some
// servers take keys.
func redacted(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// describe says in the user's words why there was no answer, and which of the
// ways out there are.
func (t *turn) describe(err error, to *target) *failure {
	who := t.serverWords()
	kept := ""
	if t.pin != nil {
		kept = "the conversation is kept there; "
	}
	var (
		unknown  x509.UnknownAuthorityError
		expired  x509.CertificateInvalidError
		hostname x509.HostnameError
		verify   *tls.CertificateVerificationError
		dns      *net.DNSError
		op       *net.OpError
		timeout  net.Error
	)
	switch {
	case errors.As(err, &unknown):
		return refuse("tls", fmt.Sprintf("the certificate of %s at %s is signed by an authority that is not known here", who, to.url.Host), "name its CA in `ca_file` of that server")
	case errors.As(err, &hostname):
		return refuse("tls", fmt.Sprintf("the certificate of %s is for another name than %s", who, to.url.Hostname()), "mend the server's url")
	case errors.As(err, &expired), errors.As(err, &verify):
		return refuse("tls", fmt.Sprintf("the certificate of %s at %s is not valid: %v", who, to.url.Host, err), "renew it, or name its CA in `ca_file`")
	case errors.As(err, &dns):
		return unavailable("dns", fmt.Sprintf("the name %s of %s was not found", to.url.Hostname(), who), kept+"check the server's url and the network")
	case errors.As(err, &op) && op.Op == "dial":
		return unavailable("refused", fmt.Sprintf("%s does not answer at %s (%s)", who, to.url.Host, dialWords(op)), kept+t.waysOut())
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return unavailable("proxy", fmt.Sprintf("the HTTP proxy on the way to %s does not answer", who), kept+"check HTTPS_PROXY and NO_PROXY")
	case errors.As(err, &timeout) && timeout.Timeout():
		return unavailable("first-byte", fmt.Sprintf("%s sent no answer in time", who), kept+"raise first_byte_timeout, or try again")
	}
	return unavailable("broken", fmt.Sprintf("%s closed the connection without an answer; the request was not sent again", who), kept+t.waysOut())
}

func dialWords(op *net.OpError) string {
	if op.Timeout() {
		return "no connection in time"
	}
	if op.Err != nil {
		return op.Err.Error()
	}
	return "no connection"
}

func (t *turn) waysOut() string {
	if t.pin == nil || !isMain(t.decision.Turn) {
		return "start the server, or choose another: `agentop server use NAME --agent " + string(t.rec.Agent) + "`"
	}
	return "start the server and go on, or move it: `agentop sessions move " + placement.Plain(t.conv.Session) + " SERVER`"
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
	bytes := body.rest
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
		req.URL, req.Body = c.to.url, &once{rest: bytes}
	}
}

// refused reports whether err says that no connection was made, so that no
// byte can have reached the server.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
