package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/service"
)

// fakeSystem is a Linux whose commands are noted and do nothing.
func fakeSystem(t *testing.T, a *App) (calls *[]string, env map[string]string) {
	t.Helper()
	calls = &[]string{}
	env = map[string]string{"HOME": t.TempDir(), "XDG_RUNTIME_DIR": "/run/user/1000", "PATH": "/opt/bin:/bin", home.EnvName: a.Getenv(home.EnvName)}
	a.Getenv = func(name string) string { return env[name] }
	a.System = service.System{
		OS: "linux", UID: 1000, Getenv: a.Getenv, Sleep: func(context.Context, time.Duration) {},
		Run: func(_ context.Context, name string, args ...string) (string, error) {
			*calls = append(*calls, strings.Join(append([]string{name}, args...), " "))
			return "", nil
		},
	}
	return calls, env
}

func run(t *testing.T, a *App, line string, want int) {
	t.Helper()
	if got := a.execute(t.Context(), strings.Fields(line)); got != want {
		t.Errorf("agentop %s: exit code %d, want %d\n%s", line, got, want, a.Err)
	}
}

func TestServiceCommandsOfWhatIsNotInstalled(t *testing.T) {
	for _, name := range []string{"start", "stop", "restart"} {
		a, _, errs, _ := testApp(t, "")
		fakeSystem(t, a)
		run(t, a, "service "+name, ExitFailed)
		if !strings.Contains(errs.String(), "the service is not installed\nagentop: hint: `agentop service install`") {
			t.Errorf("%s said %s", name, errs)
		}
	}
	a, out, _, _ := testApp(t, "")
	fakeSystem(t, a)
	run(t, a, "service uninstall", ExitOK)
	run(t, a, "service status", ExitOK)
	if !strings.Contains(out.String(), "it is not installed") || !strings.Contains(out.String(), "not installed") || strings.Contains(out.String(), "problem") {
		t.Errorf("got %s", out)
	}
	_, env := fakeSystem(t, a)
	env["XDG_RUNTIME_DIR"] = ""
	run(t, a, "service status", ExitOK)
	if want := "no service manager can be used here: XDG_RUNTIME_DIR is not set"; !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in %s", want, out)
	}
}

