package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentop/cmd/agentop/doctor"
	"agentop/cmd/agentop/home"
)

// fakeService is a login service that starts a fake proxy.
type fakeService struct {
	t         *testing.T
	dir       string
	installed bool
	calls     []string
}

func (f *fakeService) Status(context.Context) (doctor.Service, error) {
	return doctor.Service{Supported: true, Installed: f.installed, Running: f.installed}, nil
}

func (f *fakeService) Install(context.Context) ([]string, error) {
	f.calls = append(f.calls, "install")
	f.installed = true
	startProxy(f.t, f.dir)
	return []string{"wrote a unit"}, nil
}

func (f *fakeService) Uninstall(context.Context) ([]string, error) {
	f.calls = append(f.calls, "uninstall")
	f.installed = false
	return []string{"removed a unit"}, nil
}

// firstRun is an App on a machine where claude is installed and logged in.
func firstRun(t *testing.T, input string) (a *App, out *strings.Builder, service *fakeService, user string) {
	t.Helper()
	a, _, errs, dir := testApp(t, input)
	user = t.TempDir()
	bin := filepath.Join(user, "bin")
	for name, text := range map[string]string{
		"bin/claude":                "#!/bin/sh\necho 2.1.332\n",
		".claude/.credentials.json": "{}",
		".claude/settings.json":     "{\n  \"model\": \"opus\"\n}\n",
	} {
		path := filepath.Join(user, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	before := a.Getenv
	a.Getenv = func(name string) string {
		switch name {
		case "HOME":
			return user
		case "PATH":
			return bin
		}
		return before(name)
	}
	service = &fakeService{t: t, dir: dir}
	a.Service = func(home.Home) LoginService { return service }
	a.ReadSecret = func(context.Context, string) (string, error) { return "sk-fake-typed", nil }
	out = &strings.Builder{}
	a.Out = out
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("it said\n%s\nand\n%s", out, errs)
		}
	})
	return a, out, service, user
}

// TestFirstRun answers every question with yes.
func TestFirstRun(t *testing.T) {
	a, out, service, user := firstRun(t, "new\nhttp://new.example\ny\ny\nn\n")
	if code := a.execute(t.Context(), []string{"setup"}); code != ExitOK {
		t.Fatalf("exit code %d", code)
	}
	settings := readAll(t, filepath.Join(user, ".claude", "settings.json"))
	if !strings.Contains(settings, "http://127.0.0.1:4780/claude-code") {
		t.Errorf("the settings are %s", settings)
	}
	if strings.Join(service.calls, " ") != "install" {
		t.Errorf("the service was told to %v", service.calls)
	}
	for _, want := range []string{"undo: agentop uninstall --purge", "undo: agentop server remove new", "undo: agentop service uninstall", "undo: agentop agent disable claude-code"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if strings.Contains(out.String(), "sk-fake") {
		t.Error("it shows the key")
	}
}

// TestSetupAgainChangesNothing: what is right stays, to the byte and the time.
func TestSetupAgainChangesNothing(t *testing.T) {
	a, out, service, user := firstRun(t, "")
	args := []string{"setup", "--yes", "--server", "glm", "--url", "http://glm.example", "--no-key"}
	if code := a.execute(t.Context(), args); code != ExitOK {
		t.Fatalf("exit code %d", code)
	}
	dir, err := a.home()
	if err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, user) + treeOf(t, dir.AgentsDir()) + treeOf(t, dir.Config())
	out.Reset()
	for _, again := range [][]string{args, {"setup", "--yes"}} {
		if code := a.execute(t.Context(), again); code != ExitOK {
			t.Fatalf("%v: exit code %d", again, code)
		}
	}
	if after := treeOf(t, user) + treeOf(t, dir.AgentsDir()) + treeOf(t, dir.Config()); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if len(service.calls) != 1 {
		t.Errorf("the service was told to %v", service.calls)
	}
}

// TestSetupAsksOrDeclines: without a terminal nothing is done unasked, and no
// is no.
func TestSetupAsksOrDeclines(t *testing.T) {
	a, _, service, user := firstRun(t, "\nn\nn\n")
	before := treeOf(t, user)
	if code := a.execute(t.Context(), []string{"setup"}); code != ExitOK {
		t.Fatalf("exit code %d", code)
	}
	a.InTerminal = false
	if code := a.execute(t.Context(), []string{"setup"}); code != ExitDeclined {
		t.Errorf("without a terminal: exit code %d", code)
	}
	if after := treeOf(t, user); after != before || len(service.calls) > 0 {
		t.Errorf("something was changed: %v\n%s", service.calls, after)
	}
}

// TestSetupEnablesNobodyWithoutAProxy: an agent that is pointed at nobody is
// an agent that does not work.
func TestSetupEnablesNobodyWithoutAProxy(t *testing.T) {
	a, out, _, user := firstRun(t, "")
	before := treeOf(t, user)
	if code := a.execute(t.Context(), []string{"setup", "--yes", "--no-service", "--server", "glm", "--url", "http://glm.example", "--no-key"}); code != ExitOK {
		t.Fatalf("exit code %d", code)
	}
	if after := treeOf(t, user); after != before {
		t.Errorf("the settings were changed:\n%s", after)
	}
	dir, err := a.home()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := readConfig(dir); err != nil || c.Agents["claude-code"].Server != "glm" {
		t.Errorf("its conversations will not go to the new server: %v, %v", c, err)
	}
	if !strings.Contains(out.String(), "agentop agent enable claude-code") {
		t.Error("it does not say how to go on")
	}
}

// TestUninstallGoesInOrder: agents first, then the service, then the files;
// the user's home is as it was, byte for byte.
func TestUninstallGoesInOrder(t *testing.T) {
	a, _, service, user := firstRun(t, "")
	before := treeOf(t, user)
	if code := a.execute(t.Context(), []string{"setup", "--yes"}); code != ExitOK {
		t.Fatalf("setup: exit code %d", code)
	}
	if treeOf(t, user) == before {
		t.Fatal("setup changed nothing")
	}
	if code := a.execute(t.Context(), []string{"uninstall", "--yes", "--purge"}); code != ExitOK {
		t.Fatalf("uninstall: exit code %d", code)
	}
	if after := withoutTimes(treeOf(t, user)); after != withoutTimes(before) {
		t.Errorf("the home was\n%s\nand is\n%s", before, after)
	}
	if got := strings.Join(service.calls, " "); got != "install uninstall" {
		t.Errorf("the service was told to %s", got)
	}
	dir, err := a.home()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.String()); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

// TestUninstallStopsWhereAnAgentCannotBeUndone: taking the service away would
// leave that agent pointed at nobody.
func TestUninstallStopsWhereAnAgentCannotBeUndone(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may write everywhere: a folder in the way stands for it")
	}
	a, _, service, user := firstRun(t, "")
	if code := a.execute(t.Context(), []string{"setup", "--yes"}); code != ExitOK {
		t.Fatalf("setup: exit code %d", code)
	}
	path := filepath.Join(user, ".claude", "settings.json")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if code := a.execute(t.Context(), []string{"uninstall", "--yes", "--purge"}); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if got := strings.Join(service.calls, " "); got != "install" {
		t.Errorf("the service was told to %s", got)
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// treeOf is every file below root with its mode, time and content.
func treeOf(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(data) + " @" + info.ModTime().String())
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// withoutTimes is a tree without the times, which undoing cannot give back.
func withoutTimes(tree string) string {
	var lines []string
	for line := range strings.SplitSeq(tree, "\n") {
		line, _, _ = strings.Cut(line, " @")
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
