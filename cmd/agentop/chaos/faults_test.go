//go:build linux

package chaos

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentop/router/control"
	"agentop/router/fakeserver"
)

func savesFail(st control.Status) bool   { return st.Store.Error != "" }
func configFails(st control.Status) bool { return st.ConfigError != "" }

// serversFail says whether status tells of a server that does not do well.
func serversFail(st control.Status) bool {
	return slices.ContainsFunc(st.Servers, func(s control.Server) bool { return s.Health.State == "failing" || s.Health.State == "down" })
}

// faults is the campaign. Nothing is combined: each row tells one fault alone.
// Those that are brief are in the short form too.
func faults() []*fault {
	list := []*fault{
		{name: "nothing", brief: true, begin: nothing, end: nothing},
		{name: "disk full", brief: true, needs: mounting, stage: stageOptions{size: "16m"}, begin: (*stage).fill, end: (*stage).unfill, told: savesFail},
		{name: "fsync fails", needs: tracing, begin: (*stage).failSync, end: (*stage).mendSync, told: savesFail},
		{name: "directory read-only", brief: true, begin: (*stage).closeDir, end: (*stage).openDir, told: savesFail},
		{name: "pins.json truncated", begin: func(s *stage) { s.truncate("pins.json") }, end: nothing},
		{name: "pins.json replaced by garbage", brief: true, begin: func(s *stage) { s.write("pins.json", "\x00\x01{") }, end: nothing},
		{name: "pins.json replaced by an older copy", begin: (*stage).oldPins, end: nothing},
		{name: "pins.json deleted", begin: func(s *stage) { s.remove("pins.json") }, end: nothing},
		{name: "request log deleted", begin: func(s *stage) { s.remove("log/requests-*.jsonl") }, end: nothing},
		{name: "request log truncated", begin: func(s *stage) { s.truncate("log/requests-*.jsonl") }, end: nothing},
		{name: "log directory deleted", begin: func(s *stage) { s.remove("log") }, end: nothing},
		{name: "control socket deleted", begin: func(s *stage) { s.remove("agentop.sock") }, end: nothing},
		{name: "config.yaml half-written", brief: true, begin: (*stage).halfConfig, end: (*stage).wholeConfig, told: configFails},
		{name: "config.yaml deleted", begin: func(s *stage) { s.remove("config.yaml") }, end: (*stage).wholeConfig},
		{name: "clock jumps", stage: stageOptions{binary: skewedBinary, env: []string{clockFile + "=" + filepath.Join(scene, "clock")}}, begin: (*stage).jump, end: (*stage).jumpBack},
		{name: "descriptors run out", brief: true, begin: (*stage).fewFiles, end: (*stage).manyFiles, loud: true},
		{name: "memory limited", stage: stageOptions{env: []string{"GOMEMLIMIT=48MiB"}}, begin: func(s *stage) { s.big(4) }, end: nothing},
		{name: "worker killed", brief: true, begin: (*stage).killWorker, end: nothing, loud: true},
		{name: "supervisor killed", begin: (*stage).killSupervisor, end: (*stage).start, loud: true},
		{name: "both killed", brief: true, begin: (*stage).kill, end: (*stage).start, loud: true},
		{name: "restarted", brief: true, begin: (*stage).restart, end: nothing},
		{name: "second proxy on the same home", begin: (*stage).second, end: nothing},
	}
	for name, behave := range map[string]func(*fakeserver.Record) fakeserver.Behaviour{
		"servers hang": hang, "servers reset": cut(fakeserver.CutReset), "servers end answers early": cut(fakeserver.CutTidy),
		"servers lie about the length": lie, "servers speak no HTTP": babble, "servers answer 5xx": broken, "servers hang up": hangUp,
	} {
		list = append(list, &fault{name: name, brief: name == "servers reset", begin: script(behave), end: plainAgain, told: serversFail, loud: true})
	}
	list = append(list, &fault{name: "servers are slow", begin: script(slow), end: plainAgain})
	slices.SortStableFunc(list[len(list)-8:], func(a, b *fault) int { return strings.Compare(a.name, b.name) })
	return list
}

func nothing(*stage) {}

func mounting() string {
	if os.Getuid() != 0 {
		return "only root can mount a small file system"
	}
	dir, err := os.MkdirTemp(scene, "mount-")
	if err != nil {
		return err.Error()
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		return "a small file system cannot be mounted: " + err.Error()
	}
	_ = unix.Unmount(dir, 0)
	return ""
}

func tracing() string {
	if _, err := exec.LookPath("strace"); err != nil {
		return "strace is not installed"
	}
	return ""
}

