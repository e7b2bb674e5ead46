// Package demo is `agentop demo`: a scratch home, two built-in inference
// servers, a few scripted conversations and a real proxy in between, so that
// agentop can be tried without a key and without a network. When it ends it
// leaves nothing behind. Start reading at Run.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/worker"
	"agentop/router/control"
	"agentop/router/fakeserver"
)

// Options is what a demo needs to know.
type Options struct {
	Version string
	Out     io.Writer
	// Show is the screen: it returns when the user has seen enough. The home
	// is the scratch home, whose proxy serves by then.
	Show func(ctx context.Context, dir home.Home) error
	// Pace is the pause between a conversation's turns; 0 means 2 s.
	Pace time.Duration
}

// Run plays the demo until ctx is done or Show returns.
func Run(ctx context.Context, o Options) (err error) {
	if o.Pace == 0 {
		o.Pace = 2 * time.Second
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	scratch, err := os.MkdirTemp("", "agentop-demo-")
	if err != nil {
		return fmt.Errorf("make a scratch home: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	dir := home.Home(filepath.Join(scratch, "home"))

	alpha, beta := newServer("alpha"), newServer("beta")
	for _, s := range []*fakeserver.Server{alpha, beta} {
		if err := s.Start(); err != nil {
			return fmt.Errorf("start a built-in server: %w", err)
		}
		defer s.Close()
	}
	address, err := fakeserver.FreeAddress()
	if err != nil {
		return err
	}
	if err := dir.Create(); err != nil {
		return err
	}
	if err := os.WriteFile(dir.Config(), configFor(address, alpha.URL(), beta.URL()), 0o600); err != nil {
		return fmt.Errorf("write the demo's configuration: %w", err)
	}
	return play(ctx, stop, o, dir)
}

// play runs the proxy, the script and the screen.
func play(ctx context.Context, stop func(), o Options, dir home.Home) error {
	ready := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- worker.Run(ctx, worker.Options{
			Home: dir, Version: o.Version, Stderr: io.Discard, Drain: time.Second,
			Ready: func(addresses []string) { ready <- addresses[0] },
		})
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("start the proxy: %w", err)
	case address := <-ready:
		fmt.Fprintf(o.Out, "A real Claude Code joins in with:\n  ANTHROPIC_BASE_URL=http://%s/claude-code ANTHROPIC_API_KEY=sk-fake-demo claude\n\n", address)
		go runScript(ctx, script{base: "http://" + address, dir: dir, pace: o.Pace})
	}
	err := o.Show(ctx, dir)
	stop()
	if workerErr := <-ended; workerErr != nil && !errors.Is(workerErr, context.DeadlineExceeded) {
		err = errors.Join(err, workerErr)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func newServer(name string) *fakeserver.Server {
	return fakeserver.New(fakeserver.Options{
		Name: name, Models: []string{name + "-large", name + "-small"}, KeepRecords: -1,
		Script: func(*fakeserver.Record) fakeserver.Behaviour {
			return fakeserver.Behaviour{FirstByte: 150 * time.Millisecond, Interval: 60 * time.Millisecond, Events: 20, TextBytes: 600}
		},
	})
}

func configFor(listen, alpha, beta string) []byte {
	return fmt.Appendf(nil, `# The demo's scratch configuration; it is deleted when the demo ends.
listen: %s
servers:
  alpha:
    url: %s
    key: none
    rename: {"claude-*haiku*": alpha-small, "claude-*": alpha-large, "gpt-*": alpha-large}
  beta:
    url: %s
    key: none
    rename: {"claude-*haiku*": beta-small, "claude-*": beta-large, "gpt-*": beta-large}
agents:
  claude-code: {server: alpha, upstream: none}
  codex:       {server: alpha, upstream: none}
  opencode:    {server: beta, upstream: none}
  qwen-code:   {server: beta, upstream: none}
`, listen, alpha, beta)
}

// client is the control API of the demo's proxy.
func client(dir home.Home) *control.Client { return control.Dial(dir.String()) }
