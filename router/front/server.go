// Package front is the HTTP/1.1 server that faces the agents. It serves what
// agents send, requests with a plain head and a body of a stated length, with
// one goroutine for each connection and one write for each event. A connection
// that brings anything else (a chunked body, Expect, an upgrade, HTTP/1.0, what
// is malformed) goes to net/http's server with all its bytes, and stays there:
// this package never judges what it does not take. Start reading at conn.serve.
package front

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves connections. Its methods are safe for concurrent use.
type Server struct {
	// HTTP serves the connections that are given away. Its Handler,
	// ConnContext, ReadHeaderTimeout, IdleTimeout and ErrorLog hold for all;
	// its ConnState hears of all ends. It must not be changed once Serve runs.
	HTTP *http.Server
	// Wrap, if set, is applied to each connection that goes to HTTP.
	Wrap func(net.Conn) net.Conn

	closing atomic.Bool

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	none      chan struct{} // closed when closing and no connection is left; nil before
	given     *given        // HTTP's listener; nil until it is needed
}

// Serve accepts connections of l until it fails or the server is told to end;
// then the error is http.ErrServerClosed. It closes l.
func (s *Server) Serve(l net.Listener) error {
	l = &closedOnce{Listener: l}
	defer l.Close()
	if !s.listen(l) {
		return http.ErrServerClosed
	}
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.begin(nc)
			continue
		case s.closing.Load():
			return http.ErrServerClosed
		case !temporary(err):
			return err
		}
		// No descriptors are left, say: net/http's pauses.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		if log := s.HTTP.ErrorLog; log != nil {
			log.Printf("accept: %v; next try in %v", err, pause)
		}
		time.Sleep(pause)
	}
}

// closedOnce may be closed by Serve and by whoever ends the server.
type closedOnce struct {
	net.Listener
	once sync.Once
	err  error
}

// Close implements net.Listener.
func (l *closedOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// begin serves nc: here if its end can be seen without reading, else by HTTP.
func (s *Server) begin(nc net.Conn) {
	c := newConn(s, nc)
	if c == nil {
		s.give(nc)
		return
	}
	s.mu.Lock()
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	go c.serve()
}

// end forgets c, which is closed or given away.
func (s *Server) end(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.tellNone()
}

// tellNone wakes Shutdown; the caller holds the lock.
func (s *Server) tellNone() {
	if s.none != nil && len(s.conns) == 0 {
		close(s.none)
		s.none = nil
	}
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	if s.listeners == nil {
		s.listeners = map[net.Listener]struct{}{}
	}
	s.listeners[l] = struct{}{}
	return true
}

// stop closes the listeners and tells the connections that are idle. The
// channel is closed when none is left here.
func (s *Server) stop() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for l := range s.listeners {
		_ = l.Close() // it may be closed already
	}
	for c := range s.conns {
		c.interruptIdle()
	}
	if s.none == nil { // else somebody waits already
		s.none = make(chan struct{})
	}
	none := s.none
	s.tellNone()
	return none
}

// Shutdown stops listening, lets requests that run come to their end, and
// closes each connection then. It returns when all are closed, or with ctx's
// error.
func (s *Server) Shutdown(ctx context.Context) error {
	none := s.stop()
	err := s.HTTP.Shutdown(ctx)
	select {
	case <-none:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close cuts all connections.
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close() // its goroutine ends by that
	}
	s.mu.Unlock()
	return s.HTTP.Close()
}

// give has nc served by HTTP.
func (s *Server) give(nc net.Conn) {
	s.mu.Lock()
	if s.given == nil {
		s.given = &given{conns: make(chan net.Conn), closed: make(chan struct{})}
		go func() { _ = s.HTTP.Serve(s.given) }() // ends with Shutdown and Close
	}
	to := s.given
	s.mu.Unlock()
	if s.Wrap != nil {
		nc = s.Wrap(nc)
	}
	select {
	case to.conns <- nc:
	case <-to.closed:
		_ = nc.Close() // nobody is there to serve it
		s.tell(nc, http.StateClosed)
	}
}

func (s *Server) tell(nc net.Conn, state http.ConnState) {
	if s.HTTP.ConnState != nil {
		s.HTTP.ConnState(nc, state)
	}
}

// given is the listener of HTTP.
type given struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (h *given) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *given) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *given) Addr() net.Addr { return givenAddr{} }

type givenAddr struct{}

func (givenAddr) Network() string { return "tcp" }
func (givenAddr) String() string  { return "front" }
