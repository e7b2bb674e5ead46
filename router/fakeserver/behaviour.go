package fakeserver

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// Cut is how a streamed answer ends before its time.
type Cut uint8

// The ways.
const (
	NoCut    Cut = iota
	CutReset     // the connection is reset (RST)
	CutClose     // the connection is closed (FIN) inside the body
	CutTidy      // the body ends as a whole one does, without the format's terminator
	CutHang      // silence until the client leaves or the server closes
	CutError     // an error event, and then the end
)

// ToolCall is a tool call in an answer.
type ToolCall struct {
	Name string
	// Input is the arguments' JSON text; as it is, so it may be broken.
	Input string
}

// Behaviour says how one request is answered. The zero value is a plain signed
// answer at once.
type Behaviour struct {
	Hold      <-chan struct{} // the answer's first byte waits until it is closed
	FirstByte time.Duration   // and then this long
	Interval  time.Duration   // between events
	// Gate, if set, is called before each event with its number from 0, and
	// may block.
	Gate func(event int)

	Text      string // instead of filler; the signature is put before it
	TextBytes int    // of filler; zero is 120
	Unsigned  bool   // Text without a signature
	Events    int    // pieces that the text is streamed in; zero is 6
	Thinking  string // a signed thinking block, or encrypted reasoning, before the text
	Tools     []ToolCall
	NoText    bool   // tool calls alone
	Usage     *Usage // instead of what the cache says

	PingEvery int // a ping after every so many events
	LongLine  int // bytes of one more text event, all in one line
	// Cut happens after CutAfter events, in a whole answer after half of it.
	Cut      Cut
	CutAfter int

	// Status, Header and Body make an answer of their own where Status is not
	// zero. In other answers, Header is added.
	Status  int
	Header  http.Header
	Body    []byte
	Coding  string // content coding: gzip, br, zstd, deflate
	Bare    bool   // no length and no chunks: the connection's end is the body's
	Longer  int    // Content-Length says so many bytes more than come (whole answers and those with Status)
	CRLF    bool   // events end in CRLF
	NoSpace bool   // "data:{" instead of "data: {"
	Media   string // Content-Type instead of the right one

	// Raw takes the connection over and answers by itself.
	Raw func(net.Conn, *Record)
}

// Failure is an error answer in the request's own format.
func Failure(rec *Record, status int, kind, message string) Behaviour {
	return Behaviour{Status: status, Body: errorBody(rec, kind, message)}
}

// RetryAfter is a Failure with a retry-after header, in seconds.
func RetryAfter(rec *Record, status int, kind, message string, seconds int) Behaviour {
	b := Failure(rec, status, kind, message)
	b.Header = http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	return b
}

// HTML is a page with status 200, as a captive portal or a wrong address
// answers.
func HTML() Behaviour {
	return Behaviour{
		Status: http.StatusOK, Media: "text/html; charset=utf-8",
		Body: []byte("<!doctype html><title>Welcome</title><p>Please sign in.</p>\n"),
	}
}

// Redirect is a redirect to another address.
func Redirect(status int, to string) Behaviour {
	return Behaviour{Status: status, Header: http.Header{"Location": {to}}, Body: []byte{}}
}
