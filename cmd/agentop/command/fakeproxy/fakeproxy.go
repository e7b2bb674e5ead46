// Package fakeproxy is a proxy for tests of what talks to one: it answers on a
// home's control socket with fixed facts and records what it is told to
// change. Only tests import it.
package fakeproxy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentop/router/control"
)

// Epoch is the time around which the facts lie, so far off that no clock
// catches up with it.
var Epoch = time.Date(2131, 2, 3, 12, 0, 0, 0, time.UTC)

// Proxy is a running fake. Its fields are set as it starts.
type Proxy struct {
	Broken   bool // configuration, store and log have errors
	Slow     bool // a preflight is never answered
	Sessions []control.Session
	Hub      *control.Hub

	mu     sync.Mutex
	calls  []string
	secret string
	stop   func()
}

// Start serves in home, which it makes, until Stop. set changes its fields
// before it is asked anything.
func Start(home string, set ...func(*Proxy)) (*Proxy, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	l, err := control.Listen(filepath.Join(home, control.SocketName))
	if err != nil {
		return nil, err
	}
	f := &Proxy{Sessions: sessions()}
	for _, change := range set {
		change(f)
	}
	f.Hub = control.NewHub(func() control.Event {
		s := f.status()
		return control.Event{Kind: control.EventSnapshot, Status: &s, Sessions: f.Sessions}
	})
	s, done := control.NewServer(backend{f}), make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	f.stop = sync.OnceFunc(func() { f.Hub.Close(); _ = s.Close(); <-done })
	return f, nil
}

// Stop ends the proxy and waits for its end.
func (f *Proxy) Stop() { f.stop() }

// Calls gives what it was told to change since the last time it was asked.
func (f *Proxy) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// Secret is the last key that it was given.
func (f *Proxy) Secret() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.secret
}

// backend is the proxy as the control API sees it.
type backend struct{ *Proxy }

func (f *Proxy) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f backend) Status(context.Context) (control.Status, error) { return f.status(), nil }

func (f backend) Sessions(context.Context) ([]control.Session, error) { return f.Proxy.Sessions, nil }

func (f backend) Session(_ context.Context, agent, id string) (control.Session, error) {
	for _, s := range f.Proxy.Sessions {
		if s.Agent == agent && s.ID == id {
			return s, nil
		}
	}
	return control.Session{}, &control.Error{Message: "no such conversation", Code: control.CodeNotFound}
}

func (f backend) MovePrice(_ context.Context, agent, id, server string) (control.MovePrice, error) {
	if server == "nowhere" {
		return control.MovePrice{}, &control.Error{Message: `there is no server "nowhere"`, Hint: "the servers are glm, lab", Code: control.CodeNotFound}
	}
	s, err := f.Session(context.Background(), agent, id)
	return control.MovePrice{Agent: agent, ID: id, From: s.Server, To: server, Tokens: s.Context, Signed: s.Signed,
		ContextMax: 8_000, MissingModel: s.ModelAsked, Warnings: []string{"the other server is slower"}}, err
}

func (f backend) Move(ctx context.Context, agent, id, server string) (control.Session, error) {
	f.note("move %s %q %s", agent, id, server)
	s, err := f.Session(ctx, agent, id)
	s.Server = server
	return s, err
}

func (f backend) Forget(_ context.Context, agent, id string) error {
	f.note("forget %s %q", agent, id)
	return nil
}

func (f backend) Use(_ context.Context, agent, server string) (control.Switch, error) {
	f.note("use %s %s", agent, server)
	stay := map[string]int{"own": 2, "lab": 1}
	if agent == "codex" {
		stay = map[string]int{"lab": 1}
	}
	return control.Switch{Agent: agent, Server: server, Before: "lab", Stay: stay}, nil
}

func (f backend) Reset(_ context.Context, agent string) (control.Switch, error) {
	f.note("reset %s", agent)
	return control.Switch{Agent: agent, Before: "glm"}, nil
}

func (f backend) AddServer(_ context.Context, spec control.ServerSpec) (control.ServerChange, error) {
	lines := ""
	for _, r := range spec.Rename {
		lines += fmt.Sprintf(", %s: %s", r.Glob, r.Name)
	}
	f.note("add %s %s %s secret of %d bytes%s", spec.Name, spec.URL, spec.Key, len(spec.Secret), lines)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secret = spec.Secret
	return control.ServerChange{Name: spec.Name, Changed: spec.Name == "glm"}, nil
}

func (f backend) RemoveServer(_ context.Context, name string) (control.ServerChange, error) {
	f.note("remove %s", name)
	return control.ServerChange{Name: name, Changed: true, Running: 1, Agents: []string{"claude-code"}}, nil
}

func (f backend) Preflight(ctx context.Context, server string, agents []string) (control.Preflight, error) {
	f.note("preflight %s %s", server, strings.Join(agents, ","))
	if f.Slow {
		<-ctx.Done()
		return control.Preflight{}, ctx.Err()
	}
	yes, no := true, false
	switch server {
	case "lab":
		return control.Preflight{Server: server, Up: false, Warnings: []string{"lab does not answer: connection refused"}}, nil
	case "badkey":
		return control.Preflight{Server: server, Up: true, KeyOK: &no}, nil
	case "nowhere":
		return control.Preflight{}, &control.Error{Message: `there is no server "nowhere"`, Hint: "the servers are glm, lab", Code: control.CodeNotFound}
	}
	p := control.Preflight{Server: server, Up: true, KeyOK: &yes, Models: []string{"glm-5", "glm-air"},
		Formats: []string{"messages", "chat"}, Context: 200_000, FirstMS: 210}
	if !slices.Contains(agents, "codex") {
		p.Missing = []string{"claude-haiku-4-5"}
		p.Rename = []control.Rename{{Glob: "claude-*haiku*", Name: "glm-air"}}
	}
	return p, nil
}

func (f backend) TestServer(ctx context.Context, server string, agents []string) (control.Preflight, error) {
	p, err := f.Preflight(ctx, server, agents)
	if p.Up {
		p.Tried = "one request of 1 token to glm-5"
	}
	return p, err
}

func (f backend) Requests(_ context.Context, tail int) ([]control.Request, error) {
	all := []control.Request{
		{Time: Epoch, ID: "r1", Agent: "claude-code", Session: "4e96a1b2-0000-4000-8000-000000000001", Turn: "opening", Side: "main",
			Pin: "new", Server: "glm", Method: "POST", Path: "/v1/messages", Model: "glm-5", Status: 200, Input: 81_000, Output: 120, FirstMS: 410, TotalMS: 9_900},
		{Time: Epoch.Add(time.Second), ID: "r2", Agent: "claude-code", Session: "4e96a1b2-0000-4000-8000-000000000001", Turn: "side", Side: "title",
			Pin: "none", Server: "glm", Method: "POST", Path: "/v1/messages", Model: "glm-air", Status: 529, Error: "overloaded"},
		{Time: Epoch.Add(2 * time.Second), ID: "r3", Agent: "codex", Session: "0199-codex", Turn: "continuation", Pin: "kept",
			Server: "lab/gpu1:8000", Method: "POST", Path: "/v1/responses", Model: "gpt-5.2\x1b[2J", Status: 200},
	}
	return all[max(0, len(all)-tail):], nil
}

func (f backend) Restart(context.Context) error { f.note("restart"); return nil }

func (f backend) Subscribe(ctx context.Context) (<-chan control.Event, error) {
	return f.Hub.Subscribe(ctx)
}
