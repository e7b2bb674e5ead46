package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentop/router/fakeserver"
)

// running stands for a systemd that runs what the unit says.
const running = `#!/bin/sh
unit=$HOME/.config/systemd/user/agentop.service
pid=$XDG_RUNTIME_DIR/pid
case "$*" in
*show*agentop.service*)
	if [ -e $pid ]; then echo ActiveState=active; echo UnitFileState=enabled; echo MainPID=$(cat $pid)
	else echo ActiveState=inactive; echo MainPID=0; fi ;;
*disable*agentop.service*) if [ -e $pid ]; then
		p=$(cat $pid); rm $pid; kill $p
		while kill -0 $p 2>/dev/null && ! grep -q ') Z' /proc/$p/stat 2>/dev/null; do sleep 0.02; done
	fi ;;
*\ start\ *)
	$(sed -n 's/^ExecStart=//p' $unit | tr -d '"') >/dev/null 2>&1 </dev/null &
	echo $! > $pid ;;
esac
`

// TestSetupFromNothing runs the guided first run for somebody who has all three
// agents, without a question, and again: the second time not a file changes,
// and uninstall leaves nothing of it.
func TestSetupFromNothing(t *testing.T) {
	u := newUserHome(t)
	for program, version := range map[string]string{"claude": "2.1.332 (Claude Code)", "codex": "codex-cli 0.171.0", "opencode": "1.18.33"} {
		if err := os.WriteFile(filepath.Join(u.bin, program), []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(u.bin, "systemctl"), []byte(running), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a test that failed
		text, err := os.ReadFile(filepath.Join(u.runtime, "pid"))
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	})
	before := u.look()
	address := freeAddress(t)
	u.write(".agentop/config.yaml", 0o600, "listen: "+address+"\n")
	args := []string{"setup", "--yes", "--no-screen", "--server", "glm", "--url", "http://127.0.0.1:1", "--no-key"}
	said := u.must(binary, args...)
	for _, want := range []string{"undo: agentop uninstall --purge", "glm", ".config/systemd/user/agentop.service", "claude-code", "codex", "opencode"} {
		if !strings.Contains(said, want) {
			t.Errorf("setup does not tell of %q:\n%s", want, said)
		}
	}
	first := settled(u.look())
	for name, want := range map[string]string{
		"dotfiles/claude.json": address + "/claude-code", ".codex/config.toml": address + "/codex/v1",
		".config/opencode/opencode.jsonc": address + "/opencode/lab/v1", ".agentop/config.yaml": "glm",
		".config/systemd/user/agentop.service": "ExecStart=",
	} {
		if !strings.Contains(first[name], want) {
			t.Errorf("%s is %q, want %q in it", name, first[name], want)
		}
	}
	again := u.must(binary, args...)
	u.compare("after setup was run again", settled(u.look()), first)
	if strings.Contains(again, "wrote ") {
		t.Errorf("run again, it says\n%s", again)
	}
	u.must(binary, "setup", "--yes", "--no-screen") // without a server to add
	u.compare("after setup was run a third time", settled(u.look()), first)
	u.must(binary, "service", "uninstall")
	u.must(binary, "uninstall", "--yes", "--purge")
	u.same("after uninstall", before)
}

// settled leaves out what a running proxy writes.
func settled(files map[string]string) map[string]string {
	maps.DeleteFunc(files, func(name, _ string) bool {
		return strings.HasPrefix(name, ".agentop/log") || strings.HasPrefix(name, ".agentop/pins.json") ||
			name == ".agentop/agentop.sock" || name == ".agentop/proxy.lock"
	})
	return files
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := fakeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
