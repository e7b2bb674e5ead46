package worker

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"agentop/router/control"
	"agentop/router/preflight/kinds"
)

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
