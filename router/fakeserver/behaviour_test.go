package fakeserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestCutsEndAsTheySay holds what a client sees of each way to end a stream
// before its time, and that an observer never takes it for whole.
func TestCutsEndAsTheySay(t *testing.T) {
	for name, c := range map[string]struct {
		cut        Cut
		wantErr    error
		terminated bool
	}{
		"reset": {CutReset, syscall.ECONNRESET, false},
		"close": {CutClose, io.ErrUnexpectedEOF, false},
		"tidy":  {CutTidy, nil, false},
		"error": {CutError, nil, true},
	} {
		for _, format := range []Format{Messages, Responses, ChatCompletions} {
			s := script(t, Behaviour{Cut: c.cut, CutAfter: 4})
			resp, text, err := post(t, s, "/v1/"+string(format), ask(true))
			if !errors.Is(err, c.wantErr) {
				t.Errorf("%s, %s: the client sees %v, want %v", name, format, err, c.wantErr)
				continue
			}
			sum := observe(format, resp.Header.Get("Content-Type"), "", text)
			if sum.Terminated != c.terminated || (sum.Error != "") != c.terminated {
				t.Errorf("%s, %s: %+v", name, format, sum)
			}
			if n := strings.Count(text, "data: "); c.wantErr != syscall.ECONNRESET && n != 4 && n != 5 {
				t.Errorf("%s, %s: %d events came", name, format, n)
			}
			rec := s.Records()[0]
			if <-rec.Done; rec.Left {
				t.Errorf("%s, %s: the record says that the client left", name, format)
			}
		}
	}
}

func TestWholeAnswerIsCutInItsMiddle(t *testing.T) {
	for name, b := range map[string]Behaviour{"length": {Longer: 7}, "close": {Cut: CutClose}} {
		_, text, err := post(t, script(t, b), "/v1/messages", ask(false))
		if !errors.Is(err, io.ErrUnexpectedEOF) || text == "" {
			t.Errorf("%s: the client sees %q, %v", name, text, err)
		}
	}
}

func TestCodedAnswersAreReadable(t *testing.T) {
	for _, coding := range []string{"gzip", "br", "zstd", "deflate"} {
		for _, streamed := range []bool{true, false} {
			resp, text, err := post(t, script(t, Behaviour{Coding: coding}), "/v1/messages", ask(streamed))
			if err != nil || resp.Header.Get("Content-Encoding") != coding {
				t.Fatalf("%s: %v %v", coding, resp, err)
			}
			sum := observe(Messages, resp.Header.Get("Content-Type"), coding, text)
			if !sum.Terminated || !strings.HasPrefix(sum.Text, "[alpha#1] ") {
				t.Errorf("%s, streamed %v: %+v", coding, streamed, sum)
			}
		}
	}
}

func TestCodedBodiesAreRead(t *testing.T) {
	s := start(t, Options{})
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, ask(true))
	w.Close()
	req, err := http.NewRequest("POST", s.URL()+"/v1/responses", bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "zstd")
	resp, text, err := do(req)
	rec := s.Records()[0]
	if err != nil || resp.StatusCode != 200 || string(rec.Plain) != ask(true) || !bytes.Equal(rec.Body, b.Bytes()) {
		t.Errorf("%v %v %s, record %+v", resp, err, text, rec)
	}
}

// TestEventsGoOutOneByOne reads each event before the next may be sent.
func TestEventsGoOutOneByOne(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		gate := make(chan struct{})
		s := script(t, Behaviour{Coding: coding, Gate: func(int) { <-gate }})
		resp, err := httpClient.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(ask(true)))
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64<<10)
		for range 3 {
			gate <- struct{}{}
			if n, err := resp.Body.Read(buf); n == 0 || err != nil {
				t.Fatalf("%q: read %d, %v", coding, n, err)
			}
		}
		close(gate)
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Error(err)
		}
		resp.Body.Close()
	}
}

func TestEarlyAnswerComesBeforeTheBody(t *testing.T) {
	s := start(t, Options{Early: func(r *Record) *Behaviour {
		b := Failure(r, http.StatusRequestEntityTooLarge, "request_too_large", "too large")
		return &b
	}})
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 413 || !strings.Contains(string(text), "request_too_large") {
		t.Errorf("%v %s %v", resp, text, err)
	}
}

// TestOddAnswers holds the small ways to be odd.
func TestOddAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		b        Behaviour
		streamed bool
		check    func(resp *http.Response, text string) bool
	}{
		"html": {HTML(), true, func(r *http.Response, text string) bool {
			return r.StatusCode == 200 && strings.HasPrefix(text, "<!doctype")
		}},
		"redirect": {Redirect(307, "https://x.example.com/"), true, func(r *http.Response, text string) bool {
			u, err := r.Location()
			return err == nil && u.Host == "x.example.com"
		}},
		"retry": {RetryAfter(&Record{Format: Messages}, 529, "overloaded_error", "busy", 7), true, func(r *http.Response, text string) bool {
			return r.StatusCode == 529 && r.Header.Get("retry-after") == "7"
		}},
		"long line": {Behaviour{LongLine: 2 << 20}, true, func(r *http.Response, text string) bool { return strings.Contains(text, strings.Repeat("x", 2<<20)) }},
		"pings":     {Behaviour{PingEvery: 1}, true, func(r *http.Response, text string) bool { return strings.Count(text, `{"type":"ping"}`) > 8 }},
		"bare": {Behaviour{Bare: true}, true, func(r *http.Response, text string) bool {
			return r.ContentLength == -1 && len(r.TransferEncoding) == 0 && strings.Contains(text, "message_stop")
		}},
		"lines": {Behaviour{CRLF: true, NoSpace: true}, true, func(r *http.Response, text string) bool {
			return strings.Contains(text, "event:message_stop\r\ndata:{")
		}},
		"media":  {Behaviour{Media: "text/plain"}, false, func(r *http.Response, text string) bool { return r.Header.Get("content-type") == "text/plain" }},
		"header": {Behaviour{Header: http.Header{"X-A": {"1", "2"}}}, false, func(r *http.Response, text string) bool { return len(r.Header.Values("X-A")) == 2 }},
		"raw":    {Behaviour{Raw: func(c net.Conn, _ *Record) { fmt.Fprint(c, "HTTP/1.1 418 Tea\r\nContent-Length: 2\r\n\r\nhi") }}, false, func(r *http.Response, text string) bool { return r.StatusCode == 418 && text == "hi" }},
	} {
		resp, text, err := post(t, script(t, c.b), "/v1/messages", ask(c.streamed))
		if err != nil || !c.check(resp, text) {
			t.Errorf("%s: %v %v, body %.300q", name, resp, err, text)
		}
	}
}

func TestListenErrorIsTold(t *testing.T) {
	s := start(t, Options{})
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := New(Options{Name: "beta", Addr: u.Host}).Start(); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), `"beta"`) {
		t.Errorf("got %v", err)
	}
}
