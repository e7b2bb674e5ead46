package fakeserver

import (
	"io"
	"net/http"
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
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

var httpClient = &http.Client{
	Timeout:       20 * time.Second,
	Transport:     &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// post sends body and returns the response and what of its body came.
func post(t *testing.T, s *Server, path, body string) (*http.Response, string, error) {
	t.Helper()
	resp, err := httpClient.Post(s.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func TestSmoke(t *testing.T) {
	s := start(t, Options{Name: "alpha", Models: []string{"glm-5"}})
	for _, p := range []string{"/v1/messages", "/v1/responses", "/v1/chat/completions"} {
		for _, st := range []string{"true", "false"} {
			resp, text, err := post(t, s, p, `{"model":"glm-5","stream":`+st+`,"messages":[{"role":"user","content":"hi"}]}`)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(resp.Status, resp.Header, text)
		}
	}
}
