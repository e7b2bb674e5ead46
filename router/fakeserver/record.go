package fakeserver

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Format is the API format of a request, by its path.
type Format string

// The formats. A request of another path has none.
const (
	Messages        Format = "messages"
	Responses       Format = "responses"
	ChatCompletions Format = "chat/completions"
	NoFormat        Format = ""
)

// Usage is what an answer says it cost, in tokens of four bytes. Input counts
// cached tokens too.
type Usage struct{ Input, CacheRead, CacheWrite, Output int }

// Record is one request as it came.
type Record struct {
	N      int64 // from 1, in order of arrival
	Time   time.Time
	Method string
	Path   string // as sent, escaped
	Query  string
	Proto  string
	Host   string
	Remote string // the connection's other end
	Header http.Header

	Body    []byte // as sent
	BodyErr error  // why Body is not whole
	Plain   []byte // Body without its content coding; nil if it cannot be decoded

	Format Format // of an inference request
	Model  string
	Stream bool
	// History are the signatures of the replies in the request's history,
	// oldest first.
	History []Signature

	// Done is closed when the answer ended. The fields below may be read then.
	Done chan struct{}
	// Reply is the signature that the answer bore; zero if it bore none.
	Reply Signature
	Usage Usage
	// Status is what was answered; zero if nothing was.
	Status int
	// Answer is the body that was written, before any content coding.
	Answer []byte
	// Left says that the client closed the connection before the answer ended.
	Left bool

	request request
}

func newRecord(n int64, r *http.Request) *Record {
	return &Record{
		N: n, Time: time.Now(), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
		Proto: r.Proto, Host: r.Host, Remote: r.RemoteAddr, Header: r.Header.Clone(),
		Format: formatOf(r.Method, r.URL.Path), Done: make(chan struct{}),
	}
}

func formatOf(method, path string) Format {
	if method != http.MethodPost {
		return NoFormat
	}
	for _, f := range []Format{Messages, Responses, ChatCompletions} {
		if strings.HasSuffix(path, "/"+string(f)) {
			return f
		}
	}
	return NoFormat
}

// readBody reads the request's body and what it says.
func (rec *Record) readBody(r *http.Request) {
	rec.Body, rec.BodyErr = io.ReadAll(r.Body)
	rec.Plain = decodeBody(rec.Header.Get("Content-Encoding"), rec.Body)
	if rec.Plain == nil {
		return
	}
	if err := json.Unmarshal(rec.Plain, &rec.request); err != nil || !rec.request.inputFits() {
		rec.request.invalid = true
	}
	rec.Model, rec.Stream = rec.request.Model, rec.request.Stream
	rec.History = Signed(rec.Plain)
}

// trim cuts what a kept record holds to limit.
func (rec *Record) trim(limit int) {
	cut := func(p *[]byte) {
		if len(*p) > limit {
			*p = bytes.Clone((*p)[:limit])
		}
	}
	cut(&rec.Body)
	cut(&rec.Plain)
	cut(&rec.Answer)
	rec.request = request{}
}

func decodeBody(coding string, body []byte) []byte {
	var (
		r   io.Reader = bytes.NewReader(body)
		err error
	)
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return body
	case "gzip":
		r, err = gzip.NewReader(r)
	case "deflate":
		r, err = zlib.NewReader(r)
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1)); err == nil {
			defer d.Close()
			r = d
		}
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return plain
}
