package front

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// isToken are the characters of a header's name (RFC 9110, 5.6.2).
var isToken = table("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

// isHost are the characters of the names and addresses that mean this machine.
var isHost = table("-._:[]0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

func table(set string) (t [256]bool) {
	for i := range len(set) {
		t[set[i]] = true
	}
	return t
}

func all(s string, t *[256]bool) bool {
	for i := range len(s) {
		if !t[s[i]] {
			return false
		}
	}
	return s != ""
}

// headEnd ends a head.
var headEnd = []byte("\r\n\r\n")

// mayBePlain reports whether what has come of a head may become a plain one.
// It keeps what is no HTTP from being waited for.
func mayBePlain(part []byte) bool {
	line, _, whole := bytes.Cut(part, []byte("\n"))
	if whole {
		return strings.HasSuffix(string(line), " HTTP/1.1\r")
	}
	for _, b := range line {
		if b <= ' ' && b != ' ' && b != '\r' || b >= 0x7f {
			return false
		}
	}
	return len(line) == 0 || line[0] >= 'A' && line[0] <= 'Z'
}

// parseHead reads a head, which ends with an empty line, into a request whose
// header is empty. It is false for one that is not plain: then net/http must
// read it. A plain one reads here as it does there (FuzzHead holds that).
func parseHead(head []byte, req *http.Request) bool {
	text := string(head[:len(head)-len(headEnd)]) // the one copy: all strings are parts of it
	line, text, _ := strings.Cut(text, "\r\n")
	method, line, _ := strings.Cut(line, " ")
	target, proto, _ := strings.Cut(line, " ")
	if !plainMethod(method) || !plainTarget(target) || proto != "HTTP/1.1" {
		return false
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	req.Method, req.URL, req.RequestURI = method, u, target
	req.Proto, req.ProtoMajor, req.ProtoMinor = proto, 1, 1
	hosts := 0
	values := make([]string, 1+strings.Count(text, "\n"))
	for text != "" {
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !all(name, &isToken) || !plainValue(value) {
			return false
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if name == "Host" {
			hosts++
			req.Host = value
			continue
		}
		if !takes(req, name, value) {
			return false
		}
		if earlier, ok := req.Header[name]; ok {
			req.Header[name] = append(earlier, value)
			continue
		}
		values[0] = value
		req.Header[name], values = values[:1:1], values[1:]
	}
	return hosts == 1 && all(req.Host, &isHost)
}

func plainMethod(m string) bool {
	for i := range len(m) {
		if m[i] < 'A' || m[i] > 'Z' {
			return false
		}
	}
	return m != "" && m != http.MethodConnect
}

// plainTarget reports whether t is a path of visible characters. Two slashes
// may begin an authority.
func plainTarget(t string) bool {
	for i := range len(t) {
		if t[i] <= ' ' || t[i] >= 0x7f {
			return false
		}
	}
	return strings.HasPrefix(t, "/") && !strings.HasPrefix(t, "//")
}

func plainValue(v string) bool {
	for i := range len(v) {
		if v[i] < ' ' && v[i] != '\t' || v[i] == 0x7f {
			return false
		}
	}
	return true
}

// takes notes what a header says of the body and the connection. It is false
// for what only net/http knows how to do.
func takes(req *http.Request, name, value string) bool {
	switch name {
	case "Content-Length":
		if req.Header[name] != nil || value == "" || len(value) > 15 {
			return false
		}
		for i := range len(value) {
			if value[i] < '0' || value[i] > '9' {
				return false
			}
			req.ContentLength = req.ContentLength*10 + int64(value[i]-'0')
		}
	case "Connection":
		if req.Header[name] != nil {
			return false
		}
		req.Close = strings.EqualFold(value, "close")
		return req.Close || strings.EqualFold(value, "keep-alive")
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Te", "Http2-Settings", "Pragma":
		return false
	}
	return true
}
