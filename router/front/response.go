package front

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Sizes of the memory that an answer passes through.
const (
	// untold is how much of an answer may wait for its end, so that its length
	// can be told in its head; as net/http has it.
	untold = 2 << 10
	// gathered is how much is put together for one write.
	gathered = 32 << 10
	// keptOut is the largest memory that is used again.
	keptOut = 2 * gathered
)

var outs = sync.Pool{New: func() any {
	p := make([]byte, 0, 4<<10)
	return &p
}}

// response is the answer to one request: an http.ResponseWriter whose Flush is
// one write. What was written and not flushed is in memory; it holds none
// between two events.
type response struct {
	conn   *conn
	req    *http.Request
	body   *body
	header http.Header

	status  int   // 0 until the head is made
	length  int64 // as told by the handler; -1 if it was not
	written int64 // of the body
	framed  bool  // the head is whole: how long the body is has been said
	chunked bool
	trailer []string // names told in the head
	out     *[]byte  // to be written; nil if nothing
	pending []byte   // of the body, until the head is whole
	broken  error    // how writing ended
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. An interim answer goes at once.
func (w *response) WriteHeader(status int) {
	if w.status != 0 {
		return // the first one counts, as in net/http
	}
	if status < 100 || status > 999 {
		panic("front: status " + strconv.Itoa(status))
	}
	if status < 200 {
		w.appendStatus(status)
		w.appendHeader(nil)
		w.text("\r\n")
		_ = w.write() // the handler's next write tells
		return
	}
	w.status = status
	w.appendStatus(status)
	w.decideLength()
	if w.body.left > 0 || w.conn.server.closing.Load() {
		w.conn.last = true
	}
	for _, v := range w.header["Connection"] {
		w.conn.last = w.conn.last || strings.EqualFold(v, "close")
	}
	w.trailer = trailerNames(w.header)
	w.appendHeader(func(name string) bool {
		switch name {
		case "Content-Length":
			return w.length < 0
		case "Connection":
			return w.conn.last
		case "Content-Type":
			return status == http.StatusNotModified
		}
		return name == "Transfer-Encoding" || slices.Contains(w.trailer, name)
	})
	if _, told := w.header["Date"]; !told {
		w.text("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
	}
	if w.conn.last {
		w.text("Connection: close\r\n")
	}
}

// decideLength reads the length that the handler tells. An answer that can
// have no body has none.
func (w *response) decideLength() {
	if v := w.header["Content-Length"]; len(v) == 1 && hasBody(w.status) {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
}

// hasBody reports whether an answer may have a body (RFC 9110, 6.4.1).
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// trailerNames are the headers that come after the body.
func trailerNames(header http.Header) (names []string) {
	for _, line := range header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// frame ends the head: the body is of the length that was told, or in chunks.
// whole says that nothing follows what is pending.
func (w *response) frame(whole bool) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.framed {
		return
	}
	w.framed = true
	switch {
	case !hasBody(w.status), w.length >= 0:
	case whole && (w.req.Method != http.MethodHead || w.written > 0):
		w.text("Content-Length: " + strconv.FormatInt(w.written, 10) + "\r\n")
	case w.req.Method == http.MethodHead:
	default:
		w.chunked = true
		w.text("Transfer-Encoding: chunked\r\n")
	}
	w.text("\r\n")
	if len(w.pending) > 0 {
		w.piece(w.pending)
		w.pending = nil
	}
}

// Write implements http.ResponseWriter. It returns an error when the client is
// gone, or for more than may be sent.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.broken != nil:
		return 0, w.broken
	case len(p) == 0:
		return 0, nil
	case !hasBody(w.status):
		return 0, http.ErrBodyNotAllowed
	case w.length >= 0 && w.written+int64(len(p)) > w.length:
		w.conn.last = w.conn.last || w.req.Method != http.MethodHead // who counts otherwise must not go on here
		return 0, http.ErrContentLength
	}
	w.written += int64(len(p))
	if w.req.Method == http.MethodHead {
		if w.written > untold {
			w.frame(false)
		}
		return len(p), nil
	}
	if !w.framed && w.length < 0 && len(w.pending)+len(p) <= untold {
		w.pending = append(w.pending, p...)
		return len(p), nil
	}
	w.frame(false)
	w.piece(p)
	if len(*w.out) >= gathered {
		if err := w.write(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// piece adds p to what is to be written, in a chunk if need be.
func (w *response) piece(p []byte) {
	if !w.chunked {
		w.bytes(p)
		return
	}
	out := w.memory()
	*out = strconv.AppendInt(*out, int64(len(p)), 16)
	*out = append(*out, "\r\n"...)
	*out = append(*out, p...)
	*out = append(*out, "\r\n"...)
}

// FlushError is for http.ResponseController.
func (w *response) FlushError() error {
	w.frame(false)
	return w.write()
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() } // the next write tells

// SetReadDeadline is for http.ResponseController.
func (w *response) SetReadDeadline(at time.Time) error { return w.conn.SetReadDeadline(at) }

// SetWriteDeadline is for http.ResponseController.
func (w *response) SetWriteDeadline(at time.Time) error { return w.conn.SetWriteDeadline(at) }

// finish sends what is left, and the end.
func (w *response) finish() error {
	w.frame(true)
	if w.chunked {
		w.text("0\r\n")
		w.appendTrailers()
		w.text("\r\n")
	}
	if err := w.write(); err != nil {
		return err
	}
	if w.length >= 0 && w.written < w.length && w.req.Method != http.MethodHead {
		return http.ErrContentLength // the client waits for more: it must see an end
	}
	return nil
}

// appendTrailers adds the headers that were told of, and those that the
// handler set with http.TrailerPrefix.
func (w *response) appendTrailers() {
	for _, name := range w.trailer {
		w.appendField(name, w.header[name])
	}
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			w.appendField(name, values)
		}
	}
}

// write writes what was gathered, and lets go of its memory.
func (w *response) write() error {
	if w.broken != nil || w.out == nil {
		return w.broken
	}
	_, err := w.conn.Conn.Write(*w.out)
	w.release()
	if err != nil {
		w.broken = err
		w.conn.last = true
		w.conn.cancel() // nobody is there to answer
	}
	return err
}

func (w *response) memory() *[]byte {
	if w.out == nil {
		w.out = outs.Get().(*[]byte)
	}
	return w.out
}

func (w *response) text(s string) {
	out := w.memory()
	*out = append(*out, s...)
}

func (w *response) bytes(p []byte) {
	out := w.memory()
	*out = append(*out, p...)
}

func (w *response) release() {
	if w.out == nil {
		return
	}
	if cap(*w.out) <= keptOut {
		*w.out = (*w.out)[:0]
		outs.Put(w.out)
	}
	w.out = nil
}

func (w *response) appendStatus(status int) {
	out := w.memory()
	*out = append(*out, "HTTP/1.1 "...)
	*out = strconv.AppendInt(*out, int64(status), 10)
	*out = append(*out, ' ')
	if text := http.StatusText(status); text != "" {
		*out = append(*out, text...)
	} else {
		*out = append(*out, "status code "...)
		*out = strconv.AppendInt(*out, int64(status), 10)
	}
	*out = append(*out, "\r\n"...)
}

// appendHeader adds the header's fields by name, but for those that skip names.
func (w *response) appendHeader(skip func(name string) bool) {
	var room [24]string
	names := room[:0]
	for name := range w.header {
		if !strings.HasPrefix(name, http.TrailerPrefix) && (skip == nil || !skip(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		w.appendField(name, w.header[name])
	}
}

// appendField adds a field as it is: a line's end in it becomes a space, and
// a name that is none is left out, as in net/http.
func (w *response) appendField(name string, values []string) {
	if !all(name, &isToken) {
		return
	}
	out := w.memory()
	for _, v := range values {
		if strings.ContainsAny(v, "\r\n") {
			v = strings.NewReplacer("\r", " ", "\n", " ").Replace(v)
		}
		*out = append(*out, name...)
		*out = append(*out, ": "...)
		*out = append(*out, strings.Trim(v, " \t")...)
		*out = append(*out, "\r\n"...)
	}
}
