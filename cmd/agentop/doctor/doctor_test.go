package doctor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentop/agents/setup"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/fakeserver"
)

// patient is a doctor for a scratch home where all is well.
func patient(t *testing.T) *Doctor {
	t.Helper()
	user := t.TempDir()
	h := home.Home(filepath.Join(user, ".agentop"))
	if err := h.Create(); err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(routeHeader, "x") }))
	t.Cleanup(proxy.Close)
	c := config.Default()
	c.Listen = strings.TrimPrefix(proxy.URL, "http://")
	env := map[string]string{}
	d := &Doctor{
		Home: h, Version: "v1.0-fake", Getenv: func(name string) string { return env[name] }, Now: time.Now,
		Config: c,
		Status: func(context.Context) (control.Status, error) {
			return control.Status{Version: "v1.0-fake", PID: 42}, nil
		},
		Service: func(context.Context) (Service, error) {
			return Service{Supported: true, Installed: true, Running: true}, nil
		},
		Key: func(context.Context, *config.Server) error { return nil },
		Ask: func(_ context.Context, s *config.Server) control.Preflight {
			return control.Preflight{Server: s.Name, Up: true}
		},
		Setup: &setup.Setup{Dir: h.AgentsDir(), World: setup.World{Getenv: func(name string) string { return env[name] }, Home: user, Root: user, OS: "linux"},
			Proxy: setup.Proxy{Listen: c.Listen}, Now: time.Now},
	}
	l, err := net.Listen("unix", h.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.Chmod(h.Socket(), home.FileMode); err != nil {
		t.Fatal(err)
	}
	return d
}

// gone makes the proxy end.
func gone(d *Doctor) {
	d.Status = func(context.Context) (control.Status, error) { return control.Status{}, control.ErrNotRunning }
}

