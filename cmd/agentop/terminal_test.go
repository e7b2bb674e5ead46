//go:build linux || darwin

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"agentop/cmd/agentop/command/fakeproxy"
)

// agentop is agentop with arguments: this test's binary, which testscript.Main
// turns into the command that it is called by.
func agentop(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "agentop")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link, args...)
	cmd.Env = append(os.Environ(), "AGENTOP_HOME="+home, "TERM=xterm-256color", "TMUX=fake")
	return cmd
}

// onTerminal starts agentop on a pseudo-terminal of its own.
func onTerminal(t *testing.T, home string, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	cmd := agentop(t, home, args...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return cmd, terminal
}

// readUntil reads what the terminal shows until text has come.
func readUntil(t *testing.T, terminal io.Reader, text string) string {
	t.Helper()
	var all bytes.Buffer
	b := make([]byte, 1)
	for !strings.Contains(all.String(), text) {
		if _, err := terminal.Read(b); err != nil {
			t.Fatalf("the terminal ended before %q: %q", text, &all)
		}
		all.Write(b)
	}
	return all.String()
}

func shortHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ao")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "h")
}

func TestKeyPromptDoesNotEcho(t *testing.T) {
	const secret = "sk-fake-typed-1234"
	home := shortHome(t)
	p, err := fakeproxy.Start(home)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	cmd, terminal := onTerminal(t, home, "server", "add", "glm", "https://glm.example.com")
	shown := readUntil(t, terminal, "(not shown): ")
	if _, err := io.WriteString(terminal, secret+"\n"); err != nil {
		t.Fatal(err)
	}
	shown += readUntil(t, terminal, "[y/N] ") // the rename line that is offered
	if _, err := io.WriteString(terminal, "n\n"); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(terminal) // ends with EIO on Linux when the process is gone
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, rest)
	}
	if strings.Contains(shown+string(rest), "sk-fake") {
		t.Errorf("the key is on the screen: %q", shown+string(rest))
	}
	if p.Secret() != secret {
		t.Errorf("the proxy got %q", p.Secret())
	}
}

func TestInterruptedPromptLeavesTheTerminalAsItWas(t *testing.T) {
	home := shortHome(t)
	p, err := fakeproxy.Start(home)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = master.Close(), slave.Close() }()
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	cmd := agentop(t, home, "server", "add", "glm", "https://glm.example.com")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	readUntil(t, master, "(not shown): ")
	if quiet, err := term.GetState(int(slave.Fd())); err != nil || reflect.DeepEqual(quiet, before) {
		t.Errorf("at the prompt the terminal is as before: %v", err)
	}
	if _, err := io.WriteString(master, "\x03"); err != nil { // ctrl-c
		t.Fatal(err)
	}
	readUntil(t, master, "nothing was changed")
	_ = cmd.Wait() // the exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if after, err := term.GetState(int(slave.Fd())); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the terminal is left as %v, %v, want %v", after, err, before)
	}
	if calls := p.Calls(); len(calls) > 0 {
		t.Errorf("the proxy was told %q", calls)
	}
}

// A command asks the terminal nothing (its colours, its size, where the cursor
// is): in the background that would stop it, in a multiplexer hold it up.
func TestCommandsSendNoSequenceToTheTerminal(t *testing.T) {
	home := shortHome(t)
	p, err := fakeproxy.Start(home)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for _, args := range []string{"status", "server list", "sessions --all", "sessions show 4e96ffff", "logs", "agent", "config check", "version", "--help",
		"status --json", "sessions --json"} {
		t.Run(args, func(t *testing.T) {
			cmd, terminal := onTerminal(t, home, strings.Fields(args)...)
			shown, _ := io.ReadAll(terminal)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, shown)
			}
			if len(shown) == 0 || bytes.ContainsAny(shown, "\x1b\x07\x9b") {
				t.Errorf("it printed %q", shown)
			}
		})
	}
}
