package screen

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentop/cmd/testkit"
)

// terminal is a real pseudo-terminal: a tmux of its own with one window.
type terminal struct {
	t      *testing.T
	socket string
}

// newTerminal runs a shell command in a terminal of w by h cells.
func newTerminal(t *testing.T, w, h int, command string) *terminal {
	t.Helper()
	testkit.Need(t, "tmux")
	term := &terminal{t, fmt.Sprintf("agentop-test-%d-%d", os.Getpid(), time.Now().UnixNano())}
	cmd := exec.Command("tmux", "-L", term.socket, "-u", "-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h), command)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("start tmux: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", term.socket, "kill-server").Run() }) // its own, by its socket
	return term
}

// tmux runs one tmux command and returns what it printed.
func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// keys presses keys by tmux's names.
func (term *terminal) keys(keys ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, keys...)...)
}

func (term *terminal) resize(w, h int) {
	term.t.Helper()
	term.tmux("resize-window", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h))
}

// text is what the terminal shows.
func (term *terminal) text() string { return term.tmux("capture-pane", "-p") }

// value is one of tmux's facts about the pane.
func (term *terminal) value(name string) string {
	return strings.TrimSpace(term.tmux("display-message", "-p", "#{"+name+"}"))
}

// shows waits until the terminal shows all parts, wherever its lines break.
func (term *terminal) shows(parts ...string) string {
	term.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		text := term.text()
		flat := strings.Join(strings.Fields(text), " ")
		missing := ""
		for _, p := range parts {
			if !strings.Contains(flat, p) {
				missing = p
			}
		}
		if missing == "" {
			return text
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("the terminal never showed %q:\n%s", missing, text)
		}
		time.Sleep(10 * time.Millisecond) // between polls of another process
	}
}

// quoted is one word of text for the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// screen is the command line of agentop's screen in a home.
func screen(home string) string {
	return "env LC_ALL=C.UTF-8 AGENTOP_HOME=" + quoted(home) + " " + quoted(binary)
}
