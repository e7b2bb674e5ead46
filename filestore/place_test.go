package filestore_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentop/filestore"
)

// TestSymlinkKept saves through links: of the file, of its folder, a chain of
// them, and one that points to nothing yet. The links stay, the target has
// the content, temporary files and lock are beside the target.
func TestSymlinkKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		target string            // where the bytes must be
		links  map[string]string // name to destination, below one folder
		path   string            // what is opened
		before string            // a file that is there before
	}{
		{"file", "dot/pins.json", map[string]string{"pins.json": "dot/pins.json"}, "pins.json", "dot/pins.json"},
		{"to nothing yet", "dot/pins.json", map[string]string{"pins.json": "dot/pins.json"}, "pins.json", ""},
		{"chain", "dot/real.json", map[string]string{"pins.json": "dot/a", "dot/a": "b", "dot/b": "real.json"}, "pins.json", "dot/real.json"},
		{"folder", "dot/pins.json", map[string]string{"home": "dot"}, "home/pins.json", ""},
		{"folder to be made", "dot/new/pins.json", map[string]string{"pins.json": "dot/new/pins.json"}, "pins.json", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			if err := os.Mkdir(at("dot"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, to := range c.links {
				if err := os.Symlink(to, at(name)); err != nil {
					t.Fatal(err)
				}
			}
			if c.before != "" {
				b, _ := goodFile(t)
				if err := os.WriteFile(at(c.before), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, at(c.path))
			setDurable(t, s, "k", "1")
			if c.before != "" {
				wantGet(t, s, "expiring", "soon", true)
			}
			for name, to := range c.links {
				if got, err := os.Readlink(at(name)); got != to {
					t.Errorf("%s leads to %q, %v; want %q still", name, got, err, to)
				}
			}
			b, err := os.ReadFile(at(c.target))
			if err != nil || !strings.Contains(string(b), `"k":`) {
				t.Errorf("target has %s, %v; want the key", b, err)
			}
			if _, err := os.Lstat(at(c.target) + ".lock"); err != nil {
				t.Errorf("the lock is not beside the target: %v", err)
			}
		})
	}
	t.Run("loop", func(t *testing.T) {
		path := newPath(t)
		if err := os.Symlink("pins.json", path); err != nil {
			t.Fatal(err)
		}
		if _, err := filestore.Open(t.Context(), filestore.FileURL(path), quiet); err == nil {
			t.Error("Open of a loop of links: no error")
		}
	})
}

// TestModes wants file, lock and temporary files for their owner alone under
// any umask, the folder too if the store made it, and a wider file narrowed.
func TestModes(t *testing.T) {
	for _, umask := range []int{0o000, 0o022, 0o077} {
		old := syscall.Umask(umask)
		path := filepath.Join(t.TempDir(), "a", "b", "pins.json")
		spy := &modeSpy{FS: filestore.OS()}
		s := open(t, path, filestore.WithFS(spy))
		setDurable(t, s, "k", "1")
		mustClose(t, s)
		for name, want := range map[string]fs.FileMode{
			path: 0o600, path + ".lock": 0o600,
			filepath.Dir(path): 0o700 | fs.ModeDir, filepath.Dir(filepath.Dir(path)): 0o700 | fs.ModeDir,
		} {
			if info, err := os.Stat(name); err != nil || info.Mode() != want {
				t.Errorf("umask %03o: %s has mode %v, %v; want %v", umask, name, info.Mode(), err, want)
			}
		}
		if len(spy.modes) != 1 || spy.modes[0].Perm() != 0o600 {
			t.Errorf("umask %03o: temporary files had modes %v, want one of 0600", umask, spy.modes)
		}
		os.Chmod(path, 0o644)
		s = open(t, path)
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("umask %03o: a wider file has mode %v after opening, want 0600", umask, info.Mode())
		}
		wantGet(t, s, "k", "1", true)
		syscall.Umask(old)
	}
}

type modeSpy struct {
	filestore.FS
	modes []fs.FileMode
}

func (m *modeSpy) CreateTemp(dir, pattern string) (filestore.File, error) {
	f, err := m.FS.CreateTemp(dir, pattern)
	if err == nil {
		if info, err := f.Stat(); err == nil {
			m.modes = append(m.modes, info.Mode)
		}
	}
	return f, err
}

// TestLeftoversRemoved opens a store beside temporary files of killed saves.
func TestLeftoversRemoved(t *testing.T) {
	path := newPath(t)
	left := path + ".tmp-12345"
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	setDurable(t, open(t, path), "k", "1")
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
}

