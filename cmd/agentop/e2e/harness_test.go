package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/fakeserver"
)

// patience is how long a test waits for what takes a moment on an idle machine.
const patience = time.Minute

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
	dir, err := os.MkdirTemp("", "agentop-e2e-")
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

// stage is one agentop home with its proxy, two configured servers and the
// agents' own upstream.
type stage struct {
	t       *testing.T
	home    string // of agentop
	address string
	servers map[string]*fakeserver.Server
	proxy   *exec.Cmd
	log     *os.File
	seen    map[string]int // records of each server at the last mark
}

// newStage configures everything and starts the proxy. All agents begin on a.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, home: agentDir(t), servers: map[string]*fakeserver.Server{}, seen: map[string]int{}}
	for _, name := range []string{"a", "b", "own"} {
		server := fakeserver.New(fakeserver.Options{Name: name})
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		s.servers[name] = server
	}
	s.address = freeAddress(t)
	s.configure("a")
	var err error
	if s.log, err = os.Create(filepath.Join(t.TempDir(), "proxy.out")); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() {
		s.kill()
		_ = s.log.Close()
		if t.Failed() {
			t.Logf("the proxy said:\n%s", s.said())
			s.dump()
		}
	})
	return s
}

// agentDir is a directory for a real agent, or for a proxy. An agent may leave
// processes behind that write for a moment after it has ended, and so may a
// worker that was killed, which t.TempDir takes for a failure. Ask for it before
// whatever ends the agent is registered.
func agentDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentop-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		until(t, func() bool { return os.RemoveAll(dir) == nil }, "the agent's directory can be removed")
	})
	return dir
}

// configure writes config.yaml: the servers, and one choice for all agents.
func (s *stage) configure(choice string) {
	s.t.Helper()
	own := s.servers["own"].URL()
	config := fmt.Sprintf(`listen: %s
servers:
  a: {url: %s, key: none}
  b: {url: %s, key: none}
agents:
  claude-code: {server: %s, upstream: %s}
  codex: {server: %s, upstream: %s}
  opencode: {server: %s, upstream: %s}
  qwen-code: {server: %s, upstream: %s}
  script: {server: %s, upstream: %s}
`, s.address, s.servers["a"].URL(), s.servers["b"].URL(), choice, own, choice, own, choice, own, choice, own, choice, own)
	if err := os.WriteFile(filepath.Join(s.home, "config.yaml"), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// start runs the proxy and returns when it serves.
func (s *stage) start() {
	s.t.Helper()
	s.run(exec.Command(binary, "proxy"))
}

// run starts cmd, which becomes the proxy, and returns when that serves.
func (s *stage) run(cmd *exec.Cmd) {
	s.t.Helper()
	s.proxy = cmd
	s.proxy.Env = append(os.Environ(), "AGENTOP_HOME="+s.home)
	// A file and not a pipe: Wait must not wait for whoever inherited it. A
	// group of its own, so that a tracer and what it traces end together.
	s.proxy.Stdout, s.proxy.Stderr = s.log, s.log
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
			s.t.Fatalf("the proxy is not ready: %v\n%s", err, s.said())
		}
		time.Sleep(5 * time.Millisecond) // between polls of another process
	}
}

// kill ends the proxy as a crash would.
func (s *stage) kill() {
	if s.proxy == nil {
		return
	}
	_ = syscall.Kill(-s.proxy.Process.Pid, syscall.SIGKILL)
	_ = s.proxy.Wait()
	s.proxy = nil
}

// ended reports whether a process is gone, or dead and not waited for by
// whoever inherited it.
func ended(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return bytes.Contains(stat, []byte(") Z "))
	}
	return syscall.Kill(pid, 0) == syscall.ESRCH
}

// said is what the proxy has written so far.
func (s *stage) said() string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// restart kills the proxy with -9 and starts it again.
func (s *stage) restart() {
	s.t.Helper()
	s.kill()
	s.start()
}

