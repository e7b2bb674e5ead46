package router

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	"agentop/router/headerpool"
)

// This file passes an answer on as it comes.

// errSwitched is an answer that nobody asked for.
var errSwitched = errors.New("server switched protocols unasked")

// pass gives the answer to the client, each read of its body at once. It
// panics with http.ErrAbortHandler when the body breaks: that cuts the
// client's connection, which is how a client can tell.
func (t *turn) pass(res *http.Response, to *target) {
	next, _ := res.Body.(coming)
	t.observe(res, to)
	defer res.Body.Close() // a second time where the answer was read to its end
	if res.StatusCode == http.StatusSwitchingProtocols {
		t.unreached(errSwitched, to)
		return
	}
	header := t.w.Header()
	dropHop(res.Header, res.Header["Connection"])
	maps.Copy(header, res.Header)
	announced := len(res.Trailer)
	for name := range res.Trailer {
		header.Add("Trailer", name)
	}
	t.w.WriteHeader(res.StatusCode)
	out := http.NewResponseController(t.w)
	if next == nil || !next.waiting() {
		// The head is sent when it is there and not with the body's first
		// bytes: a body that breaks before them is then a cut answer for the
		// client too, and not a connection that never gave one.
		_ = out.Flush() // the client may be gone: the body's copy tells
	}
	if !t.passBody(res.Body, next, out) {
		_ = out.Flush() // at least the head
		panic(http.ErrAbortHandler)
	}
	_ = res.Body.Close() // so that trailers are there
	if len(res.Trailer) == 0 {
		return
	}
	_ = out.Flush() // trailers need chunks
	for name, values := range res.Trailer {
		if len(res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		header[name] = append(header[name], values...)
	}
}

// Sizes of the memory that an answer passes through. Most streams come in
// events of less than a kilobyte, with long waits between them.
const (
	smallPiece = 4 << 10
	largePiece = 32 << 10
)

var (
	smallPieces = pieces(smallPiece)
	largePieces = pieces(largePiece)
)

func pieces(size int) *sync.Pool {
	return &sync.Pool{New: func() any {
		p := make([]byte, size)
		return &p
	}}
}

// coming is a body that can be waited for without memory to read it into.
type coming interface {
	// waiting reports whether some of the body is there, or came shortly.
	waiting() bool
	// await returns when some of the body is there, or its end.
	await()
}

// passBody reports whether the body came to its end, all of it passed on.
func (t *turn) passBody(body io.Reader, next coming, out *http.ResponseController) bool {
	memory := smallPieces
	for {
		if next != nil {
			next.await()
		}
		p := memory.Get().(*[]byte)
		n, err := body.Read(*p)
		ok := n == 0 || t.passPiece((*p)[:n], out, err == io.EOF)
		memory.Put(p)
		switch {
		case !ok:
			return false
		case err != nil:
			return err == io.EOF
		case n == smallPiece:
			memory = largePieces
		}
	}
}

// passPiece reports whether the client's connection took p. The last one goes
// with the answer's end, in one write.
func (t *turn) passPiece(p []byte, out *http.ResponseController, last bool) bool {
	_, err := t.w.Write(p)
	if err == nil && !last {
		err = out.Flush()
	}
	return err == nil
}

// interim passes a 1xx answer on, as it came before the answer itself.
func (t *turn) interim(status int, from http.Header) error {
	header := t.w.Header()
	maps.Copy(header, from)
	t.w.WriteHeader(status)
	for name := range from {
		delete(header, name)
	}
	return nil
}

// perHop are the headers that are meant for one connection.
var perHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// withoutHop is a copy of a header without what is meant for one connection, of
// headerpool's. It shares the values, which nobody changes.
func withoutHop(from http.Header) http.Header {
	header := headerpool.Take()
	maps.Copy(header, from)
	dropHop(header, from["Connection"])
	return header
}

// dropHop drops what is meant for one connection, by its own name or because
// the Connection header says so.
func dropHop(header http.Header, connection []string) {
	for _, line := range connection {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				header.Del(name)
			}
		}
	}
	for _, name := range perHop {
		delete(header, name)
	}
}

// tripper is a carrier made of what net/http knows as one.
type tripper struct{ http.RoundTripper }

func (c tripper) carry(req *http.Request, told interim) (*http.Response, error) {
	return traced(c.RoundTrip, req, told)
}
