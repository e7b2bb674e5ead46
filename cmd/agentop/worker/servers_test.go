package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/router/control"
	"agentop/router/preflight/kinds"
)

// running is a whole proxy of a scratch home, and a client of its API.
type running struct {
	t    *testing.T
	home home.Home
	url  string
	stop func()

	stderr bytes.Buffer // may be read once the proxy is ready
	*control.Client
}

// start runs a proxy on a configuration without its listen line.
func start(t *testing.T, yaml string, args ...any) *running {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ao") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &running{t: t, home: home.Home(dir + "/h")}
	if err := r.home.Create(); err != nil {
		t.Fatal(err)
	}
	config := "listen: 127.0.0.1:0\n" + fmt.Sprintf(yaml, args...)
	if err := os.WriteFile(r.home.Config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run()
	t.Cleanup(func() { r.stop() })
	return r
}

// run starts the proxy on the home as it is.
func (r *running) run() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan []string, 1), make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Home: r.home, Version: "test", Stderr: &r.stderr, Ready: func(a []string) { ready <- a }})
	}()
	r.stop = func() {
		r.Close()
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the proxy ended with %v", err)
		}
	}
	r.Client = control.Dial(r.home.String())
	select {
	case addresses := <-ready:
		r.url = "http://" + addresses[0]
	case err := <-done:
		done <- err
		r.t.Fatalf("the proxy did not start: %v", err)
	}
}

// restart ends the proxy and starts another on the same home.
func (r *running) restart() {
	r.t.Helper()
	r.stop()
	r.run()
}

// turn sends a turn of Claude Code and returns its status.
func (r *running) turn(session, model string) int {
	r.t.Helper()
	body := fmt.Sprintf(`{"model":%q,"max_tokens":9,"tools":[{"name":"Read"},{"name":"Edit"},{"name":"Bash"},{"name":"Grep"}],"system":[{"type":"text","text":"You are a test."}],"messages":[{"role":"user","content":"hi"}],"stream":true}`, model)
	req, err := http.NewRequest(http.MethodPost, r.url+"/claude-code/v1/messages", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, v := range map[string]string{"User-Agent": "claude-cli/2.1.332 (external, cli)", "X-Claude-Code-Session-Id": session,
		"X-Claude-Code-Request-Class": "main", "Authorization": "Bearer sk-fake-client", "Content-Type": "application/json"} {
		req.Header.Set(name, v)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

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

// TestChangedServerKeepsItsLines holds that a new key or address leaves what
// else config.yaml says of the server.
func TestChangedServerKeepsItsLines(t *testing.T) {
	r := start(t, `
servers:
  glm: {url: https://glm.example.com, key: none, rename: {"claude-*": glm-5}, v1: strip, session_header: x-some-id} # the big one
`)
	change, err := r.AddServer(t.Context(), control.ServerSpec{Name: "glm", URL: "https://new.example.com", Key: "stored", Secret: "sk-fake-new"})
	if err != nil || !change.Changed {
		t.Fatalf("%+v, %v", change, err)
	}
	data, err := os.ReadFile(r.home.Config())
	if err != nil {
		t.Fatal(err)
	}
	want := `  glm: {url: https://new.example.com, key: stored, rename: {"claude-*": glm-5}, v1: strip, session_header: x-some-id} # the big one`
	if !strings.Contains(string(data), want) {
		t.Errorf("config.yaml is\n%s, want the line\n%s", data, want)
	}
}

// TestWarningsAtEachStart holds that insecure settings are in the log of every
// start, and in the status.
func TestWarningsAtEachStart(t *testing.T) {
	r := start(t, `
servers:
  lab: {url: https://lab.example.com, key: none, insecure_skip_verify: true}
  gpu: {url: http://gpu.example.com, key: none}
`)
	log, err := os.ReadFile(r.home.ProxyLog())
	if err != nil {
		t.Fatal(err)
	}
	status, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"server lab: insecure_skip_verify is on", "server gpu: gpu.example.com is plain http"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
		if !strings.Contains(r.stderr.String(), "agentop: warning: "+want) {
			t.Errorf("the terminal is not told %q:\n%s", want, &r.stderr)
		}
		if !strings.Contains(strings.Join(status.Warnings, "\n"), want) {
			t.Errorf("the status lacks %q: %q", want, status.Warnings)
		}
	}
}

// TestEditByHandIsTold holds what is said of running conversations when their
// server leaves config.yaml or moves.
func TestEditByHandIsTold(t *testing.T) {
	s := kinds.Named("ollama").Start()
	defer s.Close()
	const yaml = `
servers:
  %s: {url: %s, key: none, rename: {"claude-*": qwen3-coder:latest}}
agents:
  claude-code: {server: %s, upstream: none}
`
	r := start(t, yaml, "desk", s.URL, "desk")
	if got := r.turn("s1", "claude-opus-5-5"); got != http.StatusOK {
		t.Fatalf("the turn got %d", got)
	}
	events, err := r.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	edit := func(name, url string) {
		t.Helper()
		text := "listen: 127.0.0.1:0\n" + fmt.Sprintf(yaml, name, url, name)
		if err := os.WriteFile(r.home.Config(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wait := func() string {
		t.Helper()
		for {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == control.EventWarning {
				return e.Text
			}
		}
	}
	edit("desk", s.URL+"/other")
	if got, want := wait(), "server desk has another URL: its running conversations (1) go there from their next turn on"; got != want {
		t.Errorf("warning %q, want %q", got, want)
	}
	edit("renamed", s.URL+"/other")
	if got, want := wait(), "server desk is named renamed now: a name is a server's identity, so its running conversations (1) are refused until there is a server desk again"; got != want {
		t.Errorf("warning %q, want %q", got, want)
	}
	edit("desk", s.URL)
	for deadline := time.Now().Add(time.Minute); r.turn("s1", "claude-opus-5-5") != http.StatusOK; { // until it is in force
		if time.Now().After(deadline) {
			t.Fatal("a server that is back under its name does not serve its conversation")
		}
	}
	edit("other", s.URL+"/elsewhere")
	if got, want := wait(), "server desk is no longer configured: its running conversations (1) are refused until it is back (`agentop server add desk URL`)"; got != want {
		t.Errorf("warning %q, want %q", got, want)
	}
}

func TestARequestIsListedOnce(t *testing.T) {
	s := kinds.Named("vllm").Start()
	defer s.Close()
	r := start(t, `
servers:
  desk: {url: %s, key: none}
agents:
  claude-code: {server: desk, upstream: none}
`, s.URL)
	r.turn("s1", "glm-5") // makes a pin, which the log has a line of its own for
	got, err := r.Requests(t.Context(), 10)
	if err != nil || len(got) != 1 || got[0].Method != http.MethodPost || got[0].Status == 0 {
		t.Errorf("requests %+v, %v, want the one that was sent, with its status", got, err)
	}
}

func TestAKeyThatIsNoLongerUsedIsForgotten(t *testing.T) {
	r := start(t, "servers: {}\n")
	add := func(key, secret string) {
		t.Helper()
		if _, err := r.AddServer(t.Context(), control.ServerSpec{Name: "glm", URL: "http://127.0.0.1:1", Key: key, Secret: secret}); err != nil {
			t.Fatal(err)
		}
	}
	holds := func() bool {
		t.Helper()
		data, err := os.ReadFile(r.home.Keys())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(data), "sk-fake-typed")
	}
	add("stored", "sk-fake-typed")
	if !holds() {
		t.Fatal("the typed key is not kept")
	}
	add("none", "")
	if holds() {
		t.Error("keys.json still has the key of a server that wants none")
	}
}
