package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"agentop/router/headerpool"
)

// Limits of a connection.
const (
	// headSize is the longest head that is read here; net/http takes longer ones.
	headSize = 8 << 10
	// watchAfter is how long an answer may take before its client is watched:
	// most that fail are shorter, and a client does not leave them.
	watchAfter = 50 * time.Millisecond
	// lingerTime and lingerSize bound what is still taken in after the last
	// answer, of a body that it did not wait for, say: a connection that is
	// closed while bytes arrive loses the answer.
	lingerTime = 500 * time.Millisecond
	lingerSize = 16 << 20
)

// aLongTimeAgo interrupts a read.
var aLongTimeAgo = time.Unix(1, 0)

// readers are taken for the time in which a request is read or waited for.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, headSize) }}

// conn is one connection. It belongs to the goroutine that serves it, but for
// what is said otherwise.
type conn struct {
	net.Conn
	server *Server
	raw    syscall.RawConn
	ctx    context.Context
	remote string
	r      *bufio.Reader      // nil while an answer is on its way and nothing else has come
	last   bool               // no request is taken after this one
	cancel context.CancelFunc // ends the context of the request that is served
	watch  watch

	mu   sync.Mutex
	idle bool // waits for a request
}

// newConn is nil for a connection whose end cannot be seen without reading.
func newConn(s *Server, nc net.Conn) *conn {
	sys, ok := nc.(syscall.Conn)
	if !ok || !watches {
		return nil
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return nil
	}
	c := &conn{Conn: nc, server: s, raw: raw}
	c.watch.conn = c
	c.ctx = context.WithValue(context.Background(), http.ServerContextKey, s.HTTP)
	c.ctx = context.WithValue(c.ctx, http.LocalAddrContextKey, nc.LocalAddr())
	if s.HTTP.ConnContext != nil {
		c.ctx = s.HTTP.ConnContext(c.ctx, nc)
	}
	if a := nc.RemoteAddr(); a != nil {
		c.remote = a.String()
	}
	return c
}

// serve takes requests until one says that it is the last, or the connection
// ends, or something comes that net/http must read.
func (c *conn) serve() {
	c.r = readers.Get().(*bufio.Reader)
	c.r.Reset(c.Conn)
	defer c.caught()
	wait := c.server.HTTP.ReadHeaderTimeout // for the first, as for the rest of a head
	for !c.last {
		req, err := c.next(wait)
		switch {
		case errors.Is(err, errNotPlain):
			c.giveAway(nil)
			return
		case err != nil && c.r.Buffered() > 0, err != nil && !ends(err):
			c.giveAway(err) // net/http says what is wrong
			return
		case err != nil:
			c.close()
			return
		}
		c.answer(req)
		wait = c.server.HTTP.IdleTimeout
	}
	c.linger()
	c.close()
}

// ends reports whether err is what an idle connection ends with.
func ends(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// caught ends the connection of a handler that panicked: its client must see
// that the answer is not whole.
func (c *conn) caught() {
	p := recover()
	if p == nil {
		return
	}
	if log := c.server.HTTP.ErrorLog; log != nil && p != http.ErrAbortHandler { //nolint:errorlint // the value itself is the sign
		log.Printf("panic serving %s: %T\n%s", c.remote, p, debug.Stack())
	}
	c.close()
}

func (c *conn) close() {
	c.letGo()
	_ = c.Close() // its other end sees it
	c.server.end(c)
	c.server.tell(c.Conn, http.StateClosed)
}

// letGo gives the reader back.
func (c *conn) letGo() {
	if c.r != nil {
		c.r.Reset(nil)
		readers.Put(c.r)
		c.r = nil
	}
}

var errNotPlain = errors.New("not a plain request")

// next waits for a request's first byte, and reads its head.
func (c *conn) next(wait time.Duration) (*http.Request, error) {
	c.deadline(wait)
	if c.r.Buffered() == 0 {
		if err := c.await(); err != nil {
			return nil, err
		}
	}
	for limited := false; ; {
		have, _ := c.r.Peek(c.r.Buffered()) // nothing is waited for
		if end := bytes.Index(have, headEnd); end >= 0 {
			end += len(headEnd)
			req := c.request()
			if !parseHead(have[:end], req) {
				c.cancel()
				return nil, errNotPlain
			}
			_, _ = c.r.Discard(end) // it is there
			c.deadline(0)
			return req, nil
		}
		if len(have) == headSize || !mayBePlain(have) {
			return nil, errNotPlain
		}
		if !limited {
			limited = true
			c.deadline(c.server.HTTP.ReadHeaderTimeout)
		}
		if _, err := c.r.Peek(len(have) + 1); err != nil {
			return nil, err
		}
	}
}

// request returns an empty one.
func (c *conn) request() *http.Request {
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(c.ctx)
	req := new(http.Request).WithContext(ctx)
	req.Header, req.RemoteAddr = headerpool.Take(), c.remote
	return req
}

// await returns when a request's first byte is there. A server that ends
// interrupts it, but not a request that came just then.
func (c *conn) await() error {
	c.setIdle(true)
	defer c.setIdle(false)
	if c.server.closing.Load() {
		c.interruptIdle() // it may have been told before it was idle
	}
	_, err := c.r.Peek(1)
	if errors.Is(err, os.ErrDeadlineExceeded) && arrived(c.raw) {
		c.deadline(c.server.HTTP.ReadHeaderTimeout)
		_, err = c.r.Peek(1)
	}
	return err
}

func (c *conn) setIdle(idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
}

// interruptIdle ends the wait for a request. It may be called by anybody.
func (c *conn) interruptIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle {
		_ = c.SetReadDeadline(aLongTimeAgo) // a closed connection needs none
	}
}

