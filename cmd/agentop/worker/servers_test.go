package worker

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentop/router/control"
	"agentop/router/preflight/kinds"
)

func TestPreflightFillsContextAndPrice(t *testing.T) {
	small, big := kinds.Named("vllm").Start(), kinds.Named("litellm").Start()
	defer small.Close()
	defer big.Close()
	r := start(t, `
servers:
  small: {url: %s, key: stored, rename: {"claude-*": zai-org/GLM-5}}
  big: {url: %s, key: stored}
agents:
  claude-code: {server: small, upstream: none}
`, small.URL, big.URL)
	ctx := t.Context()
	for _, name := range []string{"small", "big"} {
		if _, err := r.AddServer(ctx, control.ServerSpec{Name: name, URL: map[string]string{"small": small.URL, "big": big.URL}[name], Key: "stored", Secret: kinds.Key}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.turn("s1", "claude-opus-5-5"); got != http.StatusOK {
		t.Fatalf("the turn got %d", got)
	}
	session := func() control.Session {
		t.Helper()
		s, err := r.Session(ctx, "claude-code", "s1")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got := session().ContextMax; got != 0 {
		t.Errorf("context %d before anybody asked, want 0", got)
	}
	p, err := r.Preflight(ctx, "small", nil)
	if err != nil || !p.Up || p.KeyOK == nil || !*p.KeyOK || len(p.Missing) != 0 || p.FirstMS != 0 {
		t.Fatalf("preflight %+v, %v", p, err)
	}
	if got := session().ContextMax; got != 131_072 {
		t.Errorf("context %d after the preflight, want 131072", got)
	}
	list, err := r.Sessions(ctx)
	if err != nil || len(list) != 1 || list[0].ContextMax != 131_072 {
		t.Errorf("sessions %+v, %v", list, err)
	}

	// The price of a move asks a server that was not asked yet.
	price, err := r.MovePrice(ctx, "claude-code", "s1", "big")
	if err != nil || price.MissingModel != "claude-opus-5-5" || len(price.Warnings) != 0 {
		t.Errorf("price %+v, %v, want the missing model", price, err)
	}
	if _, err := r.AddServer(ctx, control.ServerSpec{Name: "big", URL: big.URL, Key: "stored", Rename: []control.Rename{{Glob: "claude-*", Name: "glm-5"}}}); err != nil {
		t.Fatal(err)
	}
	price, err = r.MovePrice(ctx, "claude-code", "s1", "big")
	if err != nil || price.MissingModel != "" || price.ContextMax != 202_752 {
		t.Errorf("price with the line %+v, %v, want the context 202752", price, err)
	}
	if n := big.Fake.Arrivals(); n != 0 {
		t.Errorf("the price of a move reached the models %d times", n)
	}

	// A test sends one request, and says so.
	p, err = r.TestServer(ctx, "big", []string{"claude-code"})
	if err != nil || p.FirstMS == 0 || p.Tried != "one messages request of a single token to glm-5" || big.Fake.Arrivals() != 1 {
		t.Errorf("test %+v, %v, %d requests", p, err, big.Fake.Arrivals())
	}
	if p.Names[0].Sent != "glm-5" || !p.Names[0].Seen || !p.Names[0].Served {
		t.Errorf("names %+v, want the seen name first", p.Names)
	}
}

func TestRefusedModelShowsAtItsServer(t *testing.T) {
	s := kinds.Named("ollama").Start()
	defer s.Close()
	r := start(t, `
servers:
  desk: {url: %s, key: none}
agents:
  claude-code: {server: desk, upstream: none}
`, s.URL)
	warnings := func() []string {
		t.Helper()
		status, err := r.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Servers[0].Warnings
	}
	if got := r.turn("s1", "claude-opus-5-5"); got != http.StatusNotFound {
		t.Fatalf("the turn got %d, want the server's 404", got)
	}
	if got := warnings(); len(got) != 1 || got[0] != "desk refused the model claude-opus-5-5 (404); `agentop server test desk` shows the rename line that would help" {
		t.Errorf("warnings %q", got)
	}
	if _, err := r.Preflight(t.Context(), "desk", nil); err != nil {
		t.Fatal(err)
	}
	want := `desk refused the model claude-opus-5-5 (404); this line under desk in config.yaml would help: rename: {"claude-*": qwen3-coder:latest}`
	if got := warnings(); len(got) != 1 || got[0] != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
	if _, err := r.AddServer(t.Context(), control.ServerSpec{Name: "desk", URL: s.URL, Key: "none", Rename: []control.Rename{{Glob: "claude-*", Name: "qwen3-coder:latest"}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.turn("s1", "claude-opus-5-5"); got != http.StatusOK {
		t.Errorf("after the line was written the same conversation got %d", got)
	}
	if got := warnings(); len(got) != 0 {
		t.Errorf("warnings %q after the server took the model", got)
	}
}

// TestWhatServersToldSurvivesARestart holds that a context's limit and the
// formats are known to the next worker, without a question.
func TestWhatServersToldSurvivesARestart(t *testing.T) {
	s := kinds.Named("vllm").Start()
	defer s.Close()
	r := start(t, `
servers:
  gpu: {url: %s, key: none, rename: {"claude-*": zai-org/GLM-5}}
agents:
  claude-code: {server: gpu, upstream: none}
`, s.URL)
	if _, err := r.AddServer(t.Context(), control.ServerSpec{Name: "gpu", URL: s.URL, Key: "stored", Secret: kinds.Key}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Preflight(t.Context(), "gpu", nil); err != nil {
		t.Fatal(err)
	}
	if got := r.turn("s1", "claude-opus-5-5"); got != http.StatusOK {
		t.Fatalf("the turn got %d", got)
	}
	info, err := os.Stat(r.home.Servers())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("servers.json: %v, %v, want it there with 0600", info, err)
	}
	r.restart()
	asked := len(s.Asked())
	got, err := r.Session(t.Context(), "claude-code", "s1")
	if err != nil || got.ContextMax != 131_072 {
		t.Errorf("context %d after the restart, %v, want 131072", got.ContextMax, err)
	}
	if n := len(s.Asked()); n != asked {
		t.Errorf("the server was asked %d times by the start", n-asked)
	}

	// What is not readable is no reason to fail.
	if err := os.WriteFile(r.home.Servers(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if got, err := r.Session(t.Context(), "claude-code", "s1"); err != nil || got.ContextMax != 0 {
		t.Errorf("context %d from a damaged file, %v, want none", got.ContextMax, err)
	}
}

// TestFormatThatIsNotSpokenIsRefused holds that what a server told of its
// formats keeps requests from it that it would not understand, and that it is
// asked again because of it.
func TestFormatThatIsNotSpokenIsRefused(t *testing.T) {
	var messages atomic.Bool
	asked := make(chan string, 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r.URL.Path
		switch {
		case r.URL.Path == "/v1/chat/completions", r.URL.Path == "/v1/messages" && messages.Load():
			if strings.Contains(string(body), `"messages":0`) {
				http.Error(w, `{"error":"not a list"}`, http.StatusBadRequest)
			}
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	r := start(t, `
servers:
  chat: {url: %s, key: none}
agents:
  claude-code: {server: chat, upstream: none}
`, s.URL)
	if got := r.turn("s1", "m"); got != http.StatusNotFound {
		t.Errorf("before anybody asked: %d, want the server's own 404", got)
	}
	p, err := r.Preflight(t.Context(), "chat", []string{"claude-code"})
	if err != nil || !slices.Equal(p.Formats, []string{"chat"}) {
		t.Fatalf("formats %q, %v", p.Formats, err)
	}
	drain(asked)
	messages.Store(true) // an upgrade
	if got := r.turn("s1", "m"); got != http.StatusBadRequest {
		t.Errorf("%d, want a refusal by agentop", got)
	}
	for path := range asked { // because of the refusal
		if path == "/v1/messages" {
			break
		}
	}
	deadline := time.Now().Add(time.Minute)
	for r.turn("s1", "m") != http.StatusOK { // the answer is read behind the requests
		if time.Now().After(deadline) {
			t.Fatal("what the server told anew has no effect")
		}
	}
}

func drain(c chan string) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}
