package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
)

// This file is about requests that are no HTTP, or whose headers are too
// large: net/http answers them before a handler sees them, in plain text,
// which agents show as if a model's server had said it.

// textHead is what net/http writes between the status and the text of its own
// answers. No answer of a handler has these two headers alone.
var textHead = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// tlsHandshake is the first byte of a client that speaks TLS.
const tlsHandshake = 0x16

var errTLS = errors.New("the client speaks TLS, and the proxy plain HTTP")

// asAgentsRead is c as net/http serves it, with what it says by itself put as
// agents read it.
func asAgentsRead(c net.Conn) net.Conn { return &readable{Conn: c} }

type readable struct {
	net.Conn
	begun bool // something was read; for the one reader that net/http allows
}

// CloseWrite lets net/http end its half before it closes.
func (c *readable) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read refuses TLS at its first byte: net/http would wait for the end of a
// line, which a handshake need not have. It then answers as for what is no
// HTTP, which clients tell as a wrong version of TLS.
func (c *readable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.begun && n > 0 {
		c.begun = true
		if p[0] == tlsHandshake {
			return 0, errTLS
		}
	}
	return n, err
}

// Write replaces what net/http says by itself.
func (c *readable) Write(p []byte) (int, error) {
	answer := unreadable(p)
	if answer == nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unreadable is agentop's answer in place of one of net/http's own, in a shape
// that all agents read; nil if p is something else.
func unreadable(p []byte) []byte {
	const start = "HTTP/1.1 "
	if !bytes.HasPrefix(p, []byte(start)) {
		return nil
	}
	line, _, found := bytes.Cut(p, textHead)
	if !found || bytes.IndexByte(line, '\r') >= 0 {
		return nil
	}
	status := string(line[len(start):])
	message := "agentop: the request cannot be read (" + status + "); send it as HTTP/1.1"
	if code, _, _ := bytes.Cut(line[len(start):], []byte(" ")); string(code) == strconv.Itoa(http.StatusRequestHeaderFieldsTooLarge) {
		message = "agentop: the request's headers are too large (" + strconv.Itoa(maxHeaders>>10) + " KB are allowed); send fewer"
	}
	body, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{
		"type": "invalid_request_error", "code": "invalid_prompt", "source": "agentop", "message": message,
	}})
	if err != nil {
		return nil // strings encode
	}
	var out bytes.Buffer
	out.Write(line)
	out.WriteString("\r\nContent-Type: application/json\r\nConnection: close\r\n" + RouteHeader +
		": agent=other; session=; turn=none; pin=none; server=-\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	out.Write(body)
	return out.Bytes()
}
