package home

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestFind(t *testing.T) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		env  map[string]string
		want Home
	}{
		{"named", map[string]string{"AGENTOP_HOME": "/x/y", "HOME": "/home/u"}, "/x/y"},
		{"named with a slash at its end", map[string]string{"AGENTOP_HOME": "/x/y/"}, "/x/y"},
		{"relative", map[string]string{"AGENTOP_HOME": "x"}, Home(filepath.Join(cwd, "x"))},
		{"usual", map[string]string{"HOME": "/home/u"}, "/home/u/.agentop"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Find(func(name string) string { return tt.env[name] })
			if got != tt.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	d := Home("/h")
	got := []string{d.String(), d.Config(), d.Keys(), d.Pins(), d.LogDir(), d.ProxyLog(), d.Socket(), d.AgentsDir()}
	want := []string{"/h", "/h/config.yaml", "/h/keys.json", "/h/pins.json", "/h/log", "/h/log/proxy.log", "/h/agentop.sock", "/h/agents"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCreate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	base := t.TempDir()
	mode := func(d Home) fs.FileMode {
		info, err := os.Stat(d.String())
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	t.Run("new, with parents", func(t *testing.T) {
		d := Home(filepath.Join(base, "a", "b"))
		if err := d.Create(); err != nil || mode(d) != 0o700 {
			t.Errorf("got %v, mode %o", err, mode(d))
		}
		if err := d.Create(); err != nil {
			t.Errorf("again: got %v", err)
		}
	})
	t.Run("open to others", func(t *testing.T) {
		d := Home(filepath.Join(base, "wide"))
		if err := os.Mkdir(d.String(), 0o755); err != nil {
			t.Fatal(err)
		}
		if wide, err := d.Check(); len(wide) != 1 || err != nil {
			t.Errorf("before: got %v, %v", wide, err)
		}
		if err := d.Create(); err != nil || mode(d) != 0o700 {
			t.Errorf("got %v, mode %o", err, mode(d))
		}
	})
	t.Run("a file in its place", func(t *testing.T) {
		d := Home(filepath.Join(base, "file"))
		if err := os.WriteFile(d.String(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.Create(); err == nil {
			t.Error("got no error")
		}
	})
	t.Run("of another account", func(t *testing.T) {
		if os.Getuid() == 0 {
			if err := os.Mkdir(filepath.Join(base, "alien"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(filepath.Join(base, "alien"), 12345, 12345); err != nil {
				t.Fatal(err)
			}
			if err := Home(filepath.Join(base, "alien")).Create(); err == nil || !strings.Contains(err.Error(), "12345") {
				t.Errorf("got %v", err)
			}
			return
		}
		if err := Home("/").Create(); err == nil || !strings.Contains(err.Error(), "another account") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCheck(t *testing.T) {
	base := t.TempDir()
	d := Home(filepath.Join(base, "h"))
	if wide, err := d.Check(); wide != nil || err != nil {
		t.Errorf("no home: got %v, %v", wide, err)
	}
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.LogDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(base, "dotfiles.yaml")
	for path, mode := range map[string]fs.FileMode{d.Keys(): 0o600, d.Pins(): 0o644, d.ProxyLog(): 0o600, target: 0o640} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{d.Config(): target, d.in("dangling"): "nowhere"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	wide, err := d.Check()
	if err != nil {
		t.Fatal(err)
	}
	want := []Wide{{d.Config(), 0o640, 0o600}, {d.Pins(), 0o644, 0o600}}
	if !reflect.DeepEqual(wide, want) {
		t.Errorf("got %v, want %v", wide, want)
	}
	if got, want := wide[1].String(), "pins.json has mode 0644, so that others can reach it: chmod 600 "; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}
