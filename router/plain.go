package router

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentop/router/headerpool"
)

// interim passes a 1xx answer on.
type interim func(status int, header http.Header) error

// carrier is what carries a request to its server. Once there is an answer, the
// request's header belongs to the carrier.
type carrier interface {
	carry(req *http.Request, told interim) (*http.Response, error)
}

// plain carries requests to one server over HTTP/1.1 without TLS: most model
// servers of one's own. A request is written and its answer read by the
// goroutine that serves it, where net/http needs two more for each connection
// and wakes one for each step. It is safe for concurrent use.
//
// Each connection carries one request at a time, and a request is written to a
// second connection only if not one byte of it was taken by the first.
type plain struct {
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	firstByte time.Duration // for the answer's head; 0 is without end
	manners   *atomic.Int32

	mu    sync.Mutex
	idle  map[string][]*link // by address, the last used at the end
	kept  int                // in all of idle
	sweep *time.Timer        // closes those that are too old; nil while there are none
}

func newPlain(p *pool, firstByte time.Duration) *plain {
	return &plain{
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return p.DialContext(ctx, network, address)
		},
		firstByte: firstByte, manners: &p.manners, idle: map[string][]*link{},
	}
}

// suits reports whether the request can be carried: its body is ours, and its
// host is one that is written as it stands.
func (c *plain) suits(req *http.Request) bool {
	if _, ok := ourBody(req); !ok || req.URL.Scheme != "http" {
		return false
	}
	return req.Host == "" && strings.IndexFunc(req.URL.Host, func(r rune) bool { return r > '~' || r <= ' ' || r == '%' }) < 0
}

// ourBody is a request's body if it is one of ours; nil for an empty one.
func ourBody(req *http.Request) (*once, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, true
	}
	body, ok := req.Body.(*once)
	return body, ok
}

// carry implements carrier. The answer's body belongs to the caller, who must
// close it; nobody else may use it meanwhile. Of a request that has its answer
// the header is gone: it may serve another one already.
func (c *plain) carry(req *http.Request, told interim) (*http.Response, error) {
	address := req.URL.Host
	if req.URL.Port() == "" {
		address = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	for {
		l := c.take(address)
		reused := l != nil
		if l == nil {
			nc, err := c.dial(req.Context(), "tcp", address)
			if err != nil {
				return nil, err
			}
			l = newLink(nc, c, address)
		}
		res, err := l.exchange(req, told)
		if err == nil {
			headerpool.Put(req.Header)
			req.Header = nil
		}
		if err == nil || !reused || !errors.Is(err, errUnsent) || req.Context().Err() != nil {
			return res, err
		}
	}
}

// take returns a connection that was kept, nil where there is none that may be
// used.
func (c *plain) take(address string) *link {
	for {
		c.mu.Lock()
		list := c.idle[address]
		if len(list) == 0 {
			c.mu.Unlock()
			return nil
		}
		l := list[len(list)-1]
		idle := time.Since(l.since)
		known := c.manners.Load() == keepsConnections
		if !known && idle < proof && !closedByPeer(l.Conn) {
			// Whether this server keeps connections is not known yet. The
			// oldest may have been idle for long enough to tell.
			l = list[0]
			if idle = time.Since(l.since); idle < proof {
				c.mu.Unlock()
				return nil
			}
			list[0] = list[len(list)-1]
		}
		list[len(list)-1] = nil
		c.idle[address] = list[:len(list)-1]
		c.kept--
		c.mu.Unlock()
		if c.alive(l, idle) {
			return l
		}
	}
}

// alive says whether a connection that was idle for so long still is one, and
// learns from it how its server treats them.
func (c *plain) alive(l *link, idle time.Duration) bool {
	switch {
	case closedByPeer(l.Conn):
		if idle < 2*idlePlain {
			c.manners.Store(closesConnections)
		}
		_ = l.Close() // it is dead
		return false
	case idle >= idlePlain:
		_ = l.Close() // nobody waits for it
		return false
	case idle >= proof:
		c.manners.CompareAndSwap(unknownManners, keepsConnections)
	}
	return true
}

// keep takes a connection whose answer has been read to its end.
func (c *plain) keep(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept >= maxIdle || c.manners.Load() == closesConnections {
		_ = l.Close() // it has served
		return
	}
	l.since = time.Now()
	c.idle[l.address] = append(c.idle[l.address], l)
	c.kept++
	if c.sweep == nil {
		c.sweep = time.AfterFunc(idlePlain, c.sweepIdle)
	}
}

// sweepIdle closes the connections that have been idle for too long.
func (c *plain) sweepIdle() {
	c.mu.Lock()
	var old []*link
	for address, list := range c.idle {
		n := 0
		for _, l := range list {
			if time.Since(l.since) >= idlePlain || closedByPeer(l.Conn) {
				old = append(old, l)
				continue
			}
			list[n] = l
			n++
		}
		clear(list[n:])
		if c.idle[address] = list[:n]; n == 0 {
			delete(c.idle, address)
		}
	}
	if c.kept -= len(old); c.kept > 0 {
		c.sweep.Reset(idlePlain / 2)
	} else {
		c.sweep = nil
	}
	c.mu.Unlock()
	for _, l := range old {
		if c.alive(l, time.Since(l.since)) {
			_ = l.Close() // a moment too late to be told dead
		}
	}
}

// closeIdle closes the connections that carry nothing.
func (c *plain) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.idle {
		for _, l := range list {
			_ = l.Close() // nobody waits for it
		}
	}
	clear(c.idle)
	c.kept = 0
	if c.sweep != nil {
		c.sweep.Stop()
		c.sweep = nil
	}
}
