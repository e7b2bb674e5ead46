package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"agentop/tui/view"
)

// fakeSource is a proxy that does what a test tells it to.
type fakeSource struct {
	mu       sync.Mutex
	calls    []string
	status   view.Status
	sessions []view.Session
	down     error                    // of Subscribe, while it is set
	events   chan Event               // of the open stream
	hold     map[string]chan struct{} // preflights of "server agent" that wait
	failing  map[string]error
	price    func(key view.Key, server string) (view.MovePrice, error)
}

func (f *fakeSource) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

// told gives what was asked to change since the last time.
func (f *fakeSource) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func (f *fakeSource) fail(act string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing[act]
}

type fakeStream struct {
	ctx    context.Context
	events chan Event
}

func (s fakeStream) Next() (Event, error) {
	select {
	case <-s.ctx.Done():
		return Event{}, s.ctx.Err()
	case e, ok := <-s.events:
		if !ok {
			return Event{}, errors.New("unexpected EOF")
		}
		return e, nil
	}
}

func (s fakeStream) Close() error { return nil }

func (f *fakeSource) Subscribe(ctx context.Context) (Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return nil, f.down
	}
	f.events = make(chan Event, 10_000)
	status := f.status
	f.events <- Event{Snapshot: true, Status: &status, Sessions: f.sessions}
	return fakeStream{ctx, f.events}, nil
}

// send tells an event on the open stream.
func (f *fakeSource) send(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events <- e
}

// end ends the open stream; Subscribe fails with err from then on, if any.
func (f *fakeSource) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.events)
	f.down = err
}

func (f *fakeSource) Status(context.Context) (view.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, "status")
	return f.status, nil
}

func (f *fakeSource) Requests(context.Context, int) ([]view.Request, error) {
	return []view.Request{{Time: noon.Add(-time.Hour), ID: "old", Agent: "codex", Session: "c1", Turn: "opening", Server: "lab", Status: 200}}, nil
}

func (f *fakeSource) Use(_ context.Context, agent, server string) (view.Switch, error) {
	f.note("use %s %q", agent, server)
	if err := f.fail("use"); err != nil {
		return view.Switch{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := ""
	for i := range f.status.Agents {
		if a := &f.status.Agents[i]; a.Agent == agent {
			before, a.Server = a.Server, server
		}
	}
	return view.Switch{Agent: agent, Server: server, Before: before, Stay: map[string]int{"own": 2, "lab": 1}}, nil
}

func (f *fakeSource) Preflight(ctx context.Context, server, agent string) (view.Preflight, error) {
	f.mu.Lock()
	hold := f.hold[server+" "+agent]
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return view.Preflight{}, ctx.Err()
		}
	}
	return view.Preflight{Server: server, Up: true, Models: []string{"model-for-" + agent}, Warnings: []string{"asked for " + agent}}, nil
}

func (f *fakeSource) Test(_ context.Context, server string) (view.Preflight, error) {
	f.note("test %s", server)
	return view.Preflight{Server: server, Up: true, Tried: "one request of 1 token"}, f.fail("test")
}

func (f *fakeSource) MovePrice(_ context.Context, key view.Key, server string) (view.MovePrice, error) {
	if f.price != nil {
		return f.price(key, server)
	}
	return view.MovePrice{Agent: key.Agent, ID: key.ID, To: server, Tokens: 81_000, Signed: true}, nil
}

func (f *fakeSource) Move(_ context.Context, key view.Key, server string) (view.Session, error) {
	f.note("move %s %s %s", key.Agent, key.ID, server)
	if err := f.fail("move"); err != nil {
		return view.Session{}, err
	}
	return view.Session{Agent: key.Agent, ID: key.ID, Server: server, Running: true, LastTurn: noon}, nil
}

func (f *fakeSource) RemoveServer(_ context.Context, name string) ([]string, error) {
	f.note("remove %s", name)
	return []string{"its key is gone"}, f.fail("remove")
}

// startable is a source that can start a proxy.
type startable struct{ *fakeSource }

