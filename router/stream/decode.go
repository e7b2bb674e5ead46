package stream

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"agentop/agents/outline"
)

// What decoding may cost. An answer that grows further is not read on: it was
// made to do harm.
const (
	maxCodings  = 3
	plainFree   = 8 << 20 // decoded bytes that any answer may have
	plainFactor = 200     // and for each coded byte, so many more
	zstdWindow  = 8 << 20 // the most that RFC 8878 asks decoders to support
)

var errCoding = errors.New("unknown content coding")

// NewDecoded is New for an answer with a content coding (gzip, deflate, br,
// zstd, or several), given as the Content-Encoding header's value. The bytes
// are decoded on the side, within Write. The decoders keep some megabytes at
// most, and are freed by Summary or Close: one of them must be called. A coding
// that is unknown leaves the answer Unread.
func NewDecoded(f outline.Format, contentType, contentEncoding string, newHash func() Hash) *Observer {
	o := New(f, contentType, newHash)
	if contentEncoding == "" {
		return o
	}
	var codings []string
	for c := range strings.SplitSeq(contentEncoding, ",") {
		c = strings.ToLower(strings.TrimSpace(c))
		if c != "" && c != "identity" {
			codings = append(codings, c)
		}
	}
	if len(codings) > 0 {
		o.decoder = newDecoder(codings, o.read)
	}
	return o
}

// decoder turns the readers that decode into a writer. They run as a coroutine,
// which runs only while write or close do, and so needs no lock.
type decoder struct {
	codings []string
	out     func(p []byte)
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool

	in     []byte // what of the piece that was written is not read yet
	ended  bool   // no more will come
	over   bool   // the coroutine returned
	broken bool   // the answer is not what its coding says, or too large
	coded  int64
	plain  int64
}

func newDecoder(codings []string, out func([]byte)) *decoder {
	d := &decoder{codings: codings, out: out}
	d.next, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		d.yield = yield
		d.run()
	})
	return d
}

func (d *decoder) write(p []byte) {
	if d.over || len(p) == 0 {
		return
	}
	d.in = p
	d.coded += int64(len(p))
	if _, more := d.next(); !more {
		d.over = true
	}
	d.in = nil
}

// close lets the decoders read what they hold back, and ends them.
func (d *decoder) close() { d.stop() }

// Read gives the decoders the piece that was written, and waits for the next.
func (d *decoder) Read(p []byte) (int, error) {
	for len(d.in) == 0 {
		if d.ended || !d.yield(struct{}{}) {
			d.ended = true
			return 0, io.EOF
		}
	}
	n := copy(p, d.in)
	d.in = d.in[n:]
	return n, nil
}

func (d *decoder) run() {
	// A decoder that panics over somebody's bytes must not take the answer with it.
	defer func() {
		if recover() != nil {
			d.broken = true
		}
	}()
	r, free, err := d.reader()
	defer free()
	buf := make([]byte, 16<<10)
	for err == nil {
		var n int
		n, err = r.Read(buf)
		d.plain += int64(n)
		if d.plain > plainFree+plainFactor*d.coded {
			d.broken = true
			return
		}
		d.out(buf[:n])
	}
	// An error after the last byte came is a cut answer, not a broken one.
	d.broken = !errors.Is(err, io.EOF) && !d.ended
}

// reader stacks a decoder for each coding, the last one first.
func (d *decoder) reader() (r io.Reader, free func(), err error) {
	free = func() {}
	if len(d.codings) > maxCodings {
		return nil, free, errCoding
	}
	r = d
	for i := len(d.codings) - 1; i >= 0 && err == nil; i-- {
		switch d.codings[i] {
		case "gzip", "x-gzip":
			r, err = gzip.NewReader(r)
		case "br":
			r = brotli.NewReader(r)
		case "deflate":
			r, err = inflate(r)
		case "zstd":
			var z *zstd.Decoder
			z, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(zstdWindow))
			if err == nil {
				before := free
				free = func() { z.Close(); before() }
				r = z
			}
		default:
			err = errCoding
		}
	}
	return r, free, err
}

// inflate reads "deflate", which servers take to be zlib's format, or what is
// inside it.
func inflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}
