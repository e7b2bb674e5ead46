package screen

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/fakeserver"
)

// binary is the agentop that all tests run, built once from this tree.
var binary string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "agentop-screen-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "agentop")
	if err := testkit.Build(binary); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// patience is how long a test waits for what takes a moment on an idle machine.
const patience = time.Minute

// stage is one agentop home with its proxy and two configured servers, a and
// b; Claude Code begins on a.
type stage struct {
	t       *testing.T
	home    string
	address string
	proxy   *exec.Cmd

	mu   sync.Mutex
	held chan struct{} // answers wait in their middle until it is closed; nil = none does
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, home: shortHome(t)}
	var urls []string
	for _, name := range []string{"a", "b"} {
		server := fakeserver.New(fakeserver.Options{Name: name, Script: func(*fakeserver.Record) fakeserver.Behaviour {
			s.mu.Lock()
			defer s.mu.Unlock()
			held := s.held
			return fakeserver.Behaviour{Events: 6, TextBytes: 240, Gate: func(event int) {
				if event == 3 && held != nil {
					<-held
				}
			}}
		}})
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		urls = append(urls, server.URL())
	}
	var err error
	if s.address, err = fakeserver.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("listen: %s\nservers:\n  a: {url: %s, key: none}\n  b: {url: %s, key: none}\nagents:\n"+
		"  claude-code: {server: a, upstream: none}\n", s.address, urls[0], urls[1])
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.home, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// shortHome is a home whose socket's path is short enough.
func shortHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ao")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "h")
}

// hold makes every answer that begins from now on wait in its middle until end
// is called. Those that begin after flow was called do not wait.
func (s *stage) hold() (flow, end func()) {
	held := make(chan struct{})
	set := func(c chan struct{}) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = c
	}
	set(held)
	return func() { set(nil) }, sync.OnceFunc(func() { close(held) })
}

// start runs the proxy and returns when it serves.
func (s *stage) start() {
	s.t.Helper()
	s.proxy = exec.Command(binary, "proxy")
	s.proxy.Env = append(os.Environ(), "AGENTOP_HOME="+s.home)
	s.proxy.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.proxy.Start(); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for {
		res, err := http.Get("http://" + s.address + "/-/ready")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the proxy is not ready: %v", err)
		}
		time.Sleep(10 * time.Millisecond) // between polls of another process
	}
}

// kill ends the proxy, and whatever it has started, as a crash would.
func (s *stage) kill() {
	if s.proxy != nil {
		_ = syscall.Kill(-s.proxy.Process.Pid, syscall.SIGKILL)
		_ = s.proxy.Wait()
		s.proxy = nil
	}
}

// agentop runs one command and returns what it printed.
func (s *stage) agentop(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "AGENTOP_HOME="+s.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("agentop %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
