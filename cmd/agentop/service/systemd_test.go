//go:build linux

package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/fakeserver"
)

// insideEnv is set in the copy of the test that runs in namespaces of its own.
const insideEnv = "AGENTOP_TEST_INSIDE"

// TestRealSystemd installs the service into a real user manager, which runs in
// a private mount namespace with a /run of its own: the units' lives, their
// hand-over, a killed worker, a killed supervisor, the second copy, stop, start
// and uninstall.
func TestRealSystemd(t *testing.T) {
	if os.Getenv(insideEnv) != "" {
		inside(t)
		return
	}
	testkit.Need(t, "unshare", "systemctl", "systemd", "go")
	if os.Getuid() != 0 || !missing("/run/systemd/system") && os.Getenv("AGENTOP_TEST_FULL") == "" {
		// A user manager makes control groups, which only root may do and which
		// belong to somebody where systemd is in charge.
		fmt.Printf("skipped %s: it wants root in a container without systemd, or AGENTOP_TEST_FULL\n", t.Name())
		t.Skip("no place for a user manager")
	}
	dir := t.TempDir()
	if err := testkit.Build(filepath.Join(dir, "agentop-1")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", self, "-test.run=^TestRealSystemd$", "-test.v")
	cmd.Env = append(os.Environ(), insideEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// session is a user's login in the namespace.
type session struct {
	t       *testing.T
	user    string
	env     []string
	address string
}

// sh runs a command as the user and returns what it printed.
func (s *session) sh(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // used in cleanups too
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s *session) must(args ...string) string {
	s.t.Helper()
	out, err := s.sh(args...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *session) agentop(args ...string) string {
	s.t.Helper()
	return s.must(append([]string{filepath.Join(s.user, "bin", "agentop")}, args...)...)
}

func (s *session) pid() int {
	s.t.Helper()
	pid, err := strconv.Atoi(s.must("systemctl", "--user", "show", serviceName, "--property=MainPID", "--value"))
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// answers asks once, on a fresh connection.
func (s *session) answers() error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	res, err := client.Get("http://" + s.address + "/-/ready")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}

func (s *session) mustAnswer(what string) {
	s.t.Helper()
	if err := s.answers(); err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

// login starts a user manager with a home of its own.
func login(t *testing.T, dir string) *session {
	t.Helper()
	address, err := fakeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, user: filepath.Join(dir, "user"), address: address}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/run/systemd/system", "/run/user/0", filepath.Join(s.user, ".agentop"), filepath.Join(s.user, "bin")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf("listen: %s\n", s.address)
	err = errors.Join(os.WriteFile(filepath.Join(s.user, ".agentop", "config.yaml"), []byte(config), 0o600),
		os.Symlink(filepath.Join(dir, "agentop-1"), filepath.Join(s.user, "bin", "agentop")))
	if err != nil {
		t.Fatal(err)
	}
	s.env = []string{"HOME=" + s.user, "XDG_RUNTIME_DIR=/run/user/0", "PATH=" + os.Getenv("PATH"), "LANG=C"}
	manager := exec.Command("/lib/systemd/systemd", "--user")
	manager.Env = s.env
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := s.sh("systemctl", "--user", "status", "--full", serviceName)
			log, _ := os.ReadFile(filepath.Join(s.user, ".agentop", "log", "proxy.log"))
			t.Logf("%s\nits log:\n%s", said, log)
		}
		_, _ = s.sh("systemctl", "--user", "exit")
		_ = manager.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // between looks
		if _, err := s.sh("systemctl", "--user", "show", "--property=Version"); err == nil {
			return s
		}
		if time.Now().After(end) {
			t.Fatal("the user manager does not answer")
		}
	}
}

func inside(t *testing.T) {
	dir := os.Getenv(insideEnv)
	s := login(t, dir)
	before := listing(t, s.user)
	s.agentop("service", "install")
	s.mustAnswer("after install")
	if out := s.agentop("service", "install"); !strings.Contains(out, "nothing to change") {
		t.Errorf("a second install: %s", out)
	}
	first := s.pid()
	s.agentop("service", "restart")
	s.must("systemctl", "--user", "reload", serviceName)
	s.mustAnswer("after a reload")
	if out, err := s.sh(filepath.Join(s.user, "bin", "agentop"), "proxy"); err == nil || !strings.Contains(out, fmt.Sprintf("process %d", first)) {
		t.Errorf("a second copy: %v, %s", err, out)
	}
	if s.pid() != first {
		t.Errorf("process %d, want still %d", s.pid(), first)
	}

	// A killed supervisor is started again; the port never refuses.
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.mustAnswer("while the supervisor is started again")
	second := s.pid()
	for end := time.Now().Add(time.Minute); second == first || second == 0; second = s.pid() {
		if time.Now().After(end) {
			t.Fatalf("process %d after process %d was killed", second, first)
		}
		time.Sleep(50 * time.Millisecond) // between looks
	}
	s.mustAnswer("by the next supervisor")

	// An upgrade moves the link and deletes what it led to.
	data, err := os.ReadFile(filepath.Join(dir, "agentop-1"))
	link := filepath.Join(s.user, "bin", "agentop")
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "agentop-2"), data, 0o700), os.Remove(link),
		os.Symlink(filepath.Join(dir, "agentop-2"), link), os.Remove(filepath.Join(dir, "agentop-1")))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // between looks
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", second)); filepath.Base(exe) == "agentop-2" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the supervisor did not execute the new program")
		}
	}
	s.mustAnswer("after the upgrade")
	if restarts := s.must("systemctl", "--user", "show", serviceName, "--property=NRestarts", "--value"); restarts != "1" {
		t.Errorf("systemd restarted it %s times, want once, for the kill", restarts)
	}

	s.agentop("service", "stop")
	if s.answers() == nil {
		t.Error("it answers after a stop")
	}
	s.agentop("service", "start")
	s.mustAnswer("after a start")
	s.agentop("service", "uninstall")
	if s.answers() == nil {
		t.Error("it answers after uninstall")
	}
	if after := listing(t, s.user); after != before {
		t.Errorf("after uninstall there is\n%s\nwant\n%s", after, before)
	}
}

// listing is the names under the user's directory, without agentop's own.
func listing(t *testing.T, user string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(user, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Name() == ".agentop" {
			return filepath.SkipDir
		}
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}
