package service

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentop/cmd/agentop/home"
)

// fake is a system whose commands are noted and answered by a script.
type fake struct {
	calls  []string
	answer func(command string) (string, error)
}

func (f *fake) run(_ context.Context, name string, args ...string) (string, error) {
	command := strings.Join(append([]string{name}, args...), " ")
	f.calls = append(f.calls, command)
	if f.answer != nil {
		return f.answer(command)
	}
	return "", nil
}

// launchd makes it a launchd that knows what was loaded.
func (f *fake) launchd() {
	loaded := false
	f.answer = func(command string) (string, error) {
		switch {
		case strings.HasPrefix(command, "launchctl bootstrap "):
			if loaded {
				return "Bootstrap failed: 5: Input/output error", errors.New("exit status 5")
			}
			loaded = true
		case strings.HasPrefix(command, "launchctl bootout "):
			loaded = false
		case strings.HasPrefix(command, "launchctl print ") && strings.HasSuffix(command, label) && !loaded:
			return "Could not find service", errors.New("exit status 113")
		}
		return "", nil
	}
}

// place is a user's directory with agentop's home in it.
type place struct {
	t    *testing.T
	user string
	home home.Home
	fake *fake
	env  map[string]string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	user := t.TempDir()
	p := &place{t: t, user: user, home: home.Home(filepath.Join(user, ".agentop")), fake: &fake{}, env: map[string]string{
		"HOME": user, "XDG_RUNTIME_DIR": "/run/user/1000",
	}}
	if err := p.home.Create(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) manager(goos string) Manager {
	p.t.Helper()
	m, err := New(System{
		OS: goos, UID: 1000, Getenv: func(name string) string { return p.env[name] }, Run: p.fake.run,
		Sleep: func(context.Context, time.Duration) {},
	}, p.home)
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// program is a stable path that leads to a program.
func (p *place) program() string {
	p.t.Helper()
	real := filepath.Join(p.user, "agentop-1.2")
	link := filepath.Join(p.user, "agentop")
	if err := errors.Join(os.WriteFile(real, nil, 0o700), os.Symlink(real, link)); err != nil && !errors.Is(err, fs.ErrExist) {
		p.t.Fatal(err)
	}
	return link
}

func (p *place) spec() Spec {
	return Spec{
		Binary: p.program(), Home: p.home, Addresses: []string{"127.0.0.1:4780", "[::1]:4780"},
		Env: []Variable{{"PATH", "/opt/a b/bin:/usr/bin"}, {"HTTPS_PROXY", "http://squid.example:3128"}},
	}
}

// tree is every file under the user's directory with its content.
func (p *place) tree() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.user, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(p.user, path)
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			all[name] = string(data)
			return err
		}
		all[name] = e.Type().String()
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// sameTree compares two states of the user's directory.
func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, content := range got {
		if w, ok := want[name]; !ok || w != content {
			t.Errorf("%s: got %q, want %q (there: %v)", name, content, w, ok)
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestUninstallUndoesInstall(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		for _, record := range []bool{true, false} {
			t.Run(goos+" with its record "+map[bool]string{true: "there", false: "lost"}[record], func(t *testing.T) {
				p := newPlace(t)
				s := p.spec()
				if goos == "darwin" { // launchd's log needs the directory
					_ = os.Mkdir(p.home.LogDir(), 0o700)
					_ = os.MkdirAll(filepath.Join(p.user, "Library", "LaunchAgents"), 0o755)
				} else if !record { // which directories were there is then not known
					_ = os.MkdirAll(filepath.Join(p.user, ".config", "systemd", "user"), 0o755)
				}
				before := p.tree()
				p.fake.launchd()
				m := p.manager(goos)
				if _, err := m.Install(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				if !record {
					if err := os.Remove(recordPath(p.home)); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := m.Uninstall(t.Context()); err != nil {
					t.Fatal(err)
				}
				sameTree(t, p.tree(), before)
				change, err := m.Uninstall(t.Context())
				for _, line := range change.Done {
					if strings.HasPrefix(line, "removed") {
						t.Errorf("a second uninstall: %s", line)
					}
				}
				if err != nil {
					t.Errorf("a second uninstall: %v", err)
				}
			})
		}
	}
}

func TestInstallAgainChangesNothing(t *testing.T) {
	for goos, loaded := range map[string]string{"linux": "ActiveState=active\n", "darwin": "\tpid = 7\n"} {
		t.Run(goos, func(t *testing.T) {
			p := newPlace(t)
			p.fake.launchd()
			m := p.manager(goos)
			if _, err := m.Install(t.Context(), p.spec()); err != nil {
				t.Fatal(err)
			}
			before := p.tree()
			p.fake.answer = func(string) (string, error) { return loaded, nil }
			change, err := m.Install(t.Context(), p.spec())
			if err != nil || len(change.Done) > 0 {
				t.Errorf("got %v, %v, want nothing done", change.Done, err)
			}
			sameTree(t, p.tree(), before)
		})
	}
}

// What somebody else wrote is never replaced or removed, and what he changed
// in ours is kept.
func TestOthersFilesStay(t *testing.T) {
	p := newPlace(t)
	m := p.manager("linux").(*systemd)
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const foreign = "[Service]\nExecStart=/usr/bin/true\n"
	if err := os.WriteFile(m.servicePath(), []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), p.spec()); !errors.Is(err, ErrForeign) {
		t.Errorf("install over a foreign unit: %v, want %v", err, ErrForeign)
	}
	if _, err := m.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(m.servicePath()); string(data) != foreign {
		t.Errorf("the foreign unit is now %q", data)
	}
	if err := os.Remove(m.servicePath()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), p.spec()); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(m.servicePath())
	changed := string(data) + "# mine\n"
	if err := os.WriteFile(m.servicePath(), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(m.servicePath() + ".changed-by-hand"); string(data) != changed {
		t.Errorf("what was changed by hand is now %q", data)
	}
	if _, err := os.Stat(m.servicePath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unit is still there: %v", err)
	}
}

func TestSystemdCommands(t *testing.T) {
	p := newPlace(t)
	m := p.manager("linux")
	if _, err := m.Install(t.Context(), p.spec()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	const show = "systemctl --user show agentop.service --property=ActiveState,SubState,MainPID,NRestarts,Result,UnitFileState,StatusText,NeedDaemonReload"
	want := []string{
		"systemctl --user show --property=Version",
		"systemctl --user daemon-reload",
		"systemctl --user enable agentop.socket agentop.service",
		show,
		"systemctl --user reset-failed agentop.socket agentop.service",
		"systemctl --user start agentop.socket agentop.service",
		"loginctl show-user 1000 --property=Linger",
		"systemctl --user show --property=Version",
		"systemctl --user disable --now --no-block agentop.socket",
		"systemctl --user disable --now --no-block agentop.service",
		"systemctl --user daemon-reload",
		"systemctl --user reset-failed agentop.socket agentop.service",
	}
	if !reflect.DeepEqual(p.fake.calls, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(p.fake.calls, "\n"), strings.Join(want, "\n"))
	}
}

// The second install of a loaded agent takes it out, waits, and loads it.
func TestKF_L11_LaunchdLoadsOnlyWhatIsGone(t *testing.T) {
	p := newPlace(t)
	m := p.manager("darwin")
	looks := 0
	p.fake.answer = func(command string) (string, error) {
		if command == "launchctl print gui/1000/dev.agentop.proxy" {
			if looks++; looks > 3 {
				return "Could not find service", errors.New("exit status 113")
			}
		}
		return "", nil
	}
	if _, err := m.Install(t.Context(), p.spec()); err != nil {
		t.Fatal(err)
	}
	const look = "launchctl print gui/1000/dev.agentop.proxy"
	want := []string{
		"launchctl print gui/1000",
		look,
		"launchctl bootout gui/1000/dev.agentop.proxy",
		look, look, look,
		"launchctl enable gui/1000/dev.agentop.proxy",
		"launchctl bootstrap gui/1000 " + filepath.Join(p.user, "Library/LaunchAgents/dev.agentop.proxy.plist"),
	}
	if !reflect.DeepEqual(p.fake.calls, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(p.fake.calls, "\n"), strings.Join(want, "\n"))
	}
}

func TestLaunchdWithoutAScreen(t *testing.T) {
	p := newPlace(t)
	p.fake.answer = func(command string) (string, error) {
		if strings.Contains(command, "print") {
			return "Could not find domain", errors.New("exit status 125")
		}
		return "", nil
	}
	if _, err := p.manager("darwin").Install(t.Context(), p.spec()); err != nil {
		t.Fatal(err)
	}
	last := p.fake.calls[len(p.fake.calls)-1]
	if !strings.HasPrefix(last, "launchctl bootstrap user/1000 ") {
		t.Errorf("got %q, want the user's own domain", last)
	}
}

func TestLaunchdRunCommands(t *testing.T) {
	p := newPlace(t)
	m := p.manager("darwin")
	if err := m.Start(t.Context()); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("start: %v, want %v", err, ErrNotInstalled)
	}
	if _, err := m.Install(t.Context(), p.spec()); err == nil {
		t.Fatal("an agent that never goes was loaded a second time")
	}
	p.fake.calls = nil
	if err := errors.Join(m.Start(t.Context()), m.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"launchctl kickstart gui/1000/dev.agentop.proxy", "launchctl kill SIGTERM gui/1000/dev.agentop.proxy"} {
		if !slices.Contains(p.fake.calls, want) {
			t.Errorf("%q is not in %q", want, p.fake.calls)
		}
	}
}

func TestNoManagerIsExplained(t *testing.T) {
	for _, tc := range []struct {
		name   string
		env    map[string]string
		answer func(string) (string, error)
		want   string
	}{
		{"su", map[string]string{"XDG_RUNTIME_DIR": ""}, nil, "XDG_RUNTIME_DIR is not set"},
		{"container", nil, func(string) (string, error) { return "", exec.ErrNotFound }, "systemctl is not installed; run `agentop proxy`"},
		{"no systemd", nil, func(string) (string, error) { return "Failed to connect to bus", errors.New("exit status 1") }, "Failed to connect to bus; in a container or without systemd, run `agentop proxy`"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlace(t)
			for name, value := range tc.env {
				p.env[name] = value
			}
			p.fake.answer = tc.answer
			before := p.tree()
			_, err := p.manager("linux").Install(t.Context(), Spec{Binary: "/x", Home: p.home, Addresses: []string{"127.0.0.1:1"}})
			if !errors.Is(err, ErrNoManager) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
			sameTree(t, p.tree(), before)
		})
	}
}

