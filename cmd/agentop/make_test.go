package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentop/cmd/testkit"
)

// makeTargets are the targets that the README, CLAUDE.md and habits rely on.
var makeTargets = []string{"help", "build", "run", "test", "check", "race", "fuzz", "crash", "chaos", "soak", "bench", "e2e", "golden", "docs", "dist"}

// makeWith runs make with nothing in PATH but what make's own lines need and
// the tools that are given.
func makeWith(t *testing.T, target string, tools ...string) (string, error) {
	t.Helper()
	testkit.Need(t, "make")
	path := t.TempDir()
	for _, tool := range append([]string{"bash", "sed", "printf"}, tools...) {
		if real, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(real, filepath.Join(path, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command("make", "--no-print-directory", "SHELL="+filepath.Join(path, "bash"), target)
	cmd.Dir = "../.."
	cmd.Env = []string{"PATH=" + path, "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestMakeSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		target, want string
		tools        []string
	}{
		{"run", "Go is missing: install Go 1.26 or later from https://go.dev/dl", nil},
		{"test", "Go is missing", nil},
		{"test", "git is missing: apt install git", []string{"go"}},
		{"dist", "Go is missing", nil},
		{"docs", "Go is missing", nil},
	} {
		out, err := makeWith(t, c.target, c.tools...)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("make %s with %q alone: %v, want a failure that says %q:\n%s", c.target, c.tools, err, c.want, out)
		}
		if lines := strings.Count(strings.TrimSpace(out), "\n") + 1; lines > 2 {
			t.Errorf("make %s with %q alone says more than that, in %d lines:\n%s", c.target, c.tools, lines, out)
		}
	}
}

func TestMakeListsItsTargets(t *testing.T) {
	out, err := makeWith(t, "help")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, target := range makeTargets {
		if !regexp.MustCompile(`(?m)^` + target + ` +\S`).MatchString(out) {
			t.Errorf("make help does not list %s:\n%s", target, out)
		}
	}
}

// TestCIRunsTheCommandOfTheReadme holds that what the README tells to run is
// what runs there.
func TestCIRunsTheCommandOfTheReadme(t *testing.T) {
	const command = "make test"
	if !regexp.MustCompile(`(?m)^` + command + `\b`).MatchString(readFile(t, "../../README.md")) {
		t.Errorf("README.md does not tell to run %q", command)
	}
	if !regexp.MustCompile(`(?m)^` + command + `$`).MatchString(readFile(t, "../../.ci/run")) {
		t.Errorf(".ci/run does not run %q", command)
	}
}
