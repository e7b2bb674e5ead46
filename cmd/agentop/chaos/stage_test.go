//go:build linux

package chaos

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentop/router/control"
	"agentop/router/fakeserver"
)

// patience is how long a test waits for what takes a moment on an idle machine.
const patience = time.Minute

// account is whom the proxy runs as where the test is root: one whose rights
// end at a directory's mode.
const account = 65534

var (
	binary string // of agentop, built from this tree
	scene  string // a directory that every account may enter
)

func TestMain(m *testing.M) {
	if words := os.Getenv(limitEnv); words != "" {
		if err := limitOther(words); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	if scene, err = os.MkdirTemp("", "agentop-chaos-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(scene)
	if err := os.Chmod(scene, 0o755); err != nil {
		return 1, err
	}
	binary = filepath.Join(scene, "agentop")
	if err := build(binary); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func build(to string, args ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-o", to}, args...), "agentop/cmd/agentop")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build agentop: %w\n%s", err, out)
	}
	return os.Chmod(to, 0o755)
}

// stage is one home with its proxy and three servers.
type stage struct {
	t         *testing.T
	seed      uint64
	home      string
	mount     bool // home is a small file system of its own
	binary    string
	address   string
	listener  *os.File // the listening socket, which outlives the proxy as a socket unit's does
	env       []string
	servers   map[string]*fakeserver.Server
	script    atomic.Pointer[func(server string, rec *fakeserver.Record) fakeserver.Behaviour]
	witness   *witness
	proxy     *exec.Cmd
	log       *os.File
	transport *http.Transport
	control   *control.Client
	choice    string

	tracer  *exec.Cmd      // that makes syncs fail
	jumped  int            // how often the clock did
	limited int            // whose descriptors are few
	seen    control.Status // the last one, for a failed test
}

// newStage starts the servers and a proxy in a fresh home.
func newStage(t *testing.T, o stageOptions) *stage {
	t.Helper()
	s := &stage{
		t: t, seed: uint64(time.Now().UnixNano()), binary: binary, env: o.env, servers: map[string]*fakeserver.Server{},
		witness: &witness{seen: map[string]map[string]bool{}}, choice: "a",
	}
	if o.binary != nil {
		var err error
		if s.binary, err = o.binary(); err != nil {
			t.Fatal(err)
		}
	}
	s.transport = &http.Transport{MaxIdleConnsPerHost: 64}
	s.makeHome(o.size)
	for _, name := range []string{"a", "b", "own"} {
		server := fakeserver.New(fakeserver.Options{
			Name: name, KeepRecords: -1,
			OnRequest: func(rec *fakeserver.Record) { s.witness.note(name, rec) },
			Script:    func(rec *fakeserver.Record) fakeserver.Behaviour { return s.behave(name, rec) },
		})
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		s.servers[name] = server
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	if s.listener, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // the file is another descriptor of the socket
	if s.log, err = os.Create(filepath.Join(t.TempDir(), "proxy.out")); err != nil {
		t.Fatal(err)
	}
	s.write("config.yaml", s.config())
	t.Cleanup(s.end)
	s.start()
	return s
}

// stageOptions are what stages differ in.
type stageOptions struct {
	size   string                 // of the home's own file system, such as 8m; "" for none
	env    []string               // of the proxy
	binary func() (string, error) // nil for agentop as it is
}

// makeHome makes the home directory, on a small file system if one is asked for.
func (s *stage) makeHome(size string) {
	dir, err := os.MkdirTemp(scene, "home-")
	if err != nil {
		s.t.Fatal(err)
	}
	s.home = dir
	if size != "" {
		options := fmt.Sprintf("size=%s,mode=0700,uid=%d,gid=%d", size, account, account)
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			s.t.Fatal(err)
		}
		s.mount = true
	}
	s.own(dir)
}

// own gives a file to the proxy's account.
func (s *stage) own(path string) {
	if os.Getuid() == 0 {
		if err := os.Lchown(path, account, account); err != nil {
			s.t.Fatal(err)
		}
	}
}

// asAccount makes a program run as the proxy's account.
func (s *stage) asAccount(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: account, Gid: account}
	}
}