// Lingering is said, turned on only when asked for, and turned off only if it
// was agentop that turned it on.
func TestKF_L8_LingerIsAskedForAndUndone(t *testing.T) {
	for _, before := range []string{"yes", "no"} {
		t.Run("before: "+before, func(t *testing.T) {
			p := newPlace(t)
			linger := before
			p.fake.answer = func(command string) (string, error) {
				switch command {
				case "loginctl enable-linger":
					linger = "yes"
				case "loginctl disable-linger":
					linger = "no"
				case "loginctl show-user 1000 --property=Linger":
					return "Linger=" + linger + "\n", nil
				}
				return "", nil
			}
			m := p.manager("linux")
			change, err := m.Install(t.Context(), p.spec())
			if err != nil {
				t.Fatal(err)
			}
			if linger != before {
				t.Fatalf("install changed lingering to %s", linger)
			}
			if said := strings.Join(change.Notes, "\n"); strings.Contains(said, "loginctl enable-linger") != (before == "no") {
				t.Errorf("it was said: %s", said)
			}
			if err := m.Linger(t.Context()); err != nil || linger != "yes" {
				t.Fatalf("Linger: %v, lingering %s", err, linger)
			}
			if _, err := m.Uninstall(t.Context()); err != nil || linger != before {
				t.Errorf("after uninstall: lingering %s, want %s; %v", linger, before, err)
			}
		})
	}
}
