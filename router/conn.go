package router

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// errStale is what a write returns on a kept connection that the server has
// closed meanwhile, or has sent something on that nobody asked for.
var errStale = errors.New("connection was closed while idle")

// manners is what is known of how a server treats a connection that is kept
// for the next request.
type manners = int32

const (
	unknownManners manners = iota
	keepsConnections
	closesConnections // at once or soon, and without saying so
)

// proof is how long a connection must have been idle before its server counts
// as one that keeps them. Until then a younger one is not used again: a server
// that closes after each answer does it a moment after its last byte.
const proof = 50 * time.Millisecond

// conn is a connection to an upstream. It knows whether a byte was written to
// it, and looks before the first write of a request whether the other end is
// still there.
type conn struct {
	net.Conn
	home    *pool
	written atomic.Int64
	began   atomic.Int64 // what was written before this request
	check   atomic.Bool  // before the next write
	refuse  atomic.Bool  // the next write
	idle    atomic.Int64 // since when, in ns of Unix time; 0 while in use
}

func (c *conn) Write(p []byte) (int, error) {
	if c.refuse.Load() || c.check.CompareAndSwap(true, false) && closedByPeer(c.Conn) {
		return 0, errStale
	}
	n, err := c.Conn.Write(p)
	sent := c.written.Add(int64(n)) > c.began.Load()
	if sent && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		// The server has had enough of the request, and may have said why. A
		// failed write makes the transport give up before it reads that; the
		// next read tells it all.
		return len(p), nil
	}
	return n, err
}

// Read learns from the end of an idle connection how the server treats them.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		if since := c.idle.Load(); since != 0 && time.Since(time.Unix(0, since)) < 2*idlePlain {
			c.home.manners.Store(closesConnections)
		}
	}
	return n, err
}

// again says that c, idle for so long, is to carry another request. picky says
// that another connection would do as well.
func (c *conn) again(idle time.Duration, picky bool) {
	if idle >= proof {
		c.home.manners.CompareAndSwap(unknownManners, keepsConnections)
	}
	c.began.Store(c.written.Load())
	if picky && c.home.manners.Load() != keepsConnections {
		c.refuse.Store(true)
	}
	c.check.Store(true)
}

// ReadFrom writes a body that is in memory without copying it: net/http hands
// over a reader limited to the body's length. Any other reader is copied.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if body, ok := limited.R.(*once); ok {
			n := 0
			err := body.write(func(p []byte) (int, error) {
				written, err := c.Write(p[:min(int64(len(p)), limited.N)])
				n = written
				return written, err
			})
			limited.N -= int64(n)
			return int64(n), err
		}
	}
	return io.Copy(onlyWriter{c}, r)
}

// onlyWriter hides ReadFrom, so that io.Copy does not call it again.
type onlyWriter struct{ io.Writer }

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

// maxIdle is how many connections are kept for one server: a request may find
// all of them dead. maxPicky is how many it may pass over for being young.
const (
	maxIdle  = 256
	maxPicky = 3
)

// pool carries requests to one server over connections that are kept for a
// while. A request that met a dead connection is carried by another one only
// if not one byte of it was written; net/http does not do that for requests
// without GetBody, and with GetBody it would do more.
type pool struct {
	*http.Transport
	manners atomic.Int32
	plain   *plain // carries what needs no more than HTTP/1.1; nil over TLS and by HTTP proxies
}

// RoundTrip implements http.RoundTripper, which leaves a request as it is.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	own := req.WithContext(req.Context())
	own.Header = maps.Clone(req.Header)
	return p.carry(own, nil)
}

// carry implements carrier.
func (p *pool) carry(req *http.Request, told interim) (*http.Response, error) {
	if p.plain != nil && p.plain.suits(req) {
		return p.plain.carry(req, told)
	}
	return traced(p.carryTraced, req, told)
}

// CloseIdleConnections closes the connections that carry nothing.
func (p *pool) CloseIdleConnections() {
	p.Transport.CloseIdleConnections()
	if p.plain != nil {
		p.plain.closeIdle()
	}
}

// traced carries a request by what knows of interim answers from a trace
// alone.
func traced(carry func(*http.Request) (*http.Response, error), req *http.Request, told interim) (*http.Response, error) {
	if told == nil {
		return carry(req)
	}
	// net/http may call it beside, and after the answer has come.
	var mu sync.Mutex
	over := false
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			mu.Lock()
			defer mu.Unlock()
			if over {
				return nil
			}
			return told(status, http.Header(header))
		},
	})
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	}()
	return carry(req.WithContext(ctx))
}

// carryTraced carries a request by net/http.
func (p *pool) carryTraced(req *http.Request) (*http.Response, error) {
	if p.manners.Load() == closesConnections {
		req = req.WithContext(req.Context()) // a copy: the caller's is not ours to change
		req.Close = true
	}
	for tried := 0; ; tried++ {
		var (
			used   *conn // that carried it
			met    *conn // the same, if it had carried another request before
			before int64
		)
		trace := &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				c, shared := connOf(info.Conn)
				if used, met = c, nil; c == nil || !info.Reused {
					return
				}
				met, before = c, c.written.Load()
				if c.idle.Store(0); !shared {
					c.again(info.IdleTime, tried < maxPicky)
				}
			},
			PutIdleConn: func(err error) {
				if err == nil && used != nil {
					used.idle.Store(time.Now().UnixNano())
				}
			},
		}
		body, _ := req.Body.(*once)
		var rest []byte
		if body != nil {
			rest = body.rest
		}
		res, err := p.Transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		if err == nil || met == nil || met.written.Load() != before || tried > maxIdle || req.Context().Err() != nil {
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
func (p *pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
		c, err = dialLoopback(ctx, dialer, address, &tried, err)
	}
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		return nil, &dialError{slices.Clone(tried), err}
	}
	return &conn{Conn: c, home: p}, nil
}

// dialLoopback tries the other loopback address of localhost, where the
// system's table of hosts names only one and nobody answers there. It returns
// the first error if that does not help.
func dialLoopback(ctx context.Context, dialer net.Dialer, address string, tried *[]string, first error) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return nil, first
	}
	for _, ip := range []string{"127.0.0.1", "::1"} {
		other := net.JoinHostPort(ip, port)
		if slices.Contains(*tried, other) {
			continue
		}
		if c, err := dialer.DialContext(ctx, "tcp", other); err == nil {
			return c, nil
		}
	}
	return nil, first
}