// losePins restarts the proxy without its pins. It is stopped in good order: a
// kill might come before the last turn's line is in the log, which is what the
// pins are made from again.
func (s *stage) losePins() {
	s.t.Helper()
	if err := s.proxy.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	_ = s.proxy.Wait()
	s.kill() // what is left of its group
	if err := os.Remove(filepath.Join(s.home, "pins.json")); err != nil {
		s.t.Fatal(err)
	}
	s.start()
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

// use chooses the server of an agent's new conversations.
func (s *stage) use(agent, server string) {
	s.t.Helper()
	s.agentop("server", "use", server, "--agent", agent)
}

// base is a base URL of the proxy.
func (s *stage) base(path string) string { return "http://" + s.address + path }

// mark begins a new look at what the servers receive.
func (s *stage) mark() {
	for name, server := range s.servers {
		s.seen[name] = len(server.Records())
	}
}

// since returns the inference requests that a server got since the mark.
func (s *stage) since(name string) []*fakeserver.Record {
	var list []*fakeserver.Record
	for _, rec := range s.servers[name].Records()[s.seen[name]:] {
		if rec.Format != fakeserver.NoFormat && rec.Model != "agentop-preflight" {
			list = append(list, rec)
		}
	}
	return list
}

// expectAll asserts that every inference request since the mark went to one
// server, that there were some, and that no history holds another server's
// replies.
func (s *stage) expectAll(what, want string) {
	s.t.Helper()
	for name := range s.servers {
		got := s.since(name)
		if name == want && len(got) == 0 {
			s.t.Errorf("%s: %s got no request", what, want)
		}
		if name == "own" {
			got = s.withoutLateTitles(got, want)
		}
		if name != want && len(got) > 0 {
			s.t.Errorf("%s: %d requests went to %s, want all at %s; first: %s", what, len(got), name, want, describe(got[0]))
		}
		for _, rec := range got {
			for _, signature := range rec.History {
				if signature.Server != name {
					s.t.Errorf("%s: %s got a conversation with a reply of %s", what, name, signature.Server)
				}
			}
		}
	}
}

// withoutLateTitles drops title requests that the proxy let go to the own
// upstream because their opening came more than its 2 s later: on a slow
// machine OpenCode takes longer than that from one to the other.
func (s *stage) withoutLateTitles(got []*fakeserver.Record, want string) []*fakeserver.Record {
	var rest []*fakeserver.Record
	for _, rec := range got {
		late := bytes.Contains(rec.Plain, []byte("title generator"))
		for _, main := range s.since(want) {
			late = late && main.Time.After(rec.Time)
		}
		if !late {
			rest = append(rest, rec)
			continue
		}
		s.t.Logf("the opening came over 2 s after its title request, which went to the own upstream")
	}
	return rest
}

// expectHistory asserts that the last request since the mark at a server holds
// at least n of that server's replies: it truly continues a conversation.
func (s *stage) expectHistory(what, server string, n int) {
	s.t.Helper()
	most := 0
	for _, rec := range s.since(server) {
		most = max(most, len(rec.History))
	}
	if most < n {
		s.t.Errorf("%s: the longest history at %s holds %d replies, want %d: was it continued at all?", what, server, most, n)
	}
}

func describe(rec *fakeserver.Record) string {
	body := rec.Plain
	if len(body) > 300 {
		body = body[:300]
	}
	return fmt.Sprintf("%s %s %s %s", rec.Method, rec.Path, rec.Header.Get("User-Agent"), body)
}

// dump tells what each server got, for a failed test.
func (s *stage) dump() {
	for name, server := range s.servers {
		for _, rec := range server.Records() {
			s.t.Logf("%s got #%d %s %s model=%s stream=%v history=%v", name, rec.N, rec.Method, rec.Path, rec.Model, rec.Stream, rec.History)
		}
	}
}

// client runs one of the real agents to its end and returns what it printed.
func (s *stage) client(dir string, env []string, program string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(cleanEnv(), env...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// cleanEnv is this process's environment without what would point an agent
// elsewhere.
func cleanEnv() []string {
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name)
		if strings.HasPrefix(upper, "ANTHROPIC_") || strings.HasPrefix(upper, "CLAUDE") || strings.HasPrefix(upper, "OPENAI_") ||
			strings.HasPrefix(upper, "CODEX_") || strings.HasPrefix(upper, "OPENCODE") || strings.HasSuffix(upper, "_PROXY") ||
			strings.HasPrefix(upper, "QWEN_") || strings.HasPrefix(upper, "XDG_") || upper == "HOME" {
			continue
		}
		env = append(env, pair)
	}
	return env
}
