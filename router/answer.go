package router

import (
	"errors"
	"io"
	"net/http"
	"time"

	"agentop/agents/outline"
	"agentop/router/prefix"
	"agentop/router/stream"
)

// errUnfinished is what a read of an answer returns when the server closed
// tidily before the stream's terminator. The reverse proxy then cuts the
// client's connection: real clients take a tidy end for a whole answer, or
// ask again for ever.
var errUnfinished = errors.New("stream ended without its terminator")

// answer passes an upstream's body on and observes it. The bytes are handed
// over as they came; observing costs no copy and holds nothing back.
type answer struct {
	body     io.ReadCloser
	observer *stream.Observer // nil when the answer is not observed
	events   bool             // a stream that must end with a terminator
	now      func() time.Time

	first time.Time // when the first byte came; zero until then
	bytes int64
	err   error // how the body ended; nil until it did
}

// newAnswer wraps the body of res, an answer to a request of the given format.
func newAnswer(res *http.Response, f outline.Format, now func() time.Time) *answer {
	a := &answer{body: res.Body, now: now}
	if f == outline.NoFormat || res.StatusCode/100 != 2 {
		return a
	}
	contentType := res.Header.Get("Content-Type")
	a.observer = stream.New(f, contentType, func() stream.Hash { return new(prefix.Text) })
	a.events = stream.IsEventStream(contentType)
	return a
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if n > 0 {
		if a.first.IsZero() {
			a.first = a.now()
		}
		a.bytes += int64(n)
		if a.observer != nil {
			a.observer.Write(p[:n])
		}
	}
	if err == io.EOF && a.events && !a.observer.Summary().Terminated {
		err = errUnfinished
	}
	if err != nil {
		a.err = err
	}
	return n, err
}

func (a *answer) Close() error { return a.body.Close() }

// summary is what was observed; the zero Summary when nothing was.
func (a *answer) summary() stream.Summary {
	if a.observer == nil {
		return stream.Summary{}
	}
	return a.observer.Summary()
}
