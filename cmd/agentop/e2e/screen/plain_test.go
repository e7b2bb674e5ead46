package screen

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"agentop/cmd/agentop/command/fakeproxy"
)

// TestKF_T4_WithoutATerminalItIsText runs agentop where no terminal is, or only
// half of one: in CI, under cron, in a pipe. It prints the status and never
// speaks of /dev/tty.
func TestKF_T4_WithoutATerminalItIsText(t *testing.T) {
	home := shortHome(t)
	p, err := fakeproxy.Start(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	for _, c := range []struct {
		name    string
		in, out bool // are the terminal
		env     []string
		session bool // one of its own, without a controlling terminal
	}{
		{name: "nothing is a terminal", session: true},
		{name: "cron has no TERM and no locale", session: true, env: []string{"TERM=", "LC_ALL=", "LANG="}},
		{name: "output into a pipe", in: true},
		{name: "input from a file", out: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			shell, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer shell.Close()
			var piped bytes.Buffer
			cmd := exec.Command(binary)
			cmd.Env = append([]string{"AGENTOP_HOME=" + home, "HOME=" + t.TempDir(), "TERM=xterm-256color", "LC_ALL=C.UTF-8"}, c.env...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: c.session}
			cmd.Stderr = &piped
			cmd.Stdout = &piped
			if c.in {
				cmd.Stdin = tty
			}
			if c.out {
				cmd.Stdout = tty
			}
			err = cmd.Run()
			_ = tty.Close()
			shown, _ := io.ReadAll(shell) // ends with EIO, as nobody has the other end
			text := piped.String() + string(shown)
			if err != nil || !strings.Contains(text, "is running") || !strings.Contains(text, "claude-code") {
				t.Errorf("%v: it printed %q, want the status", err, text)
			}
			if strings.Contains(text, "tty") || strings.Contains(text, "\x1b") {
				t.Errorf("it speaks to a terminal: %q", text)
			}
		})
	}
}

// TestKF_T4_EveryActHasACommand names the command of each key of the screen.
func TestKF_T4_EveryActHasACommand(t *testing.T) {
	home := t.TempDir()
	for key, command := range map[string]string{
		"s, u": "server use", "m": "sessions move", "enter, o, y": "sessions show", "v, /": "sessions list", "t": "server test",
		"n": "server add", "x": "server remove", "e": "agent enable", "d": "agent disable", "a": "agent status", "l": "logs",
		"w": "status", "p": "proxy",
	} {
		cmd := exec.Command(binary, append(strings.Fields(command), "--help")...)
		cmd.Env = []string{"AGENTOP_HOME=" + home}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "agentop "+command) {
			t.Errorf("key %s: agentop %s --help: %v\n%s", key, command, err, out)
		}
	}
}

// drawn is what is no line of text: sequences, returns that overwrite, boxes,
// blocks and spinners.
var drawn = regexp.MustCompile("[\x1b\x07\x08\u009b]|\r[^\n]|[\u2500-\u259f\u2800-\u28ff]")

// TestKF_T6_LinesForAScreenReader gives every fact of the screen as lines, on a
// terminal too; a dumb one gets that by itself.
func TestKF_T6_LinesForAScreenReader(t *testing.T) {
	home := shortHome(t)
	p, err := fakeproxy.Start(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	for _, c := range []struct{ term, args string }{
		{"dumb", ""},
		{"dumb", "status"}, {"xterm-256color", "status"},
		{"dumb", "server list"}, {"xterm-256color", "server list"},
		{"xterm-256color", "server test glm"},
		{"dumb", "sessions --all"}, {"xterm-256color", "sessions --all"},
		{"xterm-256color", "sessions show 4e96ffff"},
		{"xterm-256color", "agent"}, {"xterm-256color", "agent status"},
		{"xterm-256color", "logs"}, {"xterm-256color", "doctor"},
		{"dumb", "--help"},
	} {
		t.Run(strings.TrimSpace(c.term+" "+c.args), func(t *testing.T) {
			cmd := exec.Command(binary, strings.Fields(c.args)...)
			cmd.Env = []string{"AGENTOP_HOME=" + home, "HOME=" + t.TempDir(), "TERM=" + c.term, "COLORTERM=truecolor", "LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
			tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
			if err != nil {
				t.Fatal(err)
			}
			shown, _ := io.ReadAll(tty) // ends with EIO when the process is gone
			_ = tty.Close()
			_ = cmd.Wait()
			if len(shown) == 0 {
				t.Error("it printed nothing")
			}
			if found := drawn.Find(shown); found != nil {
				t.Errorf("it drew %q in\n%s", found, shown)
			}
		})
	}
}