// enabled points Claude Code at the proxy.
func enabled(t *testing.T, d *Doctor) {
	t.Helper()
	p, err := d.Setup.Plan("claude-code", setup.Choices{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Setup.Enable(p); err != nil {
		t.Fatal(err)
	}
}

func TestAllIsWell(t *testing.T) {
	d := patient(t)
	d.Config.Servers = []config.Server{{Name: "glm", URL: "http://glm.example"}}
	for _, f := range d.Run(t.Context()) {
		if f.Level == Wrong {
			t.Errorf("%s: %s", f.Check, f.Text)
		}
	}
}

// TestFindings plants one fault at a time. Each must be found, and say what
// cures it.
func TestFindings(t *testing.T) {
	tests := []struct {
		name  string
		plant func(t *testing.T, d *Doctor)
		check string
		level Level
		text  string
		fix   string
	}{
		{"no proxy", func(_ *testing.T, d *Doctor) { gone(d) }, "proxy", Wrong, "no agentop proxy is running", "agentop service start"},
		{"no proxy, no service", func(_ *testing.T, d *Doctor) { gone(d); d.Service = nil }, "proxy", Wrong, "no agentop proxy is running", "agentop proxy"},
		{"another version", func(_ *testing.T, d *Doctor) { d.Version = "v2" }, "proxy", Note, "the running proxy is v1.0-fake, this command is v2", "agentop service restart"},
		{"pins are not saved", func(_ *testing.T, d *Doctor) {
			d.Status = func(context.Context) (control.Status, error) {
				return control.Status{Store: control.Store{Error: "no space left"}}, nil
			}
		}, "store", Wrong, "pins are in memory only: no space left", "free space"},
		{"bad configuration", func(_ *testing.T, d *Doctor) { d.ConfigErr = errors.New("config.yaml:3:1: bad") }, "config", Wrong, "config.yaml:3:1: bad", "agentop config check"},
		{"a model was refused", func(_ *testing.T, d *Doctor) {
			d.Config.Servers = []config.Server{{Name: "glm", URL: "http://glm.example"}}
			d.Status = func(context.Context) (control.Status, error) {
				return control.Status{Servers: []control.Server{{Name: "other", Warnings: []string{"not this"}}, {Name: "glm", Warnings: []string{"glm refused the model claude-x (404); rename it"}}}}, nil
			}
		}, "server glm", Note, "glm refused the model claude-x (404); rename it", "agentop server test glm"},
		{"a name that is asked for is not served", func(_ *testing.T, d *Doctor) {
			d.Config.Servers = []config.Server{{Name: "glm", URL: "http://glm.example"}}
			d.Config.Agents = map[string]config.Choice{"claude-code": {Server: "glm"}, "codex": {Server: "other"}}
			d.Ask = func(context.Context, *config.Server) control.Preflight {
				return control.Preflight{Up: true, Missing: []string{"claude-x", "claude-haiku", "gpt-x"},
					Names:  []control.Name{{Agent: "claude-code", Asked: "claude-x"}, {Agent: "claude-code", Asked: "claude-haiku"}, {Agent: "codex", Asked: "gpt-x"}},
					Rename: []control.Rename{{Glob: "claude-*haiku*", Name: "glm-air"}, {Glob: "claude-*", Name: "glm-5"}, {Glob: "gpt-*", Name: "glm-5"}}}
			}
		}, "server glm", Note, "these names are asked for and not served: claude-x, claude-haiku",
			`write under glm in config.yaml: rename: {"claude-*haiku*": glm-air, "claude-*": glm-5}`},
		{"another program on the port", func(t *testing.T, d *Doctor) {
			other := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(other.Close)
			d.Config.Listen = strings.TrimPrefix(other.URL, "http://")
		}, "port", Wrong, "another program answers on 127.0.0.1:", "choose another `listen`"},
		{"nobody on the port", func(t *testing.T, d *Doctor) { d.Config.Listen = freeAddress(t) }, "port", Wrong, "the proxy runs, but nobody answers", "agentop service restart"},
		{"no socket", func(t *testing.T, d *Doctor) { remove(t, d.Home.Socket()) }, "socket", Wrong, "agentop.sock is gone", "agentop service restart"},
		{"service stopped", func(_ *testing.T, d *Doctor) {
			gone(d)
			d.Service = func(context.Context) (Service, error) { return Service{Supported: true, Installed: true}, nil }
		}, "service", Wrong, "is installed, and does not run", "agentop service start"},
		{"service with a lost program", func(_ *testing.T, d *Doctor) {
			d.Service = func(context.Context) (Service, error) {
				return Service{Supported: true, Installed: true, Running: true, Trouble: "it starts a program that is gone", Fix: "agentop service install"}, nil
			}
		}, "service", Wrong, "a program that is gone", "agentop service install"},
		{"open home", func(t *testing.T, d *Doctor) { mode(t, d.Home.String(), 0o755) }, "permissions", Wrong, "has mode 0755", "chmod 700"},
		{"a file of another clock", func(t *testing.T, d *Doctor) {
			write(t, d.Home.Pins(), "{}")
			later := time.Now().Add(3 * time.Hour)
			if err := os.Chtimes(d.Home.Pins(), later, later); err != nil {
				t.Fatal(err)
			}
		}, "clock", Wrong, "pins.json was written", "timedatectl"},
		{"a held lock", func(t *testing.T, d *Doctor) { hold(t, d.Home.Config()+".lock") }, "locks", Wrong, "config.yaml.lock is held", "fuser"},
		{"a proxy that does not answer", func(_ *testing.T, d *Doctor) {
			gone(d)
			d.Holder = func() Holder { return Holder{PID: 4711} }
		}, "proxy", Wrong, "process 4711 holds this home", "kill 4711"},
		{"a proxy that cannot serve", func(_ *testing.T, d *Doctor) {
			gone(d)
			d.Holder = func() Holder { return Holder{PID: 4711, Trouble: "it went wrong", Cure: "do this"} }
		}, "proxy", Wrong, "process 4711 cannot serve: it went wrong", "do this"},
		{"no key", func(_ *testing.T, d *Doctor) {
			d.Config.Servers = []config.Server{{Name: "glm", URL: "http://glm.example", Key: config.KeySource{Kind: config.KeyEnv, Env: "GLM_KEY"}}}
			d.Key = func(context.Context, *config.Server) error { return errors.New("GLM_KEY is not set") }
		}, "server glm", Wrong, "GLM_KEY is not set", "export GLM_KEY=..."},
		{"a refused key", func(_ *testing.T, d *Doctor) {
			d.Config.Servers = []config.Server{{Name: "glm", URL: "http://glm.example"}}
			d.Ask = func(context.Context, *config.Server) control.Preflight {
				return control.Preflight{Up: true, KeyOK: new(false)}
			}
		}, "server glm", Wrong, "it refuses the key", "agentop server add glm http://glm.example"},
		{"a server that is down", func(t *testing.T, d *Doctor) {
			d.Config.Servers = []config.Server{{Name: "glm", URL: "http://" + freeAddress(t)}}
			d.Ask = nil
		}, "server glm", Wrong, "cannot be reached", "agentop server test glm"},
		{"an agent at a dead proxy", func(t *testing.T, d *Doctor) { enabled(t, d); gone(d) }, "agent claude-code", Wrong, "it gets no answers", "agentop agent disable claude-code"},
		{"an agent at another port", func(t *testing.T, d *Doctor) {
			enabled(t, d)
			d.Setup.Proxy.Listen = "127.0.0.1:1"
		}, "agent claude-code", Wrong, "where agentop does not listen", "agentop agent enable claude-code"},
		{"an agent that was not seen", func(t *testing.T, d *Doctor) { enabled(t, d) }, "agent claude-code", Note, "no request of it has arrived yet", "--probe"},
		{"an agent at another router that is gone", func(t *testing.T, d *Doctor) {
			write(t, filepath.Join(d.Setup.World.Home, ".claude", "settings.json"), `{"env":{"ANTHROPIC_BASE_URL":"http://`+freeAddress(t)+`/x"}}`)
		}, "agent claude-code", Wrong, "where nobody answers", "agentop agent enable claude-code"},
		{"settings that do not parse", func(t *testing.T, d *Doctor) {
			write(t, filepath.Join(d.Setup.World.Home, ".claude", "settings.json"), "{ // mine\n}")
		}, "agent claude-code", Wrong, "settings.json:1:3", "correct "},
		{"an address in the shell that is dead", func(t *testing.T, d *Doctor) { export(d, "ANTHROPIC_BASE_URL", "http://"+freeAddress(t)) }, "environment", Wrong, "where nobody answers", "unset ANTHROPIC_BASE_URL"},
		{"an address in the shell", func(_ *testing.T, d *Doctor) { export(d, "OPENAI_BASE_URL", "https://gw.example/v1") }, "environment", Note, "OPENAI_BASE_URL is exported", "unset OPENAI_BASE_URL"},
		{"a proxy that catches loopback", func(_ *testing.T, d *Doctor) { export(d, "HTTPS_PROXY", "http://u:pw@p.example") }, "environment", Note, "NO_PROXY lacks", "export NO_PROXY=127.0.0.1,localhost,::1"},
		{"an own upstream that is gone", func(t *testing.T, d *Doctor) {
			d.Config.Agents["codex"] = config.Choice{Upstream: map[string]string{"": "http://" + freeAddress(t)}}
		}, "environment", Wrong, "codex's own upstream", "correct `upstream`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := patient(t)
			tt.plant(t, d)
			found := d.Run(t.Context())
			for _, f := range found {
				if f.Level == Wrong && f.Fix == "" {
					t.Errorf("%s: %s: has no fix", f.Check, f.Text)
				}
				if strings.Contains(f.Text+f.Fix, "u:pw") {
					t.Errorf("%s: %s shows a password", f.Check, f.Text)
				}
			}
			for _, f := range found {
				if f.Check == tt.check && f.Level == tt.level && strings.Contains(f.Text, tt.text) && strings.Contains(f.Fix, tt.fix) {
					return
				}
			}
			t.Errorf("not found: %s, %s, %q, fix %q; found:", tt.check, tt.level, tt.text, tt.fix)
			for _, f := range found {
				t.Logf("%s %s: %s (fix: %s)", f.Level, f.Check, f.Text, f.Fix)
			}
		})
	}
}

// TestRepairs: what is safe is mended, and then no longer found.
func TestRepairs(t *testing.T) {
	d := patient(t)
	gone(d)
	write(t, d.Home.Keys(), "{}")
	mode(t, d.Home.Keys(), 0o644)
	left := filepath.Join(d.Home.String(), ".pins.json.tmp-123")
	write(t, left, "x")
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(d.Home.String(), ".pins.json.tmp-124")
	write(t, fresh, "x")
	mended := 0
	for _, f := range d.Run(t.Context()) {
		if f.Safe {
			mended++
			if err := f.Repair(); err != nil {
				t.Errorf("%s: %v", f.Fix, err)
			}
		}
	}
	if mended != 2 {
		t.Errorf("%d things were mended, want 2", mended)
	}
	for _, f := range d.Run(t.Context()) {
		if f.Safe {
			t.Errorf("still there: %s", f.Text)
		}
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a file that is being written was removed: %v", err)
	}
}

// TestAStaleSocketIsRemoved by --fix alone, and only when nobody answers.
func TestAStaleSocketIsRemoved(t *testing.T) {
	d := patient(t)
	gone(d)
	remove(t, d.Home.Socket())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.Home.Socket(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	mode(t, d.Home.Socket(), 0o600)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range d.Run(t.Context()) {
		if f.Check == "socket" && f.Safe {
			if err := f.Repair(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(d.Home.Socket()); !os.IsNotExist(err) {
				t.Errorf("it is still there: %v", err)
			}
			return
		}
	}
	t.Error("it was not found")
}

func export(d *Doctor, name, value string) {
	before := d.Getenv
	d.Getenv = func(asked string) string {
		if asked == name {
			return value
		}
		return before(asked)
	}
}

// freeAddress is a loopback address where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := fakeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mode(t *testing.T, name string, want os.FileMode) {
	t.Helper()
	if err := os.Chmod(name, want); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// hold keeps a lock until the test ends.
func hold(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}
