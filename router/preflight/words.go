package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"agentop/router/config"
)

// This file says in one line what is wrong with a server and what to type.

func (a Asker) name() string { return a.Server.Name }

// addAgain is the command that corrects a server's address or key. A pool is
// corrected in the file.
func (a Asker) addAgain(address string) string {
	if len(a.Server.Pool) > 0 {
		return "correct it under " + a.Server.Name + " in config.yaml"
	}
	return fmt.Sprintf("`agentop server add %s %s`", a.Server.Name, address)
}

// unreached says why no question was answered.
func (a *asking) unreached(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		dns      *net.DNSError
		op       *net.OpError
	)
	host := a.base.Host
	switch {
	case errors.As(err, &dns) && !dns.IsTimeout:
		return fmt.Sprintf("%s: the host name %s was not found; correct the URL: %s", a.name(), a.base.Hostname(), a.addAgain("URL"))
	case errors.As(err, &unknown):
		return fmt.Sprintf("%s: the certificate of %s is signed by an authority that is not known here; write `ca_file: /path/to/ca.pem` under %s in config.yaml", a.name(), host, a.name())
	case errors.As(err, &hostname):
		return fmt.Sprintf("%s: the certificate at %s is for another name than %s; correct the URL: %s", a.name(), host, a.base.Hostname(), a.addAgain("URL"))
	case errors.As(err, &verify):
		return fmt.Sprintf("%s: the certificate of %s is not valid (%v); renew it there", a.name(), host, verify.Err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Sprintf("%s: %s speaks http, not https; correct the URL: %s", a.name(), host, a.addAgain("http://"+host+a.base.EscapedPath()))
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return fmt.Sprintf("%s: the HTTP proxy on the way to %s does not answer; check HTTPS_PROXY and NO_PROXY", a.name(), host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s: nothing listens at %s (connection refused); start the server, or correct the URL: %s", a.name(), host, a.addAgain("URL"))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s: %s did not answer within %s; start the server, or correct the URL: %s", a.name(), host, a.Limit, a.addAgain("URL"))
	case errors.As(err, &op):
		return fmt.Sprintf("%s: %s cannot be reached (%v); check the network, or correct the URL: %s", a.name(), host, op.Err, a.addAgain("URL"))
	}
	return fmt.Sprintf("%s: %s broke the connection off; check that the URL is an API's: %s", a.name(), host, a.addAgain("URL"))
}

// troubles says what is wrong with a server that answers.
func (a *asking) troubles(ctx context.Context) {
	add := func(format string, args ...any) {
		a.answer.Trouble = append(a.answer.Trouble, a.name()+": "+fmt.Sprintf(format, args...))
	}
	if a.KeyErr != nil {
		// The error of package credential names the server and what to do.
		a.answer.Trouble = append(a.answer.Trouble, a.KeyErr.Error())
	}
	switch to := a.redirect(); {
	case to != "":
		add("%s redirects to %s, and a key is never carried along; correct the URL: %s", a.base.Host, to, a.addAgain(to))
		return
	case a.wantsTLS():
		add("%s speaks https, not http; correct the URL: %s", a.base.Host, a.addAgain("https://"+a.base.Host+a.base.EscapedPath()))
		return
	case a.answer.Key == KeyRefused && a.KeyErr == nil:
		add("%s", a.refusedKey())
	case a.unavailable():
		add("%s answers %d to everything; it may still be starting, ask again: `agentop server test %s`", a.base.Host, a.replies[askChat].status, a.name())
		return
	case len(a.answer.Formats) == 0 && !a.answer.Listed && a.answer.Key != KeyRefused && !refusesKey(a.replies[askModels]):
		a.noAPI(ctx, add)
		return
	}
	if a.onlyBearer {
		add("its Messages API takes the key in the Authorization header alone; an agent that signs in with x-api-key (ANTHROPIC_API_KEY) is refused, one with ANTHROPIC_AUTH_TOKEN or a login is not")
	}
	if a.onlyPlain {
		add("it takes the key in x-api-key alone; an agent that signs in with a login or a token (ANTHROPIC_AUTH_TOKEN) is refused, one with ANTHROPIC_API_KEY is not")
	}
	for _, r := range a.replies {
		if r.err != nil {
			add("not every question was answered within %s; ask again: `agentop server test %s`", a.Limit, a.name())
			break
		}
	}
}

// unavailable says whether no turn would be answered now: llama.cpp says 503
// until its model is loaded, while its list is there at once.
func (a *asking) unavailable() bool {
	for _, f := range formatQuestions {
		if r := a.replies[f.ask]; r.err != nil || r.status < 501 {
			return false
		}
	}
	return true
}

func (a *asking) refusedKey() string {
	again := a.addAgain(a.address)
	switch a.Server.Key.Kind {
	case config.KeyNone:
		return "it wants a key; give it one: " + again
	case config.KeyEnv:
		return fmt.Sprintf("it refuses the key that is in %s; set the right one where the proxy is started, then `agentop service restart`", a.Server.Key.Env)
	case config.KeyCommand:
		return "it refuses the key that its command prints; mend the command under " + a.name() + " in config.yaml"
	}
	return "it refuses the key; give it the right one: " + again
}

// noAPI is for a server that has nothing where the APIs should be.
func (a *asking) noAPI(ctx context.Context, add func(string, ...any)) {
	what := fmt.Sprintf("%s has none of the three APIs there (%d)", a.base.Host, a.replies[askChat].status)
	if isPage(a.replies[askModels]) {
		what = a.base.Host + " answers with a web page, not with an API"
	}
	if found := a.elsewhere(ctx); found != "" {
		add("%s, but at %s; correct the URL: %s", what, found, a.addAgain(found))
		return
	}
	add("%s; its API may be under another path: %s", what, a.addAgain(a.base.Scheme+"://"+a.base.Host+"/PATH"))
}

// elsewhere looks for the API under other paths of the same host.
func (a *asking) elsewhere(ctx context.Context) string {
	root := a.base.Scheme + "://" + a.base.Host
	for _, address := range []string{root, root + "/api", root + "/v1", root + "/openai", root + "/anthropic"} {
		if address == strings.TrimRight(a.address, "/") {
			continue
		}
		r := (&asking{Asker: a.Asker, base: a.base, address: address, client: a.client}).send(ctx, first[askModels])
		if _, isList := entries(r.body); r.ok() && isList || r.status == http.StatusUnauthorized {
			return address
		}
	}
	return ""
}

func isPage(r reply) bool {
	return r.err == nil && strings.Contains(r.header.Get("Content-Type"), "text/html")
}

// redirect is the address that the server sends its clients to, "" if it does
// not.
func (a *asking) redirect() string {
	r := a.replies[askModels]
	if r.err != nil || r.status/100 != 3 {
		return ""
	}
	to, err := url.Parse(r.header.Get("Location"))
	if err != nil || to.Path == "" && to.Host == "" {
		return ""
	}
	to = a.base.ResolveReference(to)
	path := strings.TrimSuffix(strings.TrimRight(to.Path, "/"), "/models")
	path = strings.TrimSuffix(path, "/v1")
	return (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: path}).String()
}

// wantsTLS recognises what Go's and nginx' servers say to plain http on a TLS
// port.
func (a *asking) wantsTLS() bool {
	r := a.replies[askModels]
	return a.base.Scheme == "http" && r.err == nil && r.status == http.StatusBadRequest &&
		(strings.Contains(string(head(r.body)), "HTTP request to an HTTPS server") ||
			strings.Contains(string(head(r.body)), "plain HTTP request was sent to HTTPS port"))
}