// end stops everything; of a failed test it shows what the proxy said.
func (s *stage) end() {
	s.kill()
	_ = s.listener.Close()
	_ = s.log.Close()
	if s.t.Failed() {
		said, _ := os.ReadFile(s.log.Name())
		log, _ := os.ReadFile(filepath.Join(s.home, "log", "proxy.log"))
		s.t.Logf("status: %+v", s.seen)
		s.t.Logf("the proxy said:\n%s\nits log ends:\n%s", tail(said, 4000), tail(log, 6000))
	}
	if s.mount {
		_ = unix.Unmount(s.home, unix.MNT_DETACH)
	}
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// behave is how a server answers: as the fault says, else like a model that
// takes its time.
func (s *stage) behave(server string, rec *fakeserver.Record) fakeserver.Behaviour {
	if f := s.script.Load(); f != nil {
		return (*f)(server, rec)
	}
	return plain()
}

func plain() fakeserver.Behaviour { return fakeserver.Behaviour{Interval: 2 * time.Millisecond} }

func (s *stage) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nservers:\n  a: {url: %s, key: none}\n  b: {url: %s, key: none}\nagents:\n", s.address, s.servers["a"].URL(), s.servers["b"].URL())
	for i := range clients {
		fmt.Fprintf(&b, "  %s: {server: %s, upstream: %s}\n", clients[i].agent, s.choice, s.servers["own"].URL())
	}
	return b.String()
}

// write replaces a file of the home, as an editor does.
func (s *stage) write(name, text string) {
	s.t.Helper()
	temp := filepath.Join(s.home, ".edit")
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.own(temp)
	if err := os.Rename(temp, filepath.Join(s.home, name)); err != nil {
		s.t.Fatal(err)
	}
}

// switchOver chooses the other server for all agents' new conversations, as a
// person would in config.yaml; a fault may keep it from being written.
func (s *stage) switchOver() {
	s.choice = map[string]string{"a": "b", "b": "a"}[s.choice]
	temp := filepath.Join(s.home, ".edit")
	if os.WriteFile(temp, []byte(s.config()), 0o600) != nil {
		return
	}
	s.own(temp)
	_ = os.Rename(temp, filepath.Join(s.home, "config.yaml"))
}

// start runs the proxy with the socket of the stage, as systemd does, and
// returns when it is ready.
func (s *stage) start() {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" proxy`, s.binary)
	cmd.Env = append(append(os.Environ(), "AGENTOP_HOME="+s.home, "LISTEN_FDS=1", "HOME="+s.home), s.env...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = s.log, s.log, []*os.File{s.listener}
	s.asAccount(cmd)
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.proxy = cmd
	s.control = control.Dial(s.home)
	s.until("the proxy is ready", patience, func() bool { _, ok := s.status(); return ok })
}

// kill ends the supervisor and its workers as a power cut would.
func (s *stage) kill() {
	if s.proxy == nil {
		return
	}
	_ = syscall.Kill(-s.proxy.Process.Pid, syscall.SIGKILL)
	_ = s.proxy.Wait()
	s.proxy = nil
}

// status asks the running proxy.
func (s *stage) status() (control.Status, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	st, err := s.control.Status(ctx)
	return st, err == nil
}

// worker is the process that serves.
func (s *stage) worker() int {
	st, ok := s.status()
	if !ok {
		s.t.Fatal("the proxy does not tell its status")
	}
	return st.PID
}

// until waits for something that another process does.
func (s *stage) until(what string, limit time.Duration, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			s.t.Errorf("waited %s in vain: %s", limit, what)
			return
		}
		time.Sleep(10 * time.Millisecond) // between looks at another process
	}
}

// openFiles is the number of descriptors of a process.
func openFiles(pid int) int {
	entries, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	return len(entries)
}