// TestServiceStatusNamesAProxyThatIsNotTheService holds the lock of a home as a
// supervisor does.
func TestServiceStatusNamesAProxyThatIsNotTheService(t *testing.T) {
	a, out, _, dir := testApp(t, "")
	fakeSystem(t, a)
	lock, err := os.OpenFile(home.Home(dir).Lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.WriteString(`{"pid": 4711, "version": "` + a.Build.Version + `"}`); err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	run(t, a, "service status", ExitOK)
	run(t, a, "service status --json", ExitOK)
	for _, want := range []string{"process 4711, which is not the service", `"serves": 4711`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// A service file is readable by others of this account's programs and copied
// into backups: what holds a key or a password is named, not taken over.
func TestKF_L6_KF_X5_ServiceInstallShowsWhatItTakesOver(t *testing.T) {
	a, out, errs, dir := testApp(t, "n\n")
	_, env := fakeSystem(t, a)
	env["GLM_KEY"] = "sk-fake-secret-of-glm"
	env["HTTPS_PROXY"], env["https_proxy"] = "http://squid.example:3128", "http://user:sk-fake-secret@squid.example:3128"
	config := "listen: 127.0.0.1:4799\nservers:\n  glm: {url: http://127.0.0.1:1, key: env:GLM_KEY}\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, a, "service install", ExitOK)
	unit, err := os.ReadFile(filepath.Join(env["HOME"], ".config/systemd/user/agentop.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Environment="PATH=/opt/bin:/bin"`, `Environment="HTTPS_PROXY=http://squid.example:3128"`} {
		if !strings.Contains(string(unit), want) {
			t.Errorf("%s is not in\n%s", want, unit)
		}
	}
	if all := out.String() + errs.String() + string(unit); strings.Contains(all, "sk-fake-secret") {
		t.Errorf("a password has left its place:\n%s", all)
	}
	out.Reset()
	run(t, a, "service status", ExitOK)
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, "HTTPS_PROXY http://squid.example:3128") || strings.Contains(got, "https_proxy") {
		t.Errorf("status does not tell the proxy in effect:\n%s", got)
	}
	for _, want := range []string{"the service uses HTTPS_PROXY=http://squid.example:3128", "https_proxy holds a password", "server glm takes its key from $GLM_KEY"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%q was not said:\n%s", want, errs)
		}
	}
}

func TestServiceInstallNeedsAValidConfiguration(t *testing.T) {
	for _, config := range []string{"listen: 127.0.0.1:0\n", "listen: [\n"} {
		a, _, _, dir := testApp(t, "")
		calls, _ := fakeSystem(t, a)
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, a, "service install", ExitFailed)
		if len(*calls) > 0 {
			t.Errorf("%q: commands ran: %q", config, *calls)
		}
	}
}

func TestServiceInstallDryRunChangesNothing(t *testing.T) {
	a, out, _, dir := testApp(t, "")
	calls, env := fakeSystem(t, a)
	run(t, a, "service install --dry-run", ExitOK)
	if !strings.Contains(out.String(), "agentop.socket") || !strings.Contains(out.String(), "ListenStream=127.0.0.1:4780") {
		t.Errorf("got %s", out)
	}
	for _, where := range []string{env["HOME"], dir} {
		if entries, err := os.ReadDir(where); err != nil || len(entries) > 0 {
			t.Errorf("%s holds %v, %v", where, entries, err)
		}
	}
	if len(*calls) > 0 {
		t.Errorf("commands ran: %q", *calls)
	}
}

func TestServiceRestartWorksWithoutAService(t *testing.T) {
	a, out, _, dir := testApp(t, "")
	calls, _ := fakeSystem(t, a)
	proxy := startProxy(t, dir)
	run(t, a, "service restart", ExitOK)
	if got := proxy.Calls(); !slices.Contains(got, "restart") {
		t.Errorf("the proxy was told %q", got)
	}
	if !strings.Contains(out.String(), "agentop v1.0-fake serves on 127.0.0.1:4780") || len(*calls) > 0 {
		t.Errorf("got %s; commands %q", out, *calls)
	}
}

func TestServiceTakesOverPathAndProxiesWithoutPasswords(t *testing.T) {
	env := map[string]string{"PATH": "/a@b", "NO_PROXY": "localhost", "ALL_PROXY": "socks5://u:p@h:1", "OTHER": "x"}
	vars, notes := capture(func(name string) string { return env[name] })
	if want := []service.Variable{{Name: "PATH", Value: "/a@b"}, {Name: "NO_PROXY", Value: "localhost"}}; !reflect.DeepEqual(vars, want) {
		t.Errorf("got %v, want %v", vars, want)
	}
	if len(notes) != 2 || strings.Contains(strings.Join(notes, ""), "u:p") {
		t.Errorf("notes %q", notes)
	}
}

func TestListenAddressOfABadConfiguration(t *testing.T) {
	for _, tc := range []struct{ config, want string }{
		{"listen: 127.0.0.1:4799\nbogus: 1\n", "127.0.0.1:4799"},
		{"bogus: 1\nlisten: \"[::1]:4799\" # here\n", "[::1]:4799"},
		{"listen: 0.0.0.0:4799\n", "127.0.0.1:4780"},
		{"listen: {\n", "127.0.0.1:4780"},
		{"\x00", "127.0.0.1:4780"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(tc.config), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := listenAddress(home.Home(dir))
		if err == nil || got != tc.want {
			t.Errorf("%q: got %s, %v, want %s and an error", tc.config, got, err, tc.want)
		}
	}
}

func TestHeldIsDeclined(t *testing.T) {
	err := hint(declined{errors.New("held")}, "")
	if !errors.Is(err, errDeclined) || err.Error() != "held" {
		t.Errorf("got %v", err)
	}
}
