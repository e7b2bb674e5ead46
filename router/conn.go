package router

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// errStale is what a write returns on a kept connection that the server has
// closed meanwhile, or has sent something on that nobody asked for.
var errStale = errors.New("connection was closed while idle")

// conn is a connection to an upstream. It knows whether a byte was written to
// it, and looks before the first write of a request whether the other end is
// still there.
type conn struct {
	net.Conn
	written atomic.Int64
	check   atomic.Bool // before the next write
}

func (c *conn) Write(p []byte) (int, error) {
	if c.check.CompareAndSwap(true, false) && closedByPeer(c.Conn) {
		return 0, errStale
	}
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// connOf finds ours below what the transport made of it, and says whether more
// than one request may be on it at once (HTTP/2).
func connOf(c net.Conn) (ours *conn, shared bool) {
	if secure, ok := c.(*tls.Conn); ok {
		shared = secure.ConnectionState().NegotiatedProtocol == "h2"
		c = secure.NetConn()
	}
	ours, _ = c.(*conn)
	return ours, shared
}

// maxUnsent bounds how many dead connections one request may meet.
const maxUnsent = 16

// pool carries requests to one server over connections that are kept for a
// while. A request that met a dead connection is carried by another one only
// if not one byte of it was written; net/http does not do that for requests
// without GetBody, and with GetBody it would do more.
type pool struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (p pool) RoundTrip(req *http.Request) (*http.Response, error) {
	for tried := 0; ; tried++ {
		var (
			met    *conn
			before int64
		)
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			c, shared := connOf(info.Conn)
			if met = nil; c == nil || !info.Reused {
				return
			}
			met, before = c, c.written.Load()
			c.check.Store(!shared)
		}}
		body, _ := req.Body.(*once)
		var rest []byte
		if body != nil {
			rest = body.rest
		}
		res, err := p.Transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		if err == nil || met == nil || met.written.Load() != before || tried >= maxUnsent || req.Context().Err() != nil {
			return res, err
		}
		if body != nil {
			req = req.WithContext(req.Context()) // a copy: the caller's is not ours to change
			req.Body = body.from.reader(rest)
		}
	}
}

// dialError is a connection that could not be made, with the addresses that
// were tried: a name may stand for several.
type dialError struct {
	tried []string
	err   error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dial connects to the first address of a name that answers, IPv6 or IPv4.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var (
		mu    sync.Mutex // both families may be tried at once
		tried []string
	)
	dialer := net.Dialer{
		Timeout: 10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 6,
		},
		ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
			mu.Lock()
			defer mu.Unlock()
			tried = append(tried, to)
			return nil
		},
	}
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		return nil, &dialError{slices.Clone(tried), err}
	}
	return &conn{Conn: c}, nil
}
