package fakeserver

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

func rawJSON(p []byte) json.RawMessage { return p }

// sender writes one answer.
type sender struct {
	ctx    context.Context // ends with the request, or with the server
	w      http.ResponseWriter
	rec    *Record
	keep   int // most of the answer that is recorded
	status int
	answer bytes.Buffer
	cut    bool // the connection was cut from this side
	done   bool // the answer was written to its end
	coded  encoder
}

// encoder is a content coding under way.
type encoder interface {
	io.WriteCloser
	Flush() error
}

func newEncoder(coding string, w io.Writer) encoder {
	switch coding {
	case "gzip":
		return gzip.NewWriter(w)
	case "deflate":
		return zlib.NewWriter(w)
	case "br":
		return brotli.NewWriter(w)
	case "zstd":
		if e, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); err == nil {
			return e
		}
	}
	return nil
}

// wait holds the answer back as long as b says; false when the client has left.
func (o *sender) wait(b Behaviour) bool {
	if b.Hold != nil {
		select {
		case <-b.Hold:
		case <-o.ctx.Done():
			return false
		}
	}
	return sleep(o.ctx, b.FirstByte)
}

func (o *sender) header(b Behaviour, media string) {
	h := o.w.Header()
	h.Set("Content-Type", media)
	if b.Media != "" {
		h.Set("Content-Type", b.Media)
	}
	h.Set("Request-Id", "req_"+strconv.FormatInt(o.rec.N, 10))
	for name, values := range b.Header {
		h[name] = values
	}
	if b.Coding != "" {
		h.Set("Content-Encoding", b.Coding)
	}
	if b.Bare {
		h.Set("Transfer-Encoding", "identity") // Go's server then neither counts nor chunks
	}
	o.status = http.StatusOK
	if b.Status != 0 {
		o.status = b.Status
	}
}

// whole writes an answer in one piece.
func (o *sender) whole(b Behaviour, body []byte) {
	o.header(b, "application/json")
	o.record(body)
	if enc := new(bytes.Buffer); b.Coding != "" {
		if e := newEncoder(b.Coding, enc); e != nil {
			_, _ = e.Write(body) // a buffer takes all
			_ = e.Close()
			body = enc.Bytes()
		}
	}
	h := o.w.Header()
	if !b.Bare && o.status >= 200 && o.status != http.StatusNoContent && o.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(body)+b.Longer))
	}
	o.w.WriteHeader(o.status)
	if b.Cut != NoCut {
		body = body[:len(body)/2]
	}
	if o.rec.Method != http.MethodHead {
		_, _ = o.w.Write(body) // the client may have left
	}
	if b.Cut != NoCut {
		o.end(b)
	}
	o.done = true
}

// stream writes an answer event by event.
func (o *sender) stream(b Behaviour, events []event) {
	o.header(b, "text/event-stream; charset=utf-8")
	o.w.Header().Set("Cache-Control", "no-cache")
	o.w.WriteHeader(o.status)
	if b.Coding != "" {
		o.coded = newEncoder(b.Coding, o.w)
	}
	o.flush()
	for i, e := range events {
		if b.Cut != NoCut && i == b.CutAfter {
			o.end(b)
			return
		}
		if b.Gate != nil {
			b.Gate(i)
		}
		if i > 0 && !sleep(o.ctx, b.Interval) || o.ctx.Err() != nil {
			o.abort()
		}
		o.event(b, e)
		if b.PingEvery > 0 && (i+1)%b.PingEvery == 0 {
			o.event(b, ping(o.rec.Format))
		}
	}
	if o.coded != nil {
		_ = o.coded.Close() // the client may have left
	}
	o.done = true
}

func ping(f Format) event {
	if f == Messages {
		return event{"ping", object("type", "ping")}
	}
	return event{}
}

func (o *sender) event(b Behaviour, e event) {
	var text bytes.Buffer
	end, space := "\n", " "
	if b.CRLF {
		end = "\r\n"
	}
	if b.NoSpace {
		space = ""
	}
	if e.name != "" {
		text.WriteString("event:" + space + e.name + end)
	}
	if e.data == nil {
		text.WriteString(": ping" + end)
	} else {
		text.WriteString("data:" + space)
		text.Write(e.data)
		text.WriteString(end)
	}
	text.WriteString(end)
	o.record(text.Bytes())
	if o.coded != nil {
		_, _ = o.coded.Write(text.Bytes()) // the client may have left: its context tells
	} else {
		_, _ = o.w.Write(text.Bytes())
	}
	o.flush()
}

func (o *sender) flush() {
	if o.coded != nil {
		_ = o.coded.Flush() // as above
	}
	_ = http.NewResponseController(o.w).Flush()
}

func (o *sender) record(p []byte) {
	o.answer.Write(p[:min(len(p), max(0, o.keep-o.answer.Len()))])
}

// end ends an answer as b's Cut says.
func (o *sender) end(b Behaviour) {
	switch b.Cut {
	case CutError:
		o.event(b, errorEvent(o.rec))
		fallthrough
	case CutTidy:
		if o.coded != nil {
			_ = o.coded.Close() // the client may have left
		}
		o.done = true
	case CutHang:
		o.flush()
		<-o.ctx.Done()
		o.abort()
	case CutReset:
		o.flush()
		o.takeOver(func(c net.Conn) {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // closes all the same
			}
		})
	case CutClose:
		o.flush()
		o.abort()
	}
}

// abort closes the connection, or resets an h2 stream, in the middle of the
// answer.
func (o *sender) abort() {
	o.cut = o.ctx.Err() == nil
	panic(http.ErrAbortHandler)
}

// takeOver gives the connection to do, and closes it.
func (o *sender) takeOver(do func(net.Conn)) {
	c, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil { // h2
		o.abort()
	}
	o.cut = true
	_ = c.SetDeadline(time.Time{}) // a deadline of the HTTP server's may be left
	do(c)
	_ = c.Close()
}
