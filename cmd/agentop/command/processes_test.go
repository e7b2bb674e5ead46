package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStartOfAProcess(t *testing.T) {
	booted := time.Unix(1_900_000_000, 0)
	for name, c := range map[string]struct {
		stat string
		want time.Time
	}{
		"a plain one":      {"12 (codex) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 2", booted.Add(123 * time.Second)},
		"brackets in name": {"12 (a) b (c) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 1 2", booted.Add(time.Second)},
		"cut":              {"12 (codex) S 1 12", time.Time{}},
		"no number":        {"12 (codex) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 x 1 2", time.Time{}},
	} {
		if got := startOf(c.stat, booted); !got.Equal(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestLinesOfPs(t *testing.T) {
	p, ok := parsePs("  501 Mon Mar  4 05:06:07 2030     /opt/bin/opencode run x\n", 501)
	if want := time.Date(2030, 3, 4, 5, 6, 7, 0, time.Local); !ok || !p.started.Equal(want) || strings.Join(p.args, " ") != "/opt/bin/opencode run x" {
		t.Errorf("got %+v, %v, want it started %v", p, ok, want)
	}
	for name, line := range map[string]string{"another user's": "0 Mon Mar  4 05:06:07 2030 init", "cut": "501 Mon Mar 4", "empty": ""} {
		if p, ok := parsePs(line, 501); ok {
			t.Errorf("%s: got %+v, want none", name, p)
		}
	}
}

// TestRunningProcessesAreFound starts a program of an agent's name, which no
// other process of this machine has.
func TestRunningProcessesAreFound(t *testing.T) {
	name := fmt.Sprintf("agent-%d", os.Getpid())
	programs[name] = name
	defer delete(programs, name)
	program := filepath.Join(t.TempDir(), name)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, program); err != nil {
		t.Fatal(err)
	}
	if before, known := runningSince(name); !known || len(before) != 0 {
		t.Fatalf("before it is started: %v, %v", before, known)
	}
	began := time.Now()
	cmd := exec.Command(program, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	found, _ := runningSince(name)
	ended := time.Now()
	if len(found) != 1 {
		t.Fatalf("%d processes, want one", len(found))
	}
	// The system counts from its boot, which it knows to the second.
	const exact = 3 * time.Second
	if at := found[0]; at.Before(began.Add(-exact)) || at.After(ended.Add(exact)) {
		t.Errorf("started %v, want between %v and %v", at, began, ended)
	}
}

// TestAgentStatusTellsOfOlderSessions has sessions that began before the agent
// was enabled, and some since.
func TestAgentStatusTellsOfOlderSessions(t *testing.T) {
	for agent, want := range map[string]string{
		"opencode":    "opencode: note: 2 running sessions began before it was enabled, and use agentop only when restarted",
		"codex":       "codex: note: 2 running sessions began before it was enabled: threads that were open go on as before until /new or resume",
		"claude-code": "",
	} {
		t.Run(agent, func(t *testing.T) {
			a, out, errs, dir := testApp(t, "")
			user := t.TempDir()
			getenv := a.Getenv
			a.Getenv = func(name string) string {
				if name == "HOME" {
					return user
				}
				return getenv(name)
			}
			startProxy(t, dir)
			now := a.Now()
			a.Processes = func(string) ([]time.Time, bool) {
				return []time.Time{now.Add(-time.Hour), {}, now.Add(-time.Minute), now.Add(time.Minute)}, true
			}
			if agent == "opencode" {
				settings := filepath.Join(user, ".config", "opencode", "opencode.json")
				if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
					t.Fatal(err)
				}
				text := `{"provider":{"lab":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://gpu.example:8000/v1"}}}}`
				if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range []string{"agent enable " + agent + " --yes", "agent status " + agent} {
				c := newRoot(a)
				c.SetArgs(strings.Fields(args))
				if err := c.ExecuteContext(t.Context()); err != nil {
					t.Fatalf("%s: %v\n%s%s", args, err, out, errs)
				}
			}
			if got := out.String(); want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, "began before") {
				t.Errorf("got\n%s\nwant in it %q", got, want)
			}
		})
	}
}
