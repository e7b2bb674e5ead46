package front

import (
	"io"
	"log"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// said is an answer as a client finds it.
type said struct {
	Interim         []int
	Status          int
	Header, Trailer http.Header
	Length          int64
	Chunked         bool
	Body            string
	Broken, Kept    bool
}

func listen(t *testing.T, address string, request, method string) (s said) {
	t.Helper()
	c := connect(t, address)
	c.say(request)
	var res *http.Response
	for {
		var err error
		if res, err = http.ReadResponse(c.r, &http.Request{Method: method}); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode >= 200 {
			break
		}
		s.Interim = append(s.Interim, res.StatusCode)
	}
	body, err := io.ReadAll(res.Body)
	res.Header.Del("Date")
	s.Status, s.Header, s.Trailer, s.Length, s.Chunked = res.StatusCode, res.Header, res.Trailer, res.ContentLength, len(res.TransferEncoding) > 0
	s.Body, s.Broken = string(body), err != nil
	_, _ = io.WriteString(c, "GET /again HTTP/1.1\r\nHost: a\r\n\r\n") // it may be closed
	again, err := http.ReadResponse(c.r, nil)
	s.Kept = err == nil && again.Header.Get("X-Again") != ""
	return s
}

// TestAnswersAreNetHTTPs gives each handler to both servers: a client must not
// be able to tell them apart.
func TestAnswersAreNetHTTPs(t *testing.T) {
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	for name, h := range map[string]http.HandlerFunc{
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"a short one": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "short") },
		"a long one": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("long ", 50_000))
		},
		"a status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot); w.WriteHeader(200) },
		"an unknown status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(599)
			_, _ = io.WriteString(w, "odd")
		},
		"events": func(w http.ResponseWriter, _ *http.Request) {
			for range 5 {
				_, _ = io.WriteString(w, "event\n")
				flush(w)
			}
		},
		"the head first": func(w http.ResponseWriter, _ *http.Request) { flush(w); _, _ = io.WriteString(w, "late") },
		"a told length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "6")
			_, _ = io.WriteString(w, "abc")
			flush(w)
			_, _ = io.WriteString(w, "def")
			if n, err := io.WriteString(w, "more"); err == nil {
				t.Errorf("%d bytes more than told were taken", n)
			}
		},
		"no content": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "abc"); err == nil {
				t.Error("a body of 204 was taken")
			}
		},
		"not modified": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", `"a"`)
			w.WriteHeader(http.StatusNotModified)
		},
		"an early hint": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			_, _ = io.WriteString(w, "then")
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Two"] = []string{"1", " 2 "}
			w.Header()["x-small"] = []string{"kept"}
			w.Header()["X-Line"] = []string{"a\r\nX-Injected: b"}
			w.Header()["Bad Name"] = []string{"left out"}
			w.Header().Set("Date", "Tue, 01 Jan 2030 00:00:00 GMT")
			w.WriteHeader(200)
			w.Header().Set("X-Late", "too late")
		},
		"told trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum, x-other")
			_, _ = io.WriteString(w, "body")
			flush(w)
			w.Header().Set("X-Sum", "4")
			w.Header().Set("X-Other", "o")
		},
		"untold trailers": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "body")
			flush(w)
			w.Header().Set(http.TrailerPrefix+"X-Sum", "4")
		},
		"closes": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "bye")
		},
	} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/again" {
				w.Header().Set("X-Again", "1")
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header()["Content-Type"] = nil // agentop lets none be guessed
			h(w, r)
		})
		_, ours := start(t, handler)
		theirs := standard(t, handler)
		for _, request := range []struct{ method, text string }{
			{"POST", post("body")}, {"GET", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"}, {"HEAD", "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n"},
			{"GET", "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"},
		} {
			got, want := listen(t, ours, request.text, request.method), listen(t, theirs, request.text, request.method)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %.30q:\n got %+v\nwant %+v", name, request.text, got, want)
			}
		}
	}
}

func standard(t *testing.T, h http.Handler) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: patience, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}
