package simulation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/control"
	"agentop/router/fakeserver"
)

// program is the built agentop, reached over TCP.
type program struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
	said   *os.File
	gone   atomic.Bool
}

// build makes the program, once for all tests; TestMain removes its folder.
var build = sync.OnceValues(func() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "agentop-program-"); err != nil {
		return "", err
	}
	if err := testkit.Build(filepath.Join(folder, "agentop")); err != nil {
		return folder, err
	}
	built.Store(folder)
	return folder, nil
})

// built is the program's folder; empty until there is one.
var built atomic.Value

// withProgram makes a world whose proxy is the built program, in real time.
func withProgram(t *testing.T, seed uint64) *world {
	t.Helper()
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, "agentop")
	home := scratch(t)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	w := newWorld(seed, home, options{})
	w.calm = true
	for _, s := range w.servers {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
	}
	address, err := fakeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	inForce := ""
	w.apply = func(yaml string) error {
		if yaml = "listen: " + address + "\n" + yaml; yaml == inForce {
			return nil
		}
		if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(yaml), 0o600); err != nil {
			return err
		}
		inForce = yaml
		if w.proxy == nil || w.proxy.dead() {
			return nil
		}
		return w.untilInForce(home)
	}
	w.start = func() (proxy, error) { return startProgram(binary, home, address) }
	t.Cleanup(func() {
		if w.proxy != nil {
			w.proxy.die()
		}
		if said, err := os.ReadFile(filepath.Join(home, "said")); t.Failed() && err == nil {
			t.Logf("the program said:\n%s", said)
		}
	})
	return w
}

// patience is how long the program may take for what it does at once.
const patience = 30 * time.Second

// untilInForce waits until the running program has read its configuration.
func (w *world) untilInForce(home string) error {
	c := control.Dial(home)
	defer c.Close()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		status, err := c.Status(context.Background())
		if err != nil {
			if w.proxy.dead() {
				return nil
			}
			continue
		}
		same := len(status.Servers) == len(places) || w.removed != "" && len(status.Servers) == len(places)-1
		for _, a := range status.Agents {
			same = same && a.Server == w.choice(a.Agent)
		}
		for _, s := range status.Servers {
			same = same && s.Name != w.removed
		}
		if same {
			return nil
		}
	}
	return fmt.Errorf("the configuration is not in force after %s", patience)
}

func startProgram(binary, home, address string) (proxy, error) {
	said, err := os.OpenFile(filepath.Join(home, "said"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &program{
		cmd: exec.Command(binary, "proxy"), url: "http://" + address, said: said,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	p.cmd.Env = append(os.Environ(), "AGENTOP_HOME="+home)
	p.cmd.Stdout, p.cmd.Stderr = said, said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if res, err := http.Get(p.url + "/-/ready"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return p, nil
			}
		}
	}
	p.die()
	return nil, fmt.Errorf("the program is not ready after %s", patience)
}

func (p *program) dead() bool { return p.gone.Load() }

func (p *program) end(signal syscall.Signal, group bool) {
	pid := p.cmd.Process.Pid
	if group {
		pid = -pid
	}
	_ = syscall.Kill(pid, signal) // it may be gone
}

// die kills the supervisor and its worker at the same moment.
func (p *program) die() {
	if p.cmd.ProcessState != nil {
		return
	}
	p.gone.Store(true)
	p.end(syscall.SIGKILL, true)
	_ = p.cmd.Wait() // killed
	_ = p.said.Close()
}

func (p *program) stop() error {
	p.gone.Store(true)
	p.end(syscall.SIGTERM, false)
	err := p.cmd.Wait()
	_ = p.said.Close()
	return err
}

// arm kills the program after a moment that is about as long as its steps.
func (p *program) arm(steps int) {
	time.AfterFunc(time.Duration(steps)*100*time.Microsecond, func() {
		p.gone.Store(true)
		p.end(syscall.SIGKILL, true)
	})
}

func (p *program) pinned(string, string) (has, known bool) { return false, false }

func (p *program) request(method, path, body string, h http.Header, written func([]byte)) result {
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the simulation's own paths
	}
	req.Header = h
	res, err := p.client.Do(req)
	if err != nil {
		return result{cut: true}
	}
	defer res.Body.Close()
	var got bytes.Buffer
	buf := make([]byte, 4096)
	for {
		n, err := res.Body.Read(buf)
		got.Write(buf[:n])
		if written != nil && n > 0 {
			written(got.Bytes())
		}
		if err != nil {
			return result{res.StatusCode, res.Header, got.Bytes(), err != io.EOF}
		}
	}
}

// TestNeverMovedByTheProgram is the simulation in real time, against the built
// program. AGENTOP_SIMULATION_PROGRAM says for how many events; without it, a
// few happen.
func TestNeverMovedByTheProgram(t *testing.T) {
	events := setting("AGENTOP_SIMULATION_PROGRAM", 40)
	seed := uint64(setting("AGENTOP_SIMULATION_SEED", int(time.Now().UnixNano()%1_000_000_000)))
	w := withProgram(t, seed)
	for i, op := range plan(seed, events) {
		if err := w.run(op); err != nil {
			t.Fatalf("seed %d, operation %d (%s): %v", seed, i, op.kind, err)
		}
		if broken := w.broken(); len(broken) > 0 {
			t.Fatalf("seed %d, operation %d (%s): %s", seed, i, op.kind, broken[0])
		}
	}
	t.Logf("seed %d\n%s", seed, w.judge.tally.table())
}

// The history is wired to the router in the real program: without its pins it
// brings every conversation home from the log.
func TestPredecessor_15_TheProgramGoesHomeByItsLog(t *testing.T) {
	w := withProgram(t, 15)
	for _, agent := range agentNames {
		w.choose(agent, "s1")
	}
	if err := w.apply(w.yaml()); err != nil {
		t.Fatal(err)
	}
	for i := range clients {
		c := w.open(&clients[i])
		for range 2 {
			if !w.say(c, opened) {
				t.Fatalf("%s got no reply", c.client.name)
			}
		}
	}
	if err := w.proxy.stop(); err != nil { // a kill may come before the last line is written
		t.Fatal(err)
	}
	if err := os.Remove(w.pinFile()); err != nil {
		t.Fatal(err)
	}
	for _, agent := range agentNames {
		w.choose(agent, "s3")
	}
	if err := w.apply(w.yaml()); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.convs {
		if !w.say(c, pinsLost) || c.last() != "s1" {
			t.Errorf("%s: its last reply was made by %s, want s1", c.client.name, c.last())
		}
	}
	if broken := w.broken(); len(broken) > 0 {
		t.Error(broken[0])
	}
}
