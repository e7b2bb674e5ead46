package command

import (
	"strings"
	"testing"
)

// After an upgrade the program on PATH and the running proxy may be two: every
// place where people look says so, and what to do; none does where they are one.
func TestKF_L13_ARunningProxyOfAnotherVersionIsTold(t *testing.T) {
	for version, differs := range map[string]bool{"v1.0-fake": false, "v2.0-fake": true} {
		a, out, _, dir := testApp(t, "")
		a.Build.Version = version
		startProxy(t, dir)
		for _, args := range []string{"status", "status --json", "version"} {
			out.Reset()
			run(t, a, args, ExitOK)
			if !strings.Contains(out.String(), "v1.0-fake") && args != "version" {
				t.Errorf("%s: %s does not name the running version:\n%s", version, args, out)
			}
			told := strings.Contains(out.String(), "the running proxy is v1.0-fake, this command is v2.0-fake: `agentop service restart` hands over")
			if args == "status" && told != differs {
				t.Errorf("%s: told %v, want %v:\n%s", version, told, differs, out)
			}
		}
	}
}