func (s startable) Start(context.Context) error {
	s.note("start")
	if err := s.fail("start"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = nil
	return nil
}

// pointable is a source that can point agents here.
type pointable struct{ *fakeSource }

func (p pointable) Setups(context.Context) ([]view.Setup, error) {
	return []view.Setup{{Agent: "claude-code", Pointed: true, Detail: "enabled"}}, nil
}

func (p pointable) Plan(_ context.Context, agent string, on bool) ([]string, error) {
	return []string{fmt.Sprintf("+ plan for %s %v", agent, on)}, p.fail("plan")
}

func (p pointable) Point(_ context.Context, agent string, on bool) ([]string, error) {
	p.note("point %s %v", agent, on)
	return []string{"it is done", "restart it"}, p.fail("point")
}

// noon is when a test begins: synctest's own epoch.
var noon = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newFake() *fakeSource {
	return &fakeSource{
		hold: map[string]chan struct{}{}, failing: map[string]error{},
		status: view.Status{
			Listen: []string{"127.0.0.1:4780"}, Version: "v1",
			Agents: []view.Agent{
				{Agent: "claude-code", Server: "lab", Upstream: "https://api.anthropic.com"},
				{Agent: "codex", Upstream: "https://api.openai.com"},
				{Agent: "opencode", Server: "glm", Upstream: "none"},
			},
			Servers: []view.Server{{Name: "glm", Health: view.Health{State: "ok"}}, {Name: "lab", Health: view.Health{State: "ok"}}, {Name: "desk"}},
		},
		sessions: []view.Session{
			{Agent: "claude-code", ID: "a1", Title: "alpha", Server: "lab", Why: "opened", Opened: noon.Add(-time.Minute), LastTurn: noon.Add(-2 * time.Second), Running: true},
			{Agent: "claude-code", ID: "a2", Title: "beta", Server: "own", Opened: noon.Add(-3 * time.Minute), LastTurn: noon.Add(-time.Second), Running: true},
			{Agent: "codex", ID: "c1", Title: "gamma", Server: "own", Dir: "/src/web", Opened: noon.Add(-5 * time.Hour), LastTurn: noon.Add(-4 * time.Hour), Running: true},
			{Agent: "codex", ID: "c2", Title: "old one", Server: "own", LastTurn: noon.Add(-80 * time.Hour)},
		},
	}
}

// rig drives a model as Bubble Tea does, in a bubble with its own time.
type rig struct {
	t    *testing.T
	m    *model
	src  *fakeSource
	msgs chan tea.Msg
	out  bytes.Buffer
	quit bool
	seen map[string]int // messages by type
}

// rigged runs a test on a model that has its first screen.
func rigged(t *testing.T, src *fakeSource, test func(r *rig)) {
	t.Helper()
	riggedWith(t, src, src, test)
}

func riggedWith(t *testing.T, src *fakeSource, source Source, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := &rig{t: t, src: src, msgs: make(chan tea.Msg, 100_000), seen: map[string]int{}}
		r.m = newModel(ctx, Options{Source: source, Out: &r.out, Colour: true, StartCommand: "agentop proxy"})
		r.run(r.m.Init())
		r.send(tea.WindowSizeMsg{Width: 100, Height: 30})
		r.settle()
		test(r)
		cancel()
		time.Sleep(time.Minute) // the timers that still wait end, and nobody hears them
	})
}

func (r *rig) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				r.run(c)
			}
		default:
			r.msgs <- msg
		}
	}()
}

func (r *rig) send(msg tea.Msg) {
	if _, ok := msg.(tea.QuitMsg); ok {
		r.quit = true
		return
	}
	r.seen[fmt.Sprintf("%T", msg)]++
	_, cmd := r.m.Update(msg)
	r.run(cmd)
}

// settle delivers messages until nothing moves without time going on.
func (r *rig) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-r.msgs:
			r.send(msg)
		default:
			return
		}
	}
}

// wait lets time go on, delivering messages as they come.
func (r *rig) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(10*time.Millisecond, time.Until(end)))
		r.settle()
	}
}

// keys types keys by name, or text after "text:".
func (r *rig) keys(names ...string) {
	special := map[string]tea.KeyType{"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
		"backspace": tea.KeyBackspace, "pgdown": tea.KeyPgDown, "ctrl+z": tea.KeyCtrlZ, "ctrl+c": tea.KeyCtrlC, "end": tea.KeyEnd, "home": tea.KeyHome}
	for _, name := range names {
		if k, ok := special[name]; ok {
			r.send(tea.KeyMsg{Type: k})
		} else {
			r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)})
		}
		r.settle()
	}
}

// text is what is on the screen.
func (r *rig) text() string { return ansi.Strip(r.m.View()) }

func (r *rig) shows(parts ...string) {
	r.t.Helper()
	text := strings.Join(strings.Fields(r.text()), " ")
	for _, p := range parts {
		if !strings.Contains(text, p) {
			r.t.Errorf("the screen does not show %q:\n%s", p, r.text())
		}
	}
}

func (r *rig) hides(parts ...string) {
	r.t.Helper()
	for _, p := range parts {
		if strings.Contains(r.text(), p) {
			r.t.Errorf("the screen shows %q:\n%s", p, r.text())
		}
	}
}

// told compares what the proxy was told, but for questions.
func (r *rig) told(want ...string) {
	r.t.Helper()
	got := slices.DeleteFunc(r.src.told(), func(s string) bool { return s == "status" })
	if !slices.Equal(got, want) {
		r.t.Errorf("the proxy was told %q, want %q", got, want)
	}
}
