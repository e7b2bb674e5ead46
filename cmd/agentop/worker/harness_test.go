package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"agentop/cmd/agentop/home"
	"agentop/router/control"
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
