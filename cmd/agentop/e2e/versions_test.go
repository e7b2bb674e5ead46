package e2e

import (
	"cmp"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

// TestOlderAndNewerBuildsShareAHome has an earlier build and this one take turns
// on one home: conversations stay where they are, and what either enabled the
// other undoes. The earlier one is that of AGENTOP_TEST_PREVIOUS, else this
// one again.
func TestOlderAndNewerBuildsShareAHome(t *testing.T) {
	older := cmp.Or(os.Getenv(previousEnv), binary)
	u := newUserHome(t)
	before := u.look()
	servers := map[string]*fakeserver.Server{}
	for _, name := range []string{"a", "b"} {
		server := fakeserver.New(fakeserver.Options{Name: name})
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		servers[name] = server
	}
	address := freeAddress(t)
	u.write(".agentop/config.yaml", 0o600, "# mine\nlisten: "+address+"\nservers:\n  a: {url: "+servers["a"].URL()+", key: none}\n  b: {url: "+servers["b"].URL()+", key: none}\nagents:\n  claude-code: {server: a}\n")

	// turn has a conversation take a turn, which must go to a server.
	turn := func(session, want string) {
		t.Helper()
		seen := len(servers[want].Records())
		k := &keeper{address: address, session: session}
		defer k.hangUp()
		if l := k.request(time.Now()); l.err != nil {
			t.Errorf("a turn of %s: %v", session, l.err)
		}
		if now := len(servers[want].Records()); now != seen+1 {
			t.Errorf("%s got %d requests by a turn of %s, want one", want, now-seen, session)
		}
	}
	for _, agent := range []string{"claude-code", "codex", "opencode"} {
		u.must(older, "agent", "enable", agent, "--yes")
	}
	stop := u.serve(older, address)
	turn("one", "a")
	u.must(older, "server", "use", "b", "--agent", "claude-code")
	turn("two", "b")
	stop()

	stop = u.serve(binary, address)
	turn("one", "a")
	turn("two", "b")
	turn("three", "b")
	u.must(binary, "server", "use", "a", "--agent", "claude-code")
	turn("four", "a")
	stop()

	stop = u.serve(older, address)
	for session, where := range map[string]string{"one": "a", "two": "b", "three": "b", "four": "a"} {
		turn(session, where)
	}
	stop()

	u.must(binary, "uninstall", "--yes", "--purge")
	u.same("enabled by the older, taken out by the newer", before)
	u.install(binary)
	u.must(older, "uninstall", "--yes", "--purge")
	u.same("enabled by the newer, taken out by the older", before)
}

// serve runs the user's proxy until the returned function is called.
func (u *userHome) serve(program, address string) (stop func()) {
	u.t.Helper()
	cmd := u.command(program, "proxy")
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // between looks at another process
		res, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			u.t.Fatalf("%s proxy is not ready: %v", program, err)
		}
	}
	return func() {
		u.t.Helper()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			u.t.Errorf("%s proxy ended with %v", program, err)
		}
	}
}
