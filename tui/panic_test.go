//go:build linux || darwin

package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"agentop/tui/view"
)

// envPanic makes this test's binary show a screen that panics on the key t,
// where the variable says; envStack is the file for the stack.
const (
	envPanic = "AGENTOP_TEST_PANIC"
	envStack = "AGENTOP_TEST_STACK"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(envPanic); where != "" {
		os.Exit(panicking(where))
	}
	os.Exit(m.Run())
}

// panicSource panics in a command.
type panicSource struct {
	*fakeSource
	where string
	armed atomic.Bool
}

func (p *panicSource) Test(context.Context, string) (view.Preflight, error) {
	if p.where == "command" {
		panic("forced in a command")
	}
	p.armed.Store(true)
	return view.Preflight{}, nil
}

// now panics in the middle of Update or View, which both ask the time.
func (p *panicSource) now() time.Time {
	if p.armed.Load() {
		stack := string(stackOf("look"))
		inView := strings.Contains(stack, "(*model).View")
		if p.where == "view" && inView || p.where == "update" && !inView {
			panic("forced in " + p.where)
		}
	}
	return time.Now()
}

func panicking(where string) int {
	src := &panicSource{fakeSource: newFake(), where: where}
	err := Run(context.Background(), Options{
		Source: src, In: os.Stdin, Out: os.Stdout, Now: src.now,
		Crashed: func(stack []byte) string {
			_ = os.WriteFile(os.Getenv(envStack), stack, 0o600)
			return os.Getenv(envStack)
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestKF_T3_APanicRestoresTheTerminal(t *testing.T) {
	for _, where := range []string{"update", "view", "command"} {
		t.Run(where, func(t *testing.T) {
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			stack := filepath.Join(t.TempDir(), "stack")
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), envPanic+"="+where, envStack+"="+stack, "TERM=xterm-256color")
			master, slave, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer master.Close()
			defer slave.Close()
			if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
				t.Fatal(err)
			}
			before, err := term.GetState(int(slave.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			shown := readUntil(t, master, "127.0.0.1:4780")
			if _, err := io.WriteString(master, "\tt"); err != nil { // to the servers; test one
				t.Fatal(err)
			}
			shown += readUntil(t, master, "the screen crashed")
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit code 1", err)
			}
			after, err := term.GetState(int(slave.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(*before) != fmt.Sprint(*after) {
				t.Errorf("the terminal's modes before:\n%v\nafter:\n%v", *before, *after)
			}
			for _, c := range []struct{ what, on, off string }{
				{"alternate screen", "\x1b[?1049h", "\x1b[?1049l"}, {"hidden cursor", "\x1b[?25l", "\x1b[?25h"}, {"bracketed paste", "\x1b[?2004h", "\x1b[?2004l"},
			} {
				if strings.LastIndex(shown, c.off) < strings.LastIndex(shown, c.on) {
					t.Errorf("%s is still on", c.what)
				}
			}
			text, err := os.ReadFile(stack)
			if err != nil || !bytes.Contains(text, []byte("forced in ")) || !bytes.Contains(text, []byte("panic_test.go")) {
				t.Errorf("the stack's file: %v: %.200s", err, text)
			}
		})
	}
}

func readUntil(t *testing.T, r io.Reader, text string) string {
	t.Helper()
	var all bytes.Buffer
	b := make([]byte, 4096)
	for !strings.Contains(all.String(), text) {
		n, err := r.Read(b)
		if err != nil {
			t.Fatalf("the terminal ended before %q: %v: %q", text, err, &all)
		}
		all.Write(b[:n])
	}
	return all.String()
}
