package router

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"agentop/agents"
	"agentop/router/credential"
	"agentop/router/placement"
)

// This file is what agentop says when an upstream gave no answer.

// unreached answers for an upstream that gave no answer.
func (t *turn) unreached(err error, to *target) {
	if t.in.Context().Err() != nil {
		t.cut = "client"
		t.status = 499 // the client closed the request, as nginx's log has it
		// A return would be a tidy, empty 200 to a client that closed one half.
		panic(http.ErrAbortHandler)
	}
	f := t.describe(err, to)
	if !exhausted(err) {
		t.r.health.note(to.place, stateOf(f), f.text, t.r.Now())
	}
	t.r.Logger.Warn("no answer from upstream", "server", to.place, "url", redacted(to.url), "class", f.class,
		"tried", strings.Join(triedBy(err), " "), "error", errorWords(err))
	if f.retryAfter > 0 && t.r.retries.failed(t.asking(), t.started, t.r.Now()) {
		f = f.final(t.rec.Agent)
	}
	t.failure, t.status = f, f.status
	t.route().set(t.w.Header())
	f.write(t.w, agents.BodyFormatOf(t.in.Method, t.split.Path), t.id)
}

// keyless is for a server whose key agentop does not have.
func (t *turn) keyless(err error) *failure {
	var e *credential.Error
	if !errors.As(err, &e) {
		return refuse("key", fmt.Sprintf("no key for %s: %v", t.serverWords(), err), "see `agentop server test "+t.server.Name+"`")
	}
	text := fmt.Sprintf("%s cannot be used: %s", t.serverWords(), e.Reason)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	do := e.Do
	if t.pin != nil && isMain(t.decision.Turn) {
		do = "the conversation is kept there; " + do + fmt.Sprintf(", or move it: `agentop sessions move %s SERVER`", placement.Plain(t.conv.Session))
	}
	return refuse("key", text, do)
}

func stateOf(f *failure) string {
	if f.class == "broken" || f.class == "first-byte" {
		return healthFailing
	}
	return healthDown
}

// redacted is a URL as logs may show it: without the query, where some
// servers take keys.
func redacted(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// errorWords is an error as logs may show it. net/http quotes what a server
// sent that is not HTTP, and such a server may send back what it was sent.
func errorWords(err error) string {
	words, _, quoted := strings.Cut(err.Error(), `"`)
	if quoted {
		words += "..."
	}
	return words
}

// describe says in the user's words why there was no answer, and which of the
// ways out there are. What was wrong on the way to a proxy is no fault of the
// server's, so that is looked at first.
func (t *turn) describe(err error, to *target) *failure {
	who, kept := t.serverWords(), ""
	if t.pin != nil {
		kept = "the conversation is kept there; "
	}
	var (
		refusal *proxyRefusal
		op      *net.OpError
		dns     *net.DNSError
		timeout net.Error
	)
	errors.As(err, &op)
	switch {
	case exhausted(err):
		return unavailable("descriptors", fmt.Sprintf("no file descriptors are left here for a connection to %s", who),
			kept+"close agents that are not used, or raise the limit (ulimit -n) and run `agentop service restart`")
	case errors.Is(err, errProxySetting):
		return refuse("proxy", err.Error(), "mend it where agentop is started")
	case errors.As(err, &refusal):
		return unavailable("proxy", fmt.Sprintf("the HTTP proxy %s on the way to %s answered %d", proxyOf(to.url), who, refusal.status),
			kept+"check HTTPS_PROXY, or name the server's host in NO_PROXY")
	case op != nil && op.Op == "proxyconnect":
		return unavailable("proxy", fmt.Sprintf("the HTTP proxy %s on the way to %s does not answer", proxyOf(to.url), who),
			kept+"check HTTPS_PROXY, or name the server's host in NO_PROXY")
	case errors.As(err, &dns):
		return unavailable("dns", fmt.Sprintf("the name %s of %s was not found", to.url.Hostname(), who), kept+"check the server's url and the network")
	case op != nil && op.Op == "dial":
		return unavailable("refused", fmt.Sprintf("%s does not answer at %s (%s)", who, to.url.Host, dialWords(op, err, to)), kept+t.waysOut())
	}
	if f := describeTLS(err, who, to); f != nil {
		return f
	}
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return unavailable("first-byte", fmt.Sprintf("%s sent no answer in time", who), kept+"raise first_byte_timeout, or try again")
	case strings.Contains(err.Error(), "malformed"): // net/http has no type for it
		return unavailable("malformed", fmt.Sprintf("what %s answered is not HTTP; the request was not sent again", who), kept+"check the server's url")
	}
	return unavailable("broken", fmt.Sprintf("%s closed the connection without an answer; the request was not sent again", who), kept+t.waysOut())
}

// exhausted reports whether this machine, and not the server, is why there was
// no connection.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// describeTLS says which check of a certificate failed; nil when none did.
func describeTLS(err error, who string, to *target) *failure {
	var (
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknown):
		return refuse("tls", fmt.Sprintf("the certificate of %s at %s is signed by an authority that is not known here", who, to.url.Host), "name its CA in `ca_file` of that server")
	case errors.As(err, &hostname):
		return refuse("tls", fmt.Sprintf("the certificate of %s is for another name than %s", who, to.url.Hostname()), "mend the server's url")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return refuse("tls", fmt.Sprintf("the certificate of %s at %s has expired, or is not valid yet", who, to.url.Host), "renew it; check this machine's clock")
	case errors.As(err, &invalid), errors.As(err, &verify):
		return refuse("tls", fmt.Sprintf("the certificate of %s at %s is not valid: %v", who, to.url.Host, err), "renew it, or name its CA in `ca_file`")
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return refuse("tls", fmt.Sprintf("%s at %s does not speak TLS", who, to.url.Host), "write http:// in the server's url")
	}
	return nil
}

// dialWords says why no connection was made, and where it was tried when that
// is not plain from the URL.
func dialWords(op *net.OpError, err error, to *target) string {
	words := "no connection"
	switch {
	case op.Timeout():
		words = "no connection in time"
	case op.Err != nil:
		words = op.Err.Error()
	}
	tried := triedBy(err)
	if len(tried) > 1 || len(tried) == 1 && tried[0] != to.url.Host {
		words += "; tried " + strings.Join(tried, ", ")
	}
	return words
}

// triedBy lists the addresses that a failed dial tried.
func triedBy(err error) []string {
	var d *dialError
	if errors.As(err, &d) {
		return d.tried
	}
	return nil
}

func (t *turn) waysOut() string {
	mend := "start the server"
	if t.server == nil {
		mend = "check the network" // an own upstream is hardly the user's to start
	}
	if t.pin == nil || !isMain(t.decision.Turn) {
		return mend + ", or choose another: `agentop server use NAME --agent " + string(t.rec.Agent) + "`"
	}
	return mend + " and go on, or move it: `agentop sessions move " + placement.Plain(t.conv.Session) + " SERVER`"
}
