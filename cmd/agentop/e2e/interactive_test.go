package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentop/cmd/testkit"
)

// TestInteractiveClaudeCode drives Claude Code in a terminal: /compact stays
// on the conversation's server, /clear begins a new one at the new choice.
func TestInteractiveClaudeCode(t *testing.T) {
	testkit.Need(t, "tmux")
	program := claude.install(t)
	s := newStage(t)
	home, dir := agentDir(t), agentDir(t)
	term := newTerminal(t)
	prepareClaude(t, home, dir)
	term.run(dir, claudeEnv(s, home), program)
	term.await("? for shortcuts", "auto mode", "bypass permissions")

	s.mark()
	term.say("hello one")
	s.awaitTurn("a", "hello one")
	s.expectAll("first turn", "a")

	s.use("claude-code", "b")
	s.mark()
	term.say("go on")
	s.awaitTurn("a", "go on")
	s.expectAll("second turn after the switch", "a")

	s.mark()
	term.say("/compact")
	term.await("Compacted", "compacted", "ctrl+o to see full summary")
	term.say("after the compaction")
	s.awaitTurn("a", "after the compaction")
	s.expectAll("/compact and the turn after it", "a")

	term.say("/clear")
	s.mark()
	term.say("a new conversation")
	s.awaitTurn("b", "a new conversation")
	s.expectAll("/clear", "b")
}

// prepareClaude writes what a person would have clicked away at the first start.
func prepareClaude(t *testing.T, home, dir string) {
	t.Helper()
	state, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "numStartups": 3,
		"customApiKeyResponses": map[string]any{"approved": []string{"sk-ant-fake-key"}},
		"projects": map[string]any{dir: map[string]any{
			"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), state, 0o600); err != nil {
		t.Fatal(err)
	}
}

// terminal is a tmux server of its own with one pane.
type terminal struct {
	t      *testing.T
	socket string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	term := &terminal{t: t, socket: fmt.Sprintf("agentop-e2e-%d", os.Getpid())}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", term.screen())
		}
		out, err := exec.Command("tmux", "-L", term.socket, "display-message", "-p", "#{pane_pid}").Output()
		_ = exec.Command("tmux", "-L", term.socket, "kill-server").Run()
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(out))); err == nil && bad == nil {
			until(t, func() bool { return ended(pid) }, "the program in the terminal has ended")
		}
	})
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// run starts a program in the pane.
func (term *terminal) run(dir string, env []string, program string, args ...string) {
	term.t.Helper()
	command := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", dir, "env", "-i"},
		append(append(essentials(), env...), append([]string{program}, args...)...)...)
	term.tmux(command...)
}

// essentials is what a program needs of an environment to run in a terminal.
func essentials() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash"}
}

func (term *terminal) screen() string {
	out, err := exec.Command("tmux", "-L", term.socket, "capture-pane", "-p", "-S", "-200").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// await waits until one of the texts is on the screen.
func (term *terminal) await(texts ...string) {
	term.t.Helper()
	until(term.t, func() bool {
		screen := term.screen()
		for _, text := range texts {
			if strings.Contains(screen, text) {
				return true
			}
		}
		return false
	}, fmt.Sprintf("the screen shows one of %q", texts))
}

// say types a line and sends it once the screen shows it.
func (term *terminal) say(line string) {
	term.t.Helper()
	term.tmux("send-keys", "-l", line)
	term.await(line)
	term.tmux("send-keys", "Enter")
}

// awaitTurn waits until a server has answered a request since the mark whose
// body holds text and whose answer ended.
func (s *stage) awaitTurn(server, text string) {
	s.t.Helper()
	until(s.t, func() bool {
		for _, rec := range s.since(server) {
			select {
			case <-rec.Done:
				if strings.Contains(string(rec.Plain), text) {
					return true
				}
			default:
			}
		}
		return false
	}, fmt.Sprintf("%s answered a turn with %q", server, text))
}

// until polls another process's doing until it is as wanted.
func until(t *testing.T, done func() bool, what string) {
	t.Helper()
	const limit = 3 * time.Minute // real agents take seconds for little on a busy machine
	deadline := time.Now().Add(limit)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("not so within %v: %s", limit, what)
		}
		time.Sleep(50 * time.Millisecond) // between polls of another process
	}
}
