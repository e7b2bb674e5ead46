package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// fakeBackend answers with fixed values and records what it was asked.
type fakeBackend struct {
	mu    sync.Mutex
	calls []string
	spec  ServerSpec
	err   error
	hub   *Hub
}

var noon = time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)

func newFake() *fakeBackend {
	return &fakeBackend{hub: NewHub(func() Event {
		return Event{Kind: EventSnapshot, Status: &Status{PID: 7}}
	})}
}

func (f *fakeBackend) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fakeBackend) Status(context.Context) (Status, error) {
	return Status{PID: 7, Started: noon, Running: 3}, f.note("status")
}

func (f *fakeBackend) Sessions(context.Context) ([]Session, error) {
	return []Session{{Agent: "codex", ID: "\x01px:1"}, {Agent: "codex", ID: "2"}}, f.note("sessions")
}

func (f *fakeBackend) Session(_ context.Context, agent, id string) (Session, error) {
	return Session{Agent: agent, ID: id}, f.note("session %s %q", agent, id)
}

func (f *fakeBackend) MovePrice(_ context.Context, agent, id, server string) (MovePrice, error) {
	return MovePrice{Agent: agent, ID: id, To: server, Tokens: 9}, f.note("price %s %q %s", agent, id, server)
}

func (f *fakeBackend) Move(_ context.Context, agent, id, server string) (Session, error) {
	return Session{Agent: agent, ID: id, Server: server}, f.note("move %s %q %s", agent, id, server)
}

func (f *fakeBackend) Forget(_ context.Context, agent, id string) error {
	return f.note("forget %s %q", agent, id)
}

func (f *fakeBackend) Use(_ context.Context, agent, server string) (Switch, error) {
	return Switch{Agent: agent, Server: server, Stay: map[string]int{"own": 2}}, f.note("use %s %s", agent, server)
}

func (f *fakeBackend) Reset(_ context.Context, agent string) (Switch, error) {
	return Switch{Agent: agent}, f.note("reset %s", agent)
}

func (f *fakeBackend) AddServer(_ context.Context, spec ServerSpec) (ServerChange, error) {
	err := f.note("add %s", spec.Name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spec = spec
	return ServerChange{Name: spec.Name}, err
}

func (f *fakeBackend) RemoveServer(_ context.Context, name string) (ServerChange, error) {
	return ServerChange{Name: name, Running: 4}, f.note("remove %s", name)
}

func (f *fakeBackend) Preflight(_ context.Context, server string, agents []string) (Preflight, error) {
	return Preflight{Server: server, Up: true}, f.note("preflight %s %v", server, agents)
}

func (f *fakeBackend) TestServer(_ context.Context, server string, agents []string) (Preflight, error) {
	return Preflight{Server: server, Up: true, FirstMS: 7}, f.note("test %s %v", server, agents)
}

func (f *fakeBackend) Requests(_ context.Context, tail int) ([]Request, error) {
	return []Request{{ID: "r1", Time: noon}}, f.note("requests %d", tail)
}

func (f *fakeBackend) Restart(context.Context) error { return f.note("restart") }

func (f *fakeBackend) Subscribe(ctx context.Context) (<-chan Event, error) {
	if err := f.note("subscribe"); err != nil {
		return nil, err
	}
	return f.hub.Subscribe(ctx)
}

// home is a directory short enough for a socket on every system.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ao")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serve runs b behind a real socket and gives a client for it.
func serve(t *testing.T, b Backend) *Client {
	t.Helper()
	dir := home(t)
	l, err := Listen(filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, b, l)
	c := Dial(dir)
	t.Cleanup(c.Close)
	return c
}

func serveOn(t *testing.T, b Backend, l net.Listener) {
	t.Helper()
	s, done := NewServer(b), make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
}
