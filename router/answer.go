package router

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"agentop/agents/outline"
	"agentop/router/prefix"
	"agentop/router/stream"
)

// errUnfinished is what a read of an answer returns when the server closed
// tidily before the answer's own end. That cuts the client's connection: real
// clients take a tidy end for a whole answer, or ask again for ever.
var errUnfinished = errors.New("answer ended before its end")

// answer passes an upstream's body on and observes it. The bytes are handed
// over as they came; observing costs no copy and holds nothing back.
type answer struct {
	body     io.ReadCloser
	observer *stream.Observer // nil when the answer is not observed, or no longer
	sum      stream.Summary   // what was observed, once the observer is gone
	bare     bool             // only the connection's end tells where the body ends
	now      func() time.Time

	first time.Time // when the first byte came; zero until then
	bytes int64
	err   error // how the body ended; nil until it did

	whole func(stream.Summary) // told once when the answer's own end has come, before that is passed on

	keepsHead bool
	head      []byte // the beginning of an error that may be about the model

	hashes []*prefix.Text // those that the observer has; used again after it
}

// texts are hashers for answers' texts. One holds over a kilobyte, and an
// answer needs several.
var texts = sync.Pool{New: func() any { return new(prefix.Text) }}

// newAnswer wraps the body of res, an answer to a request of the given format.
// Its summary must be taken in the end: until then it may hold a decoder.
func newAnswer(res *http.Response, f outline.Format, now func() time.Time) *answer {
	a := &answer{body: res.Body, now: now, keepsHead: mayRefuseModel(res.StatusCode)}
	a.bare = res.ProtoMajor == 1 && res.ContentLength < 0 && len(res.TransferEncoding) == 0
	if f != outline.NoFormat && res.StatusCode/100 == 2 {
		a.observer = stream.NewDecoded(f, res.Header.Get("Content-Type"), joined(res.Header.Values("Content-Encoding")),
			a.newHash)
	}
	return a
}

func (a *answer) newHash() stream.Hash {
	h := texts.Get().(*prefix.Text)
	a.hashes = append(a.hashes, h)
	return h
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if n > 0 {
		if a.first.IsZero() {
			a.first = a.now()
		}
		a.bytes += int64(n)
		if a.keepsHead && len(a.head) < headSize {
			a.head = append(a.head, p[:min(n, headSize-len(a.head))]...)
		}
		if a.observer != nil {
			a.observer.Write(p[:n])
			if a.observer.Ended() && a.whole != nil {
				a.whole(a.summary())
			}
		}
	}
	if err == io.EOF && a.unfinished() {
		err = errUnfinished
	}
	if err != nil {
		a.err = err
	}
	return n, err
}

// unfinished reports whether an answer that the server ended tidily lacks its
// end: an event stream its terminator, or JSON its last brace where nothing
// else would tell a cut from an end. What could not be read is never cut.
func (a *answer) unfinished() bool {
	if a.observer == nil {
		return false
	}
	sum := a.summary()
	if sum.Terminated || sum.Unread {
		return false
	}
	return sum.EventStream || a.bare && a.bytes > 0
}

func (a *answer) Close() error { return a.body.Close() }

// summary ends the observation and is what was observed; the zero Summary when
// nothing was.
func (a *answer) summary() stream.Summary {
	if a.observer != nil {
		a.sum = a.observer.Summary()
		a.observer.Free()
		a.observer = nil
		for _, h := range a.hashes {
			h.Reset()
			texts.Put(h)
		}
		a.hashes = nil
	}
	return a.sum
}

// brokenBy says in a word for the log how the server's answer broke.
func (a *answer) brokenBy() string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(a.err, errUnfinished):
		return "unfinished"
	case errors.Is(a.err, syscall.ETIMEDOUT), errors.As(a.err, &timeout) && timeout.Timeout():
		return "silent" // keep-alive found nobody at the other end
	case errors.Is(a.err, syscall.ECONNRESET):
		return "reset"
	}
	return "closed"
}
