package router

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errUnsent is what an exchange returns when a kept connection was found dead
// before it took one byte of the request.
var errUnsent = errors.New("connection was closed while idle")

// Limits of an exchange.
const (
	// maxHead is how long an answer's head may be, interim ones included.
	maxHead = 10 << 20
	// promptly is how long a request may take to be written before the answer
	// is looked for beside: a server may answer a large one before it has read
	// it, and never read the rest.
	promptly = 20 * time.Millisecond
	// small is what a socket takes at once.
	small = 16 << 10
)

// link is a connection of plain. It belongs to the goroutine that serves a
// request, and to plain while it is idle.
type link struct {
	net.Conn
	owner   *plain
	address string
	since   time.Time // idle
	r       *bufio.Reader
	room    int64  // what may still be read of a head
	broken  error  // how reading ended
	head    []byte // of the request; memory that is used again
	parts   [2][]byte
	late    *lateWriter // writes what the server did not take promptly; nil if it took all
}

func newLink(nc net.Conn, owner *plain, address string) *link {
	if c, ok := nc.(*conn); ok {
		nc = c.Conn // what net/http's connections must be told, a link knows
	}
	l := &link{Conn: nc, owner: owner, address: address}
	l.r = bufio.NewReader(l)
	return l
}

// Read implements io.Reader, for the head's and the body's reader.
func (l *link) Read(p []byte) (int, error) {
	if l.room <= 0 {
		return 0, fmt.Errorf("malformed answer: its head is over %d bytes", maxHead)
	}
	if l.broken != nil {
		return 0, l.broken
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), l.room)])
	l.room -= int64(n)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		l.broken = err // the system tells a reset but once
	}
	return n, err
}

// exchange sends the request and reads the head of the answer. The connection
// is kept or closed when the answer's body has been read or is closed.
func (l *link) exchange(req *http.Request, told interim) (*http.Response, error) {
	stop := context.AfterFunc(req.Context(), func() { _ = l.Close() }) // that ends every wait
	fail := func(err error) (*http.Response, error) {
		stop()
		_ = l.Close() // what is on it belongs to a request that is over
		if canceled := req.Context().Err(); canceled != nil {
			return nil, canceled
		}
		return nil, err
	}
	if err := l.send(req); err != nil {
		return fail(err)
	}
	res, err := l.answer(req, told)
	if err != nil {
		return fail(err)
	}
	body := &linkBody{link: l, from: res.Body, stop: stop, keep: !res.Close && !req.Close, chunked: len(res.TransferEncoding) > 0}
	res.Body = body
	if bodiless(req, res) {
		body.end(true)
	}
	return res, nil
}

// bodiless reports whether the head is all that there is of an answer.
func bodiless(req *http.Request, res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusSwitchingProtocols:
		return false // what follows is not HTTP
	case http.StatusNoContent, http.StatusNotModified:
		return true
	}
	return req.Method == http.MethodHead || res.ContentLength == 0
}

// send writes the request, or most of it: see lateWriter.
func (l *link) send(req *http.Request) error {
	body, _ := ourBody(req)
	head, err := appendHead(l.head[:0], req, body, l.owner.manners.Load() == closesConnections)
	if err != nil {
		return err
	}
	l.head, l.room, l.late = head, maxHead, nil
	written := 0
	rest := head
	if body == nil {
		written, err = l.Write(head)
		rest = head[written:]
	} else {
		patient := len(body.rest) <= small
		if !patient {
			_ = l.SetWriteDeadline(time.Now().Add(promptly)) // without it, it waits
		}
		err = body.write(func(p []byte) (int, error) {
			n, err := l.writeBoth(head, p)
			written, rest = n, head[min(n, len(head)):]
			return max(n-len(head), 0), err
		})
		if !patient {
			_ = l.SetWriteDeadline(time.Time{})
		}
	}
	switch {
	case err == nil && body != nil:
		body.from.release() // nothing of it is needed again
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded) && body != nil:
		l.late = &lateWriter{done: make(chan struct{})}
		go l.late.write(l, rest, body, l.owner.firstByte)
		return nil
	case written == 0 && !errors.Is(err, errGone):
		return fmt.Errorf("%w: %w", errUnsent, err)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		// The server has had enough of the request, and may have said why.
	default:
		return err
	}
	return l.await(l.owner.firstByte)
}

// await begins the time that the server has for the answer's head.
func (l *link) await(firstByte time.Duration) error {
	if firstByte <= 0 {
		return nil
	}
	return l.SetReadDeadline(time.Now().Add(firstByte))
}

