package fakeserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// start runs a server for the test.
func start(t *testing.T, opts Options) *Server {
	t.Helper()
	s := New(opts)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		httpClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// script runs a server that answers all requests alike.
func script(t *testing.T, b Behaviour) *Server {
	return start(t, Options{Name: "alpha", Script: func(*Record) Behaviour { return b }})
}

// httpClient takes answers as they come; the limit only ends a test that hangs.
var httpClient = &http.Client{
	Timeout:       time.Minute,
	Transport:     &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// do sends req and returns the response and what of its body came.
func do(req *http.Request) (*http.Response, string, error) {
	resp, err := httpClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func post(t *testing.T, s *Server, path, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return do(req)
}

func TestRecordsSayWhatCame(t *testing.T) {
	var seen *Record
	s := start(t, Options{Name: "alpha", OnRequest: func(r *Record) { seen = r }})
	req, err := http.NewRequest("POST", s.URL()+"/v1/mes%73ages?beta=true", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"assistant","content":"[beta#7] so"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Session-Id", "abc")
	_, text, err := do(req)
	if err != nil {
		t.Fatal(err)
	}
	records := s.Records()
	if len(records) != 1 || records[0] != seen {
		t.Fatalf("records %v, hook %v", records, seen)
	}
	<-seen.Done
	if seen.N != 1 || seen.Path != "/v1/mes%73ages" || seen.Query != "beta=true" || seen.Header.Get("x-session-id") != "abc" ||
		seen.Format != Messages || seen.Model != "m" || !seen.Stream || seen.Status != 200 || seen.Left ||
		len(seen.History) != 1 || seen.History[0] != (Signature{"beta", 7}) || seen.Reply != (Signature{"alpha", 1}) ||
		string(seen.Answer) != text || s.InFlight() != 0 || s.Arrivals() != 1 {
		t.Errorf("record %+v", seen)
	}
}

func TestRecordsAreBounded(t *testing.T) {
	s := start(t, Options{KeepRecords: 3, KeepBody: 10})
	for range 7 {
		if _, _, err := post(t, s, "/v1/messages", `{"messages":[{"role":"user","content":"a long question"}]}`); err != nil {
			t.Fatal(err)
		}
	}
	var numbers []int64
	for _, r := range s.Records() {
		<-r.Done
		numbers = append(numbers, r.N)
		if len(r.Body) != 10 || len(r.Answer) != 10 {
			t.Errorf("record %d holds %d and %d bytes", r.N, len(r.Body), len(r.Answer))
		}
	}
	if len(numbers) != 3 || numbers[0] != 5 || numbers[2] != 7 {
		t.Errorf("records %v, want 5 to 7", numbers)
	}
}

// TestClientThatLeavesIsSeen leaves in mid-stream and before the first byte.
func TestClientThatLeavesIsSeen(t *testing.T) {
	for name, b := range map[string]Behaviour{
		"in mid-stream":         {Cut: CutHang, CutAfter: 3},
		"before the first byte": {Hold: make(chan struct{})},
	} {
		arrived := make(chan *Record, 1)
		s := start(t, Options{OnRequest: func(r *Record) { arrived <- r }, Script: func(*Record) Behaviour { return b }})
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, "POST", s.URL()+"/v1/messages", strings.NewReader(ask(true)))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() { _, _, err := do(req); gone <- err }()
		rec := <-arrived
		if got := s.InFlight(); got != 1 {
			t.Errorf("%s: %d in flight, want 1", name, got)
		}
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the client sees %v", name, err)
		}
		if <-rec.Done; !rec.Left {
			t.Errorf("%s: record %+v", name, rec)
		}
	}
}

// TestCloseEndsWhatHangs closes a server under a hanging stream and a held
// request, and counts goroutines.
func TestCloseEndsWhatHangs(t *testing.T) {
	before := runtime.NumGoroutine()
	arrived := make(chan *Record, 2)
	s := New(Options{OnRequest: func(r *Record) { arrived <- r }, Script: func(r *Record) Behaviour {
		if r.Stream {
			return Behaviour{Cut: CutHang, CutAfter: 1}
		}
		return Behaviour{FirstByte: time.Hour}
	}})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, streamed := range []bool{true, false} {
		req, err := http.NewRequest("POST", s.URL()+"/v1/messages", strings.NewReader(ask(streamed)))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _, err := do(req); done <- err }()
	}
	records := []*Record{<-arrived, <-arrived}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, r := range records {
		if <-r.Done; r.Left {
			t.Errorf("the record says that the client left: %+v", r)
		}
		if err := <-done; err == nil {
			t.Error("a client saw a whole answer")
		}
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://")); err == nil {
		t.Error("the server still listens")
	}
	httpClient.CloseIdleConnections()
	for runtime.NumGoroutine() > before { // ends in the test's time limit if it is a leak
		runtime.Gosched()
	}
}
