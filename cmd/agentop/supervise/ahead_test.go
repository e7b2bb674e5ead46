package supervise

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/supervise/ahead"
)

// proxyProcess is `agentop proxy` in a role; it starts a worker ahead.
func proxyProcess(t *testing.T, role string, dir home.Home, address string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], ahead.Proxy...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, home.EnvName+"="+dir.String(), "AGENTOP_TEST_ADDRESS="+address)
	return cmd
}

// started is a process with what it prints. Everybody it has started has the
// other end of that, so its end is everybody's end.
func started(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return bufio.NewReader(out)
}

// The first worker is the one that was started ahead, and serves on sockets
// that it has not inherited; those after it are started as they are needed.
func TestFirstWorkerIsTheOneThatIsAhead(t *testing.T) {
	b := &bench{t: t, dir: home.Home(t.TempDir()), address: freeAddress(t)}
	started(t, proxyProcess(t, "supervisor", b.dir, b.address))
	b.open()
	if got, want := b.until("/arguments", ok), fmt.Sprint(ahead.Worker); got != want {
		t.Errorf("the first worker was started with %s, want %s", got, want)
	}
	first := pidOf(t, b.until("/pid", ok))
	if status, body := b.get("/restart"); status != 200 {
		t.Fatalf("restart: %d %s", status, body)
	}
	b.until("/pid", func(status int, body string) bool { return status == 200 && pidOf(t, body) != first })
	if got, want := b.until("/arguments", ok), fmt.Sprint(testOptions(b.dir, b.address, nil).Command); got != want {
		t.Errorf("the second worker was started with %s, want %s", got, want)
	}
}

func TestWorkerThatIsAheadEndsWithItsSupervisor(t *testing.T) {
	cmd := proxyProcess(t, "starting", home.Home(t.TempDir()), "")
	out := started(t, cmd)
	if line, err := out.ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
		t.Errorf("the worker says %q, %v, want nothing and its end", rest, err)
	}
}

func TestSupervisorThatMustNotStartLeavesNoWorker(t *testing.T) {
	dir := home.Home(t.TempDir())
	l, _, err := takeLock(dir, Holder{PID: 77, Version: "first"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	out, err := io.ReadAll(started(t, proxyProcess(t, "supervisor", dir, freeAddress(t))))
	want := (&HeldError{Holder{PID: 77, Version: "first"}}).Error() + "\n"
	if err != nil || string(out) != want {
		t.Errorf("the processes say %q, %v, want %q", out, err, want)
	}
}

func TestOtherCommandLinesStartNothingAhead(t *testing.T) {
	for name, change := range map[string]func(*exec.Cmd){
		"help":              func(c *exec.Cmd) { c.Args = append(c.Args, "--help") },
		"a worker":          func(c *exec.Cmd) { c.Args = append(c.Args[:1], "worker") },
		"another image":     func(c *exec.Cmd) { c.Env = append(c.Env, ahead.StateEnv+"={}") },
		"socket activation": func(c *exec.Cmd) { c.Env = append(c.Env, "LISTEN_FDS=1") },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := proxyProcess(t, "taking", home.Home(t.TempDir()), "")
			change(cmd)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "none is ahead\n" {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

func TestLinkCarriesDescriptors(t *testing.T) {
	a, fd := newPair(t)
	defer a.close()
	b, err := newLink(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sent, err := duplicate(listener.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(sent)
	if err := a.send(message{Kind: kindHello, Ended: strings.Repeat("x", 3<<10)}, sent, sent); err != nil {
		t.Fatal(err)
	}
	m, fds, err := b.receiveFirst()
	if err != nil || m.Kind != kindHello || len(m.Ended) != 3<<10 || len(fds) != 2 {
		t.Fatalf("got a message of kind %q, descriptors %v, %v", m.Kind, fds, err)
	}
	for _, fd := range fds {
		l, err := listenerOf(fd)
		if err != nil || l.Addr().String() != listener.Addr().String() {
			t.Errorf("descriptor %d: %v, want a listener on %v", fd, err, listener.Addr())
			continue
		}
		_ = l.Close()
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d would be inherited: flags %d, %v", fd, flags, err)
		}
		_ = syscall.Close(fd)
	}
}

// What a supervisor is told by its environment is no matter of its workers.
func TestWorkerEnvironment(t *testing.T) {
	t.Setenv(roleEnv, "environment")
	for _, name := range []string{"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", ahead.StateEnv} {
		t.Setenv(name, "of the supervisor")
	}
	t.Setenv("AGENTOP_TEST_KEPT", "b=c")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := ahead.Start(os.Args[0], []string{os.Args[0]}, []int{int(w.Fd())})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(p.Link)
	defer func() { _, _ = syscall.Wait4(p.PID, nil, 0, nil) }()
	got, err := io.ReadAll(r)
	if err != nil || bytes.Contains(got, []byte("of the supervisor")) || !bytes.Contains(got, []byte("AGENTOP_TEST_KEPT=b=c\n")) {
		t.Errorf("got %q, %v", got, err)
	}
}