// deadline limits reading to d from now; 0 is no limit.
func (c *conn) deadline(d time.Duration) {
	at := time.Time{}
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = c.SetReadDeadline(at) // a closed connection tells its reader
}

// giveAway lets HTTP serve the connection from the first byte of the request
// that is being read. err is how reading has ended, if it has.
func (c *conn) giveAway(err error) {
	have, _ := c.r.Peek(c.r.Buffered())
	replayed := &replay{Conn: c.Conn, first: bytes.Clone(have)}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		replayed.err = err
	}
	c.letGo()
	c.deadline(0)
	c.server.end(c)
	c.server.give(replayed)
}

// replay is a connection of which something has been read.
type replay struct {
	net.Conn
	first []byte
	err   error
}

// Read implements io.Reader.
func (r *replay) Read(p []byte) (int, error) {
	switch {
	case len(r.first) > 0:
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	case r.err != nil:
		return 0, r.err
	}
	return r.Conn.Read(p)
}

// CloseWrite lets net/http end its half first.
func (r *replay) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// answer serves one request.
func (c *conn) answer(req *http.Request) {
	defer c.cancel()
	defer c.watch.stop()
	in := &body{conn: c, left: req.ContentLength}
	req.Body = in
	if in.left == 0 {
		req.Body = http.NoBody
		in.ended()
	}
	c.last = req.Close
	w := response{conn: c, req: req, body: in, header: headerpool.Take(), length: -1}
	defer w.release()
	header := req.Header
	c.server.HTTP.Handler.ServeHTTP(&w, req)
	if err := w.finish(); err != nil {
		c.last = true
		return
	}
	c.watch.stop()
	// A handler and whom it calls are done with both when it returns.
	headerpool.Put(header)
	headerpool.Put(w.header)
	c.last = c.last || in.left > 0
	if c.r == nil && !c.last {
		c.r = readers.Get().(*bufio.Reader)
		c.r.Reset(c.Conn)
	}
}

// linger takes in what a client still sends after its last answer.
func (c *conn) linger() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the answer is given
	}
	c.deadline(lingerTime)
	_, _ = io.CopyN(io.Discard, c.Conn, lingerSize) // however it ends
}

// body is a request's body. It belongs to the request's goroutine.
type body struct {
	conn   *conn
	left   int64
	closed bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	}
	n, err := b.conn.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left == 0:
		b.ended()
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		b.conn.cancel() // nobody is there to answer
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed = true
	return nil
}

// ended lets the reader go and has the client watched from now on.
func (b *body) ended() {
	if b.conn.r.Buffered() == 0 {
		b.conn.letGo()
	}
	b.conn.watch.start()
}

// watch sees a client leave before it has its answer. Until then nothing is
// read of the connection. It serves a connection's requests in turn.
type watch struct {
	conn  *conn
	on    bool          // between start and stop
	timer *time.Timer   // nil before the first start
	over  chan struct{} // told by each that began to look, when it ends
}

func (w *watch) start() {
	w.on = true
	if w.timer != nil {
		w.timer.Reset(watchAfter)
		return
	}
	w.over = make(chan struct{}, 1)
	w.timer = time.AfterFunc(watchAfter, func() {
		defer func() { w.over <- struct{}{} }()
		if awaitEnd(w.conn.raw) {
			w.conn.cancel()
		}
	})
}

// stop ends the watch: the connection is free to be read again.
func (w *watch) stop() {
	if !w.on {
		return
	}
	w.on = false
	if !w.timer.Stop() {
		_ = w.conn.SetReadDeadline(aLongTimeAgo) // a closed connection ends it too
		<-w.over
		w.conn.deadline(0)
	}
}