// writeBoth writes head and body with one call of the system.
func (l *link) writeBoth(head, body []byte) (int, error) {
	l.parts = [2][]byte{head, body}
	both := net.Buffers(l.parts[:])
	n, err := both.WriteTo(l.Conn)
	l.parts = [2][]byte{}
	return int(n), err
}

// lateWriter writes the rest of a request while its answer is waited for.
type lateWriter struct {
	done  chan struct{} // closed when it has ended
	whole bool          // all was written; to be read when it has ended

	mu     sync.Mutex
	headed bool // the answer's head has come
}

func (w *lateWriter) write(l *link, head []byte, body *once, firstByte time.Duration) {
	defer close(w.done)
	_, err := l.Write(head)
	if err == nil {
		err = body.write(l.Write)
	}
	if err != nil {
		return // the reader sees the same end, or the answer that explains it
	}
	w.whole = true
	body.from.release() // nothing of it is needed again
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.headed {
		_ = l.await(firstByte) // a connection that is closed tells its reader
	}
}

// answer reads the head of the answer, and passes on those that come before.
func (l *link) answer(req *http.Request, told interim) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(l.r, req)
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			return nil, err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			l.room = math.MaxInt64
			l.headed()
			return res, nil
		}
		if told == nil {
			continue
		}
		if err := told(res.StatusCode, res.Header); err != nil {
			return nil, err
		}
	}
}

// headed ends the time that the server had for the head.
func (l *link) headed() {
	if l.late != nil {
		l.late.mu.Lock()
		l.late.headed = true
		l.late.mu.Unlock()
	}
	if l.owner.firstByte > 0 {
		_ = l.SetReadDeadline(time.Time{}) // a connection that is closed tells its reader
	}
}

// linkBody is the body of an answer.
type linkBody struct {
	link *link
	from io.ReadCloser
	stop func() bool // ends the watch over the client's context
	keep bool        // the connection may carry another request
	over bool

	chunked bool
}

// Read implements io.Reader.
func (b *linkBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil {
		b.end(err == io.EOF)
	}
	return n, err
}

// shortly is how long an answer's head waits for the body's first bytes: to
// be sent with them is one write less, and one wake-up less for the client.
const shortly = 500 * time.Microsecond

// waiting implements coming.
func (b *linkBody) waiting() bool {
	if b.over {
		return false
	}
	if b.buffered() {
		return true
	}
	_ = b.link.SetReadDeadline(time.Now().Add(shortly)) // without it, the read tells
	for {
		_, err := b.link.r.Peek(b.link.r.Buffered() + 1)
		if there := b.buffered(); there || err != nil {
			_ = b.link.SetReadDeadline(time.Time{}) // as above
			return there
		}
	}
}

// await implements coming.
func (b *linkBody) await() {
	if !b.over {
		_, _ = b.link.r.Peek(1) // the read that follows tells what went wrong
	}
}

// buffered reports whether some of the body has been read already.
func (b *linkBody) buffered() bool {
	there, _ := b.link.r.Peek(b.link.r.Buffered()) // nothing is waited for
	if b.chunked {
		_, there, _ = bytes.Cut(there, []byte("\r\n")) // a chunk's length
	}
	return len(there) > 0
}

// Close implements io.Closer.
func (b *linkBody) Close() error {
	b.end(false)
	return nil
}

// end gives the connection back, or closes it.
func (b *linkBody) end(whole bool) {
	if b.over {
		return
	}
	b.over = true
	l := b.link
	if b.stop() && whole && b.keep && l.sent() && l.r.Buffered() == 0 {
		l.owner.keep(l)
		return
	}
	_ = l.Close() // its other end sees it
}

// sent reports whether the whole request was written.
func (l *link) sent() bool {
	if l.late == nil {
		return true
	}
	select {
	case <-l.late.done:
		return l.late.whole
	default:
		return false
	}
}

// appendHead appends the request's head, its framing made anew.
func appendHead(b []byte, req *http.Request, body *once, last bool) ([]byte, error) {
	target := req.URL.RequestURI()
	if strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, errors.New("the target holds a control character")
	}
	b = append(b, req.Method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, req.URL.Host...)
	b = append(b, "\r\n"...)
	if agent := req.Header["User-Agent"]; len(agent) > 0 && agent[0] != "" {
		b = appendField(b, "User-Agent", agent[0])
	}
	n := 0
	if body != nil {
		n = len(body.rest)
	}
	if n > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, "\r\n"...)
	}
	for name, values := range req.Header {
		switch name {
		case "Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n\x00") {
				return nil, fmt.Errorf("header %s holds a control character", name)
			}
			b = appendField(b, name, v)
		}
	}
	if last || req.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...), nil
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}
