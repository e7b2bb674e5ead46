package router

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// errTooLarge says that a body, as sent or as decoded, is over the limit.
var errTooLarge = errors.New("body over the limit")

// readBody reads the whole request body, at most limit bytes. The body is
// read before anything is sent: Go's server and transport break a stream when
// an upstream answers before the body has been read to its end. The upload is
// the body's memory; it must be released.
func readBody(req *http.Request, limit int64) ([]byte, *upload, error) {
	up := &upload{}
	if req.ContentLength > limit {
		return nil, up, errTooLarge
	}
	if n := req.ContentLength; n >= 0 {
		var body []byte
		body, up.memory = takeMemory(int(n))
		_, err := io.ReadFull(req.Body, body)
		return body, up, err
	}
	body, err := collect(req.Body, limit)
	return body, up, err
}

// The blocks that collect reads into.
const (
	firstBlock = 32 << 10
	lastBlock  = 4 << 20
)

// collect reads r to its end, at most limit bytes. It holds what has come once
// while it reads, and twice only while it puts the blocks together: a body
// that turns out to be too large costs no more than the limit.
func collect(r io.Reader, limit int64) ([]byte, error) {
	var blocks [][]byte
	total := int64(0)
	for size := int64(firstBlock); ; size = min(2*size, lastBlock) {
		block := make([]byte, min(size, limit+1-total))
		n, err := fill(r, block)
		total += int64(n)
		if total > limit {
			return nil, errTooLarge
		}
		blocks = append(blocks, block[:n])
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return nil, err
		case len(blocks) == 1:
			return blocks[0], nil
		default:
			return slices.Concat(blocks...), nil
		}
	}
}

// fill reads until p is full or r ends. Unlike io.ReadFull it leaves a reader's
// own io.ErrUnexpectedEOF apart from a tidy end.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var read int
		read, err = r.Read(p[n:])
		n += read
	}
	if n == len(p) && err == io.EOF {
		err = nil // told again by the next read
	}
	return n, err
}

// maxCodings is how many content codings of one body are undone.
const maxCodings = 3

// decode returns body without its content codings, for reading; at most limit
// bytes at each step. Codex compresses with zstd when it is signed in to
// ChatGPT. A body that is not coded is returned as it is.
func decode(body []byte, header http.Header, limit int64) ([]byte, error) {
	codings := codingsOf(header)
	if len(codings) > maxCodings {
		return nil, fmt.Errorf("%d content codings, at most %d are read", len(codings), maxCodings)
	}
	for i := len(codings) - 1; i >= 0; i-- {
		r, err := decoder(codings[i], body)
		if err != nil {
			return nil, err
		}
		decoded, err := collect(r, limit)
		if c, ok := r.(io.Closer); ok {
			_ = c.Close() // reads from memory: nothing to lose
		}
		switch {
		case errors.Is(err, errTooLarge):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("decode %s body: %w", codings[i], err)
		}
		body = decoded
	}
	return body, nil
}

// joined is a header that may be repeated, as one line.
func joined(values []string) string { return strings.Join(values, ",") }

// codingsOf lists the content codings in the order they were applied.
func codingsOf(header http.Header) []string {
	var list []string
	for _, v := range header.Values("Content-Encoding") {
		for _, c := range strings.Split(v, ",") {
			if c = strings.ToLower(strings.TrimSpace(c)); c != "" && c != "identity" {
				list = append(list, c)
			}
		}
	}
	return list
}

// zstdWindow is the most that a frame may ask a decoder to keep: as much as
// the zstd program reads without being told to.
const zstdWindow = 128 << 20

func decoder(coding string, body []byte) (io.Reader, error) {
	in := bytes.NewReader(body)
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(in)
	case "zstd":
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "br":
		return brotli.NewReader(in), nil
	case "deflate":
		// RFC 9110 says zlib; some clients send raw deflate under that name.
		if z, err := zlib.NewReader(in); err == nil {
			return z, nil
		}
		return flate.NewReader(bytes.NewReader(body)), nil
	}
	return nil, fmt.Errorf("content coding %q is not known", coding)
}