// TestFolderCannotBeMade wants an error, or with the fallback a store that
// serves from memory and becomes durable.
func TestFolderCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	block := filepath.Join(dir, "sub")
	if err := os.WriteFile(block, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(block, "pins.json")
	if _, err := filestore.Open(t.Context(), filestore.FileURL(path), quiet); err == nil {
		t.Error("Open below a file: no error")
	}
	s := open(t, path, filestore.WithMemoryFallback())
	if st := s.State(); st.Err == nil || st.ErrSince.IsZero() {
		t.Errorf("State = %+v, want the reason", st)
	}
	s.Set("k", "1", 0)
	wantGet(t, s, "k", "1", true)
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	eventually(t, "durable", func() bool { st := s.State(); return st.Err == nil && st.Unsaved == 0 })
	wantGet(t, open(t, path), "k", "1", true)
}

// TestPlainSetsAreSaved wants a plain write on disk after the delay, and at
// once on Close.
func TestPlainSetsAreSaved(t *testing.T) {
	path := newPath(t)
	s := open(t, path, filestore.WithSaveDelay(time.Millisecond))
	s.Set("k", "1", 0)
	eventually(t, "saved", func() bool { return s.State().Unsaved == 0 })
	mustClose(t, s)
	s = open(t, path, filestore.WithSaveDelay(never))
	wantGet(t, s, "k", "1", true)
	s.Set("k", "2", 0)
	mustClose(t, s)
	wantGet(t, open(t, path), "k", "2", true)
}

// TestClosed wants every operation after Close to say so.
func TestClosed(t *testing.T) {
	s := open(t, newPath(t))
	mustClose(t, s)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Get":           func() error { _, _, err := s.Get("k"); return err },
		"Set":           func() error { return s.Set("k", "v", 0) },
		"SetDurable":    func() error { return s.SetDurable(ctx, "k", "v", 0) },
		"SetNX":         func() error { _, err := s.SetNX("k", "v", 0); return err },
		"SetNXDurable":  func() error { _, err := s.SetNXDurable(ctx, "k", "v", 0); return err },
		"Update":        func() error { return s.Update("k", nil) },
		"UpdateDurable": func() error { return s.UpdateDurable(ctx, "k", nil) },
		"Delete":        func() error { _, err := s.Delete("k"); return err },
		"Exists":        func() error { _, err := s.Exists("k"); return err },
		"Keys":          func() error { _, err := s.Keys(""); return err },
		"HGetAll":       func() error { _, err := s.HGetAll("k"); return err },
		"TTL":           func() error { _, err := s.TTL("k"); return err },
		"Sync":          func() error { return s.Sync(ctx) },
		"Close":         func() error { return s.Close() },
	} {
		if err := call(); !errors.Is(err, filestore.ErrClosed) {
			t.Errorf("%s after Close = %v, want ErrClosed", name, err)
		}
	}
}

// TestURLs opens what is no URL of a store.
func TestURLs(t *testing.T) {
	for _, bad := range []string{"", "pins.json", "file:pins.json", "file://host/pins.json", "file:///a?b=c", "file:///a#b", "file://u:p@/a", "mem:x", "mem://x", "redis://x", "%", "file://"} {
		if s, err := filestore.Open(t.Context(), bad, quiet, filestore.WithMemoryFallback()); err == nil {
			s.Close()
			t.Errorf("Open(%q): no error", bad)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("Open(%q) repeats the password: %v", bad, err)
		}
	}
	path := filepath.Join(t.TempDir(), "a folder", "pins %41#?.json")
	setDurable(t, open(t, path), "k", "1")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestRegister puts another store behind a scheme.
func TestRegister(t *testing.T) {
	var got string
	filestore.Register("test-other", func(ctx context.Context, u *url.URL, opts ...filestore.Option) (filestore.Store, error) {
		got = u.Host
		return filestore.Open(ctx, "mem:", opts...)
	})
	s, err := filestore.Open(t.Context(), "test-other://somewhere")
	if err != nil || got != "somewhere" {
		t.Fatalf("Open = %v, host %q", err, got)
	}
	setDurable(t, s, "k", "1")
	wantGet(t, s, "k", "1", true)
}

// TestLimits wants what is too large refused, and told by which limit.
func TestLimits(t *testing.T) {
	s := open(t, newPath(t), filestore.WithLimits(filestore.Limits{KeyLen: 8, ValueLen: 16}))
	long := strings.Repeat("x", 17)
	for name, err := range map[string]error{
		"key":        s.Set("123456789", "v", 0),
		"value":      s.SetDurable(t.Context(), "k", long, 0),
		"update":     s.Update("k", func(filestore.Item) (filestore.Item, error) { return filestore.Item{Value: long, Exists: true}, nil }),
		"field":      second(s.HSet("h", map[string]string{"123456789": ""})),
		"whole hash": second(s.HSet("h", map[string]string{"a": "12345678", "b": "12345678"})),
	} {
		if !errors.Is(err, filestore.ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	if err := s.Set("12345678", long[:16], 0); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	if err := s.Set("k", "v", -1); !errors.Is(err, filestore.ErrTTL) {
		t.Errorf("negative time to live: %v, want ErrTTL", err)
	}
	if got := s.Len(); got != 1 {
		t.Errorf("Len = %d, want 1", got)
	}
}

func second(_ int, err error) error { return err }
