package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMapNamesWhatExists holds CLAUDE.md to the tree: every path, make target
// and test that it names exists.
func TestMapNamesWhatExists(t *testing.T) {
	root := filepath.Join("..", "..")
	text := readFile(t, filepath.Join(root, "CLAUDE.md"))
	if lines := strings.Count(text, "\n"); lines > 120 {
		t.Errorf("CLAUDE.md has %d lines, at most 120 are allowed", lines)
	}
	tests := allTests(t, root)
	makefile := readFile(t, filepath.Join(root, "Makefile"))
	for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		name := quoted[1]
		switch {
		case strings.HasPrefix(name, "Test"):
			if !strings.Contains(tests, "func "+name+"(") {
				t.Errorf("CLAUDE.md names the test %s, which is not there", name)
			}
		case strings.HasPrefix(name, "make "):
			if target := strings.Fields(name)[1]; !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).MatchString(makefile) {
				t.Errorf("CLAUDE.md names %s, which the Makefile does not have", name)
			}
		case regexp.MustCompile(`^(agents|cmd|docs|filestore|router|tui)/`).MatchString(name):
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("CLAUDE.md names the path %s: %v", name, err)
			}
		}
	}
}

// Each package has its place in the map, and in one of the five folders.
func TestPredecessor_23_EveryPackageIsInTheMap(t *testing.T) {
	text := readFile(t, filepath.Join("..", "..", "CLAUDE.md"))
	out, err := exec.Command("go", "list", "agentop/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		name := strings.TrimPrefix(pkg, "agentop/")
		if top, _, _ := strings.Cut(name, "/"); !slices.Contains([]string{"agents", "cmd", "filestore", "router", "tui"}, top) {
			t.Errorf("%s is a package outside the five folders of the root", name)
		}
		parent, base := filepath.Split(name)
		if !strings.Contains(text, "`"+name+"`") && !(strings.Contains(text, "`"+strings.TrimSuffix(parent, "/")+"`") && strings.Contains(text, "`"+base+"`")) {
			t.Errorf("CLAUDE.md does not name the package %s", name)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// allTests is the text of every test file below root.
func allTests(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			all.WriteString(readFile(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// The last commits are looked at, where there is git.
func TestPredecessor_24_CommitSubjectsAreShort(t *testing.T) {
	out, err := exec.Command("git", "log", "-30", "--format=%s").Output()
	if err != nil {
		t.Log("no git history here")
		return
	}
	for _, subject := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if len([]rune(subject)) > 72 {
			t.Errorf("commit subject of %d characters, at most 72: %q", len([]rune(subject)), subject)
		}
	}
}
