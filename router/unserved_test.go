package router

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUnservedIsNotReady holds that whoever asks whether agentop is ready is
// told no by the status, also where agents get one that ends their retries.
func TestUnservedIsNotReady(t *testing.T) {
	s := httptest.NewServer(Unserved("config.yaml:1:1: bad", "correct it", false))
	defer s.Close()
	for path, want := range map[string]int{
		"/-/ready": http.StatusServiceUnavailable, "/-/healthy": http.StatusServiceUnavailable,
		"/claude-code/v1/messages": http.StatusBadRequest, "/codex/v1/responses": http.StatusBadRequest,
	} {
		res, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if body := read(t, res); res.StatusCode != want || !strings.Contains(body, "agentop: config.yaml:1:1: bad; correct it") {
			t.Errorf("%s: %d %s, want %d with the cause and its cure", path, res.StatusCode, body, want)
		}
	}
}
