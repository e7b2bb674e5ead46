package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentop/router/control"
	"agentop/router/fakeserver"
)

// previousEnv names the binary of an earlier build, to upgrade from. Without it
// that is this tree's own under another version.
const previousEnv = "AGENTOP_TEST_PREVIOUS"

// builds makes two builds of agentop. The returned function installs the first
// one, and gives what puts the second in its place.
func builds(t *testing.T) (install func(t *testing.T) (installed string, upgrade func() error)) {
	t.Helper()
	dir := t.TempDir()
	build := func(version string) string {
		path := filepath.Join(dir, version)
		cmd := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", path, "agentop/cmd/agentop")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		return path
	}
	first := os.Getenv(previousEnv)
	if first == "" {
		first = build("v1.0.0")
	}
	second := build("v2.0.0")
	return func(t *testing.T) (string, func() error) {
		t.Helper()
		dir := t.TempDir()
		installed, next := filepath.Join(dir, "agentop"), filepath.Join(dir, "next")
		for from, to := range map[string]string{first: installed, second: next} {
			if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
				t.Fatalf("copy: %v\n%s", err, out)
			}
		}
		return installed, func() error { return os.Rename(next, installed) }
	}
}

// TestRealClientsStreamThroughAnUpgrade replaces the binary while a real agent
// is in the middle of an answer: the agent gets the rest of it, asks nothing
// again, and goes on with the conversation at the new build.
func TestRealClientsStreamThroughAnUpgrade(t *testing.T) {
	install := builds(t)
	for name, newPlayer := range map[string]func(*testing.T, *stage) player{
		"claude-code": func(t *testing.T, s *stage) player { return claudePlayer(t, s) },
		"codex":       codexPlayer, "opencode": openCodePlayer,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			gate := newGate(name, "carry on across the upgrade")
			s.replace("a", fakeserver.Options{Name: "a", Script: gate.script})
			p := newPlayer(t, s) // it knows the address, and nothing of the proxy
			installed, upgrade := install(t)
			s.kill()
			s.run(exec.Command(installed, "proxy"))

			upgraded := make(chan error, 1)
			go func() { upgraded <- gate.passDuring(t.Context(), s.control(), upgrade) }()
			s.mark()
			handle := p.open(gate.prompt)
			if err := <-upgraded; err != nil {
				t.Fatal(err)
			}
			s.expectAll("the turn during the upgrade", "a")
			if asked := gate.count(); asked != 1 {
				t.Errorf("the turn was asked for %d times, want once", asked)
			}
			s.mark()
			p.resume(handle, "and go on")
			s.expectAll("the turn after the upgrade", "a")
			s.expectHistory("the turn after the upgrade", "a", 1)
		})
	}
}

// replace puts another server in the place of a configured one; all agents
// begin on a.
func (s *stage) replace(name string, o fakeserver.Options) {
	s.t.Helper()
	server := fakeserver.New(o)
	if err := server.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = server.Close() })
	s.servers[name] = server
	s.configure("a")
}

// gate holds the answer to one prompt of an agent in its middle.
type gate struct {
	agent, prompt string
	reached       chan struct{} // closed when the answer is in its middle
	open          chan struct{} // closed when it may go on
	once          sync.Once

	mu sync.Mutex
	n  int // how often the prompt was sent
}

func newGate(agent, prompt string) *gate {
	return &gate{agent: agent, prompt: prompt, reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) script(rec *fakeserver.Record) fakeserver.Behaviour {
	if !rec.Stream || !bytes.Contains(rec.Plain, []byte(g.prompt)) || !g.main(rec) || len(rec.History) > 0 {
		return fakeserver.Behaviour{}
	}
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
	return fakeserver.Behaviour{Events: 12, TextBytes: 1200, Gate: func(event int) {
		if event == 5 {
			g.once.Do(func() { close(g.reached) })
			<-g.open
		}
	}}
}

// main tells a main turn from a request for a title, which has few tools or
// none. Codex asks for none, and its tools stand elsewhere.
func (g *gate) main(rec *fakeserver.Record) bool {
	var body struct {
		Tools []json.RawMessage `json:"tools"`
	}
	return g.agent == "codex" || json.Unmarshal(rec.Plain, &body) == nil && len(body.Tools) > 2
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// passDuring upgrades while the answer is held, and lets it go on when the new
// build serves and the old one shows that it still has it.
func (g *gate) passDuring(ctx context.Context, c *control.Client, upgrade func() error) error {
	defer close(g.open)
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	select {
	case <-g.reached:
	case <-ctx.Done():
		return errors.New("the agent's turn never came")
	}
	if err := upgrade(); err != nil {
		return err
	}
	for {
		now, err := c.Status(ctx)
		if err == nil && now.Version == "v2.0.0" && len(now.Draining) == 1 && now.Draining[0].Streams == 1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after the upgrade the proxy's status is %+v (error: %w)", now, err)
		case <-time.After(20 * time.Millisecond): // between questions to another process
		}
	}
}
