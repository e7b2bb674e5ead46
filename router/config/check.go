package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Limits of what a configuration may hold.
const (
	maxFile    = 1 << 20 // bytes of config.yaml
	maxName    = 64      // bytes of a server's or an agent's name
	maxModel   = 256     // bytes of a model name or glob
	minToken   = 16      // characters of the secret path segment
	maxBodyCap = 16 << 30
)

// reservedServers are names that no server may have, since they mean something else
// where a server's name is shown.
var reservedServers = []string{"own", "-"}

// reservedAgents are first path segments that belong to the APIs, so that an
// agent of that name could never be told from a bare base URL.
var reservedAgents = []string{"-", "v1", "v1beta", "api", "messages", "responses", "chat",
	"completions", "models", "embeddings", "files"}

// problem is a reason and what to write instead, not yet at a position.
type problem struct{ reason, instead string }

func (p *problem) err() error {
	if p == nil {
		return nil
	}
	return &Error{Reason: p.reason, Instead: p.instead}
}

// CheckName says whether a server may be called name: 1 to 64 of letters,
// digits, ".", "_" and "-", a letter or digit first, and neither "own" nor "-".
func CheckName(name string) error { return checkName("server", name, reservedServers).err() }

// CheckAgent is CheckName for agents.
func CheckAgent(name string) error { return checkName("agent", name, reservedAgents).err() }

func checkName(what, name string, reserved []string) *problem {
	if slices.Contains(reserved, name) {
		return &problem{fmt.Sprintf("%s name %q is reserved", what, name), "choose another name"}
	}
	if isName(name) {
		return nil
	}
	fixed := strings.Trim(strings.Map(func(r rune) rune {
		if isNameRune(r) {
			return r
		}
		return '-'
	}, name), "-._")
	fixed = fixed[:min(len(fixed), maxName)]
	instead := "use letters, digits, \".\", \"_\" and \"-\", a letter or digit first, at most 64"
	if fixed != "" && !slices.Contains(reserved, fixed) {
		instead += fmt.Sprintf(", such as %q", fixed)
	}
	return &problem{fmt.Sprintf("%s name %q is not allowed", what, clip(name)), instead}
}

func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsRune(".-_", rune(name[0])) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) })
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// clip shortens what comes from the file before an error repeats it.
func clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:77], "") + "..."
}

// CheckURL says whether raw can be a server's or an upstream's address and
// gives it in the form that Config holds: spaces around it and slashes at its
// end removed. A path is allowed; user information, a query, a fragment and
// the path of a single endpoint are refused, with the corrected address.
func CheckURL(raw string) (string, error) {
	clean, bad := checkURL(raw)
	return clean, bad.err()
}

func checkURL(raw string) (string, *problem) {
	text := strings.TrimFunc(raw, unicode.IsSpace)
	if text == "" {
		return "", &problem{"the URL is empty", "write one such as https://host or http://127.0.0.1:8000"}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", &problem{"the URL has a space or control character inside", "remove it"}
	}
	if !strings.Contains(text, "://") {
		return "", noScheme(text)
	}
	u, err := url.Parse(text)
	if err != nil { // the error repeats the URL, which may hold a password
		return "", &problem{"the URL cannot be read", "write one such as https://host or http://127.0.0.1:8000"}
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", &problem{fmt.Sprintf("the URL's scheme is %q", clip(u.Scheme)), "write http:// or https://"}
	}
	if bad := checkHost(u); bad != nil {
		return "", bad
	}
	return checkURLParts(text, u)
}

// checkURLParts refuses what may not follow or precede the host, each with
// the address that is left without it.
func checkURLParts(text string, u *url.URL) (string, *problem) {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	bare.Path, bare.RawPath = strings.TrimRight(bare.Path, "/"), strings.TrimRight(bare.RawPath, "/")
	clean := bare.String()
	form, strip, endpoint := withoutEndpoint(clean)
	instead := fmt.Sprintf("write %s", form)
	switch {
	case u.User != nil:
		return "", &problem{"the URL holds a user name or password", instead + " and give the key with `agentop server add`"}
	case u.RawQuery != "" || u.ForceQuery:
		return "", &problem{"the URL has a query", instead}
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		return "", &problem{"the URL has a fragment", instead}
	case endpoint != "" && strip:
		return "", &problem{fmt.Sprintf("the URL is a whole endpoint (%s), not a server's address", endpoint),
			instead + ", with `v1: strip` since its paths have no /v1"}
	case endpoint != "":
		return "", &problem{fmt.Sprintf("the URL is a whole endpoint (%s), not a server's address", endpoint), instead}
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return "", &problem{fmt.Sprintf("the URL's path has a %q in it", segment), "write the path it leads to"}
		}
	}
	return clean, nil
}

func checkHost(u *url.URL) *problem {
	if u.Hostname() == "" || u.Opaque != "" {
		return &problem{"the URL has no host", "write one such as https://host or http://127.0.0.1:8000"}
	}
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return &problem{"the URL has a colon but no port", "write the port, or leave out the colon"}
		}
		return nil
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return &problem{fmt.Sprintf("the URL's port is %q", port), "write a port from 1 to 65535"}
	}
	return nil
}

// noScheme answers an address like "glm.example.com:8000/v1": plain http for
// this machine and for bare names and addresses of a local network.
func noScheme(text string) *problem {
	reason := "the URL has no scheme"
	if strings.ContainsAny(text, "@?#") { // may hold a secret: not repeated
		return &problem{reason, "write http://host or https://host"}
	}
	host, _, _ := strings.Cut(text, "/")
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	scheme := "https"
	ip := net.ParseIP(strings.Trim(name, "[]"))
	if !strings.Contains(name, ".") || ip != nil && (ip.IsLoopback() || ip.IsPrivate()) {
		scheme = "http"
	}
	return &problem{reason, fmt.Sprintf("write %s://%s", scheme, clip(text))}
}

// endpoints are the paths that people paste in full, longest first.
var endpoints = []string{"/messages/count_tokens", "/messages/batches", "/chat/completions", "/completions",
	"/messages", "/responses", "/models", "/embeddings"}

// withoutEndpoint cuts an API endpoint (and the /v1 before it) off an
// address. strip says that the endpoint stood without /v1.
func withoutEndpoint(address string) (base string, strip bool, endpoint string) {
	for _, e := range endpoints {
		rest, found := strings.CutSuffix(address, e)
		if !found || strings.HasSuffix(rest, ":/") || strings.HasSuffix(rest, "/") {
			continue
		}
		if base, found := strings.CutSuffix(rest, "/v1"); found {
			return base, false, "/v1" + e
		}
		return rest, true, e
	}
	return address, false, ""
}
