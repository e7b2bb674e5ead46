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
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// errTooLarge says that a body, as sent or as decoded, is over the limit.
var errTooLarge = errors.New("body over the limit")

// readBody reads the whole request body, at most limit bytes. The body is
// read before anything is sent: Go's server and transport break a stream when
// an upstream answers before the body has been read to its end.
func readBody(req *http.Request, limit int64) ([]byte, error) {
	if req.ContentLength > limit {
		return nil, errTooLarge
	}
	if n := req.ContentLength; n >= 0 {
		body := make([]byte, n)
		_, err := io.ReadFull(req.Body, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
	if int64(len(body)) > limit {
		return nil, errTooLarge
	}
	return body, err
}

// decode returns body without its content codings, for reading; at most limit
// bytes. Codex compresses with zstd when it is signed in to ChatGPT. A body
// that is not coded is returned as it is.
func decode(body []byte, header http.Header, limit int64) ([]byte, error) {
	codings := codingsOf(header)
	if len(codings) > 2 {
		return nil, fmt.Errorf("%d content codings, at most 2 are read", len(codings))
	}
	for i := len(codings) - 1; i >= 0; i-- {
		r, err := decoder(codings[i], body)
		if err != nil {
			return nil, err
		}
		decoded, err := io.ReadAll(io.LimitReader(r, limit+1))
		if c, ok := r.(io.Closer); ok {
			_ = c.Close() // reads from memory: nothing to lose
		}
		if err != nil {
			return nil, fmt.Errorf("decode %s body: %w", codings[i], err)
		}
		if int64(len(decoded)) > limit {
			return nil, errTooLarge
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

func decoder(coding string, body []byte) (io.Reader, error) {
	in := bytes.NewReader(body)
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(in)
	case "zstd":
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
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
