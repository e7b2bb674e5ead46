package credential

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/config"
)

// TestKeychainOfARealSecretService keeps, changes and forgets a key in a
// keychain as Linux desktops have it: this test runs itself in a D-Bus session
// of its own, with a keyring in a scratch home that no other program sees.
func TestKeychainOfARealSecretService(t *testing.T) {
	if os.Getenv("AGENTOP_TEST_KEYCHAIN") == "1" {
		inKeychain(t)
		return
	}
	testkit.Need(t, "dbus-run-session", "gnome-keyring-daemon")
	home, err := os.MkdirTemp("/tmp", "ao") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The daemon says that the keyring is open by ending its first process.
	const script = `printf fake-password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1 && exec "$0" -test.run='^TestKeychainOfARealSecretService$' -test.count=1 -test.v`
	cmd := exec.CommandContext(ctx, "dbus-run-session", "--", "/bin/sh", "-c", script, os.Args[0])
	cmd.Env = append(os.Environ(), "AGENTOP_TEST_KEYCHAIN=1", "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_DATA_HOME="+filepath.Join(home, "share"), "XDG_CACHE_HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestKeychainOfARealSecretService") {
		t.Fatalf("%v: %s", err, out)
	}
}

func inKeychain(t *testing.T) {
	r, path := resolver(t)
	ctx, s := t.Context(), server(config.KeyKeychain)
	expectError(t, "nothing there", keyError(r, s), "has no key for it", "agentop server add glm URL --keychain")
	for _, key := range []string{planted, "sk-fake-rotated"} {
		if err := r.Store(ctx, "glm", config.KeyKeychain, NewSecret(key)); err != nil {
			t.Fatal(err)
		}
		expect(t, "kept", r, s, key)
		expect(t, "to another process", NewResolver(path), s, key)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("keys.json was written too: %v", err)
	}
	if err := r.Remove(ctx, "glm", config.KeyKeychain); err != nil {
		t.Error(err)
	}
	expectError(t, "removed", keyError(r, s), "has no key for it")
}
