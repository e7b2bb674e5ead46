package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestInteractiveClaudeCode drives Claude Code in a terminal: /compact stays
// on the conversation's server, /clear begins a new one at the new choice.
func TestInteractiveClaudeCode(t *testing.T) {
	need(t, "tmux")
	program := claude.install(t)
	s := newStage(t)
	term := newTerminal(t)
	home, dir := t.TempDir(), t.TempDir()
	prepareClaude(t, home, dir)
	term.run(dir, claudeEnv(s, home), program)
	term.await("? for shortcuts", "auto mode", "bypass permissions")

	s.mark()
	term.say("hello one")
	s.awaitMain("a", 1)
	s.expectAll("first turn", "a")

	s.use("claude-code", "b")
	s.mark()
	term.say("go on")
	s.awaitMain("a", 1)
	s.expectAll("second turn after the switch", "a")

	s.mark()
	term.say("/compact")
	s.awaitMain("a", 1)
	term.await("Compacted", "compacted", "ctrl+o to see full summary")
	term.say("after the compaction")
	s.awaitMain("a", 2)
	s.expectAll("/compact and the turn after it", "a")

	s.mark()
	term.say("/clear")
	term.say("a new conversation")
	s.awaitMain("b", 1)
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
		_ = exec.Command("tmux", "-L", term.socket, "kill-server").Run()
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

// awaitMain waits until a server has answered n inference requests that ask
// for tools, since the mark.
func (s *stage) awaitMain(server string, n int) {
	s.t.Helper()
	until(s.t, func() bool {
		count := 0
		for _, rec := range s.since(server) {
			select {
			case <-rec.Done:
				if strings.Contains(string(rec.Plain), `"tools":[{`) {
					count++
				}
			default:
			}
		}
		return count >= n
	}, fmt.Sprintf("%s answered %d main requests", server, n))
}

// until polls another process's doing until it is as wanted.
func until(t *testing.T, done func() bool, what string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("not so within a minute: %s", what)
		}
		time.Sleep(50 * time.Millisecond) // between polls of another process
	}
}
