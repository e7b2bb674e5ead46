package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/router/control"
)

// startPoll is how often a proxy that was started is asked whether it answers.
const startPoll = 50 * time.Millisecond

// Start implements tui.Starter: it starts the login service if that is
// installed, else `agentop proxy` in a session of its own, so that the proxy
// outlives the screen and its terminal.
func (s *screenSource) Start(ctx context.Context) error {
	m, err := s.quiet(nil, nil).manager(s.home)
	if err == nil {
		if st, err := m.Status(ctx); err == nil && st.Installed {
			if err := m.Start(ctx); err != nil {
				return explain(err)
			}
			return s.awaitStart(ctx, "`agentop service status`", nil)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := s.home.Create(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.home.LogDir(), home.DirMode); err != nil {
		return fmt.Errorf("make the log directory: %w", err)
	}
	said := filepath.Join(s.home.LogDir(), "start.log")
	out, err := os.OpenFile(said, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, home.FileMode)
	if err != nil {
		return fmt.Errorf("open what the proxy says at its start: %w", err)
	}
	defer func() { _ = out.Close() }()
	// Not exec.CommandContext: the proxy must not end with the screen.
	cmd := exec.Command(exe, "proxy") //nolint:noctx // it outlives this process on purpose
	cmd.Env = append(os.Environ(), home.EnvName+"="+s.home.String())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the proxy: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return s.awaitStart(ctx, said, ended)
}

// awaitStart waits until the proxy answers, or has ended.
func (s *screenSource) awaitStart(ctx context.Context, said string, ended <-chan error) error {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		if _, err := s.client.Status(ctx); !errors.Is(err, control.ErrNotRunning) {
			return screenErr(err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer; what it said is in %s", said)
		case <-ended: //nolint:errcheck // what it said tells more than its exit code
			text, _ := os.ReadFile(said)
			first, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
			return errors.New(string(bytes.TrimPrefix(first, []byte("agentop: "))))
		case <-tick.C:
		}
	}
}