// fill leaves no free block.
func (s *stage) fill() {
	f, err := os.OpenFile(filepath.Join(s.home, "ballast"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
}

func (s *stage) unfill() { s.remove("ballast") }

// failSync makes each sync of the worker fail, by a tracer that lets nothing
// of it through.
func (s *stage) failSync() {
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO", "-p", strconv.Itoa(s.worker()))
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.tracer = cmd
}

func (s *stage) mendSync() {
	_ = s.tracer.Process.Signal(syscall.SIGINT) // it lets the worker go
	_ = s.tracer.Wait()
}

func (s *stage) closeDir() { s.chmod(0o500) }
func (s *stage) openDir()  { s.chmod(0o700) }

func (s *stage) chmod(mode os.FileMode) {
	for _, dir := range []string{s.home, filepath.Join(s.home, "log")} {
		if err := os.Chmod(dir, mode); err != nil {
			s.t.Fatal(err)
		}
	}
}

// truncate empties files in place.
func (s *stage) truncate(pattern string) {
	for _, path := range s.match(pattern) {
		if err := os.Truncate(path, 0); err != nil {
			s.t.Fatal(err)
		}
	}
}

// oldPins puts back what pins.json was a moment ago, as a backup tool does.
func (s *stage) oldPins() {
	path := filepath.Join(s.home, "pins.json")
	old, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.until("pins.json has changed", patience, func() bool {
		text, err := os.ReadFile(path)
		return err == nil && !bytes.Equal(text, old)
	})
	s.write("pins.json", string(old))
}

func (s *stage) match(pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(s.home, pattern))
	if err != nil {
		s.t.Fatal(err)
	}
	return paths
}

func (s *stage) remove(pattern string) {
	for _, path := range s.match(pattern) {
		if err := os.RemoveAll(path); err != nil {
			s.t.Fatal(err)
		}
	}
}

// halfConfig is an editor that writes in place, and stops in the middle.
func (s *stage) halfConfig() {
	text := s.config()
	f, err := os.OpenFile(filepath.Join(s.home, "config.yaml"), os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text[:strings.Index(text, "agents:")] + "agents:\n  codex: {server: a, upstr"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) wholeConfig() { s.write("config.yaml", s.config()) }

// fewFiles leaves the worker hardly any descriptor to open.
func (s *stage) fewFiles() {
	pid := s.worker()
	s.limitFiles(pid, openFiles(pid)+2)
	s.transport.CloseIdleConnections() // no connection that is open already shall do
}

func (s *stage) manyFiles() { s.limitFiles(s.limited, 4096) }

// limitFiles sets a process's limit as the account that it runs as may.
func (s *stage) limitFiles(pid, n int) {
	s.limited = pid
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", limitEnv, pid, n))
	s.asAccount(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("limit the descriptors of %d: %v %s", pid, err, out)
	}
}

// limitEnv makes the test binary a program that limits another's descriptors.
const limitEnv = "AGENTOP_CHAOS_LIMIT"

func limitOther(words string) error {
	var pid int
	var n uint64
	if _, err := fmt.Sscan(words, &pid, &n); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = min(n, limit.Max)
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
}

// big sends n large openings at once.
func (s *stage) big(n int) {
	done := make(chan error, n)
	for i := range n {
		go func() {
			c := &talk{client: &clients[0], id: fmt.Sprintf("big-%d-%d-%d", s.seed, time.Now().UnixNano(), i)}
			_, _, err := s.send(c, []message{{"user", strings.Repeat("many words ", 1<<19)}})
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			s.t.Errorf("a large opening: %v", err)
		}
	}
}

func (s *stage) killWorker() {
	if err := syscall.Kill(s.worker(), syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// killSupervisor leaves its workers alone: they stop listening and finish what
// they have. The service manager, which has the socket, starts it anew.
func (s *stage) killSupervisor() {
	if err := syscall.Kill(s.proxy.Process.Pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	_ = s.proxy.Wait()
}

func (s *stage) restart() {
	if err := s.control.Restart(s.t.Context()); err != nil {
		s.t.Errorf("restart: %v", err)
	}
}

// second starts another proxy on the same home, which must find the first.
func (s *stage) second() {
	cmd := exec.Command(s.binary, "proxy")
	cmd.Env = append(os.Environ(), "AGENTOP_HOME="+s.home, "HOME="+s.home)
	s.asAccount(cmd)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another agentop") {
		s.t.Errorf("a second proxy: %v, %s", err, out)
	}
}

// script makes the configured servers misbehave.
func script(behave func(*fakeserver.Record) fakeserver.Behaviour) func(*stage) {
	return func(s *stage) {
		f := func(_ string, rec *fakeserver.Record) fakeserver.Behaviour { return behave(rec) }
		s.script.Store(&f)
	}
}

func plainAgain(s *stage) { s.script.Store(nil) }

// hang is silence for longer than this client waits.
func hang(*fakeserver.Record) fakeserver.Behaviour {
	return fakeserver.Behaviour{Raw: func(c net.Conn, _ *fakeserver.Record) {
		time.Sleep(700 * time.Millisecond) // the silence
		_ = c.Close()
	}}
}

func cut(how fakeserver.Cut) func(*fakeserver.Record) fakeserver.Behaviour {
	return func(*fakeserver.Record) fakeserver.Behaviour { return fakeserver.Behaviour{Cut: how, CutAfter: 3} }
}

func lie(*fakeserver.Record) fakeserver.Behaviour {
	return fakeserver.Behaviour{Status: http.StatusOK, Body: []byte("{}"), Longer: 100}
}

func babble(*fakeserver.Record) fakeserver.Behaviour {
	return fakeserver.Behaviour{Raw: func(c net.Conn, _ *fakeserver.Record) {
		_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n"))
		_ = c.Close()
	}}
}

func slow(*fakeserver.Record) fakeserver.Behaviour {
	return fakeserver.Behaviour{FirstByte: 300 * time.Millisecond, Interval: 20 * time.Millisecond}
}

func broken(rec *fakeserver.Record) fakeserver.Behaviour {
	return fakeserver.Failure(rec, http.StatusBadGateway, "api_error", "the model is gone")
}

// hangUp closes each connection before a byte of an answer.
func hangUp(*fakeserver.Record) fakeserver.Behaviour {
	return fakeserver.Behaviour{Raw: func(c net.Conn, _ *fakeserver.Record) {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a reset
		}
		_ = c.Close()
	}}
}
