package setup

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// stage is a user's home with agentop's records in it.
type stage struct {
	*Setup
	t    *testing.T
	home string
	env  map[string]string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	home := t.TempDir()
	s := &stage{t: t, home: home, env: map[string]string{}}
	s.Setup = &Setup{
		Dir:   filepath.Join(home, ".agentop", "agents"),
		World: World{Getenv: func(name string) string { return s.env[name] }, Home: home, Root: filepath.Join(home, "root"), OS: "linux"},
		Proxy: Proxy{Listen: "127.0.0.1:4780"},
		By:    "v1.0-fake",
		Now:   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
	return s
}

// write makes a file below the home, with its folders.
func (s *stage) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *stage) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.home, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// enable enables an agent and gives what was done.
func (s *stage) enable(agent string, o Choices) *Plan {
	s.t.Helper()
	p, err := s.Plan(agent, o)
	if err != nil {
		s.t.Fatalf("plan %s: %v", agent, err)
	}
	done, err := s.Enable(p)
	if err != nil {
		s.t.Fatalf("enable %s: %v", agent, err)
	}
	return done
}

func (s *stage) disable(agent string) *Undone {
	s.t.Helper()
	u, err := s.Disable(agent, false)
	if err != nil {
		s.t.Fatalf("disable %s: %v", agent, err)
	}
	return u
}

// tree is every file below a folder: kind and mode, link or content. The lock
// files, which hold nothing, and agentop's folders are left out.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if name == ".agentop" {
			return filepath.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + to
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		all[name] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sameTree says where two trees differ.
func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: got %q, want %q", name, got[name], text)
		}
	}
	for name, text := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s is left over: %q", name, text)
		}
	}
}
