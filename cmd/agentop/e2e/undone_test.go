package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentop/cmd/testkit"
)

// userHome is the home directory of somebody who has all three agents and whom
// agentop is to leave without a trace.
type userHome struct {
	t     *testing.T
	dir   string // HOME
	bin   string // what stands for the service manager's commands
	saved string // copies of the home, to go back to

	runtime string // XDG_RUNTIME_DIR
}

// systemctl stands for systemd: it makes and removes the links that the real
// one does, and says that nothing runs.
const systemctl = `#!/bin/sh
dir=$HOME/.config/systemd/user
case "$*" in
*show*agentop.service*) echo ActiveState=inactive; echo MainPID=0 ;;
*enable\ agentop*)
	mkdir -p $dir/sockets.target.wants $dir/default.target.wants
	ln -sf $dir/agentop.socket $dir/sockets.target.wants/agentop.socket
	ln -sf $dir/agentop.service $dir/default.target.wants/agentop.service ;;
*disable*agentop.socket*) rm -f $dir/sockets.target.wants/agentop.socket ;;
*disable*agentop.service*) rm -f $dir/default.target.wants/agentop.service ;;
esac
`

const loginctl = "#!/bin/sh\necho Linger=no\n"

// newUserHome writes settings as people have them.
func newUserHome(t *testing.T) *userHome {
	t.Helper()
	u := &userHome{t: t, dir: filepath.Join(agentDir(t), "home"), bin: t.TempDir(), saved: t.TempDir(), runtime: t.TempDir()}
	for name, text := range map[string]string{"systemctl": systemctl, "loginctl": loginctl} {
		if err := os.WriteFile(filepath.Join(u.bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	u.write("dotfiles/claude.json", 0o640, "{\n    \"model\": \"opus\",\n    \"env\": {\n        \"FOO\": \"bar\",\n        \"ANTHROPIC_BASE_URL\": \"https://gw.example.com/a\"\n    }\n}\n")
	u.write(".codex/config.toml", 0o600, "# mine\r\nmodel = 'x' # tail\r\n\r\n[tui]\r\na = 1\r\n")
	u.write(".config/opencode/opencode.jsonc", 0o644, "// mine\n{\n\t\"provider\": {\n\t\t\"lab\": { // ours\n\t\t\t\"npm\": \"@ai-sdk/openai-compatible\",\n\t\t\t\"options\": { \"baseURL\": \"http://gpu.example:8000/v1\", },\n\t\t},\n\t},\n}")
	u.write(".bashrc", 0o644, "export EDITOR=vi\n")
	if err := os.Mkdir(filepath.Join(u.dir, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/claude.json", filepath.Join(u.dir, ".claude", "settings.json")); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *userHome) write(name string, mode fs.FileMode, text string) {
	u.t.Helper()
	path := filepath.Join(u.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		u.t.Fatal(err)
	}
}

// command is an agentop of that user; program is which build of it.
func (u *userHome) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = u.dir
	cmd.Env = []string{"HOME=" + u.dir, "PATH=" + u.bin + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + u.runtime, "LC_ALL=C.UTF-8"}
	return cmd
}

// must runs one that has to work.
func (u *userHome) must(program string, args ...string) string {
	u.t.Helper()
	out, err := u.command(program, args...).CombinedOutput()
	if err != nil {
		u.t.Fatalf("agentop %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// install does all that leaves a trace.
func (u *userHome) install(program string) {
	u.t.Helper()
	u.must(program, "server", "add", "glm", "http://127.0.0.1:1", "--no-key", "--yes")
	u.must(program, "service", "install")
	for _, agent := range []string{"claude-code", "codex", "opencode"} {
		u.must(program, "agent", "enable", agent, "--yes")
	}
}

// look is every file of the home, with its mode and content.
func (u *userHome) look() map[string]string {
	u.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(u.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
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
		name, _ := filepath.Rel(u.dir, path)
		all[name] = text
		return nil
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return all
}

// same reports what differs from how the home was.
func (u *userHome) same(when string, before map[string]string) {
	u.t.Helper()
	u.compare(when, u.look(), before)
}

func (u *userHome) compare(when string, now, before map[string]string) {
	u.t.Helper()
	for name, want := range before {
		if got, ok := now[name]; !ok || got != want {
			u.t.Errorf("%s: %s is %q, want %q", when, name, got, want)
		}
	}
	for name, got := range now {
		if _, ok := before[name]; !ok {
			u.t.Errorf("%s: %s is left: %.200q", when, name, got)
		}
	}
}

// keep and back save the home and go back to what was saved.
func (u *userHome) keep(name string) { u.copy(u.dir, filepath.Join(u.saved, name)) }
func (u *userHome) back(name string) { u.copy(filepath.Join(u.saved, name), u.dir) }

func (u *userHome) copy(from, to string) {
	u.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		u.t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		u.t.Fatalf("copy: %v\n%s", err, out)
	}
}

// TestPromise8_ExactlyUndone installs the service and points all agents here,
// and takes it all out again: not a byte, mode or link is another than before.
func TestPromise8_ExactlyUndone(t *testing.T) {
	u := newUserHome(t)
	before := u.look()
	u.install(binary)
	if now := u.look(); len(now) < len(before)+8 || !strings.Contains(now["dotfiles/claude.json"], "127.0.0.1:4780") {
		t.Fatalf("installed, the home is %q", now)
	}
	u.must(binary, "uninstall", "--yes", "--purge")
	u.same("after uninstall", before)
}

// changes are the system calls at which a command is killed: what they do is
// then done, and nothing after it.
var changes = []string{"rename,renameat,renameat2", "unlink,unlinkat,rmdir", "fsync", "mkdir,mkdirat", "write", "openat", "fchmod,fchmodat,fchown"}

// killedAt runs a command that is killed with -9 when one of its threads makes
// such a call for the nth time. It says whether one did: a command that
// agentop itself runs counts as well.
func (u *userHome) killedAt(calls string, n int, args ...string) bool {
	u.t.Helper()
	trace := filepath.Join(u.saved, "trace")
	cmd := u.command("strace", append([]string{"-f", "-o", trace, "-e", "trace=" + calls,
		"-e", "inject=" + calls + ":signal=KILL:when=" + strconv.Itoa(n), binary}, args...)...)
	out, runErr := cmd.CombinedOutput()
	traced, err := os.ReadFile(trace)
	if err != nil {
		u.t.Fatalf("strace: %v, %v\n%s", runErr, err, out)
	}
	killed := strings.Contains(string(traced), "killed by SIGKILL")
	if runErr != nil && !killed {
		u.t.Fatalf("agentop %s: %v\n%s", strings.Join(args, " "), runErr, out)
	}
	return killed
}

// TestPromise8_KilledAtEachStep kills what changes the user's files, at one
// change after the other, and then takes agentop out.
func TestPromise8_KilledAtEachStep(t *testing.T) {
	testkit.Need(t, "strace")
	calls, most := changes[:3], 2
	if os.Getenv("AGENTOP_TEST_FULL") != "" {
		calls, most = changes, 1000
	}
	u := newUserHome(t)
	before := u.look()
	u.keep("before")
	u.install(binary)
	u.keep("installed")
	for _, c := range []struct {
		name, from string
		args       []string
	}{
		{"uninstall", "installed", []string{"uninstall", "--yes", "--purge"}},
		{"disable", "installed", []string{"agent", "disable", "claude-code"}},
		{"enable", "before", []string{"agent", "enable", "claude-code", "--yes"}},
		{"install", "before", []string{"service", "install"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u.t = t
			met := 0
			for _, call := range calls {
				for n := 1; n <= most; n++ {
					u.back(c.from)
					if !u.killedAt(call, n, c.args...) {
						break
					}
					met++
					u.must(binary, "uninstall", "--yes", "--purge")
					u.same(fmt.Sprintf("killed at %s %d", call, n), before)
					if t.Failed() {
						t.FailNow() // the first one tells
					}
				}
			}
			if met < 3 {
				t.Errorf("it was killed at %d changes, want more", met)
			}
			t.Logf("killed at %d changes", met)
		})
	}
}
