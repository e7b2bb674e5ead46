// Package ahead starts the first worker before its supervisor has started
// itself. A program of this size takes most of its start to initialise its
// libraries; `agentop proxy` needs two processes, which do that beside each
// other and not one after the other (docs/performance.md).
//
// Packages are initialised in the order of their import paths once what they
// import is (release notes of Go 1.21), so this one, which imports next to
// nothing, comes before nearly all others. In another order it would only be
// slower.
//
// The worker that is ahead touches nothing: it waits for its supervisor's first
// word, and ends without one when the link to it ends. The other end of that
// is the supervisor's alone, so that also a killed one leaves nobody behind.
package ahead

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

// WorkerFlag is the hidden flag of `agentop proxy` that makes it a worker.
const WorkerFlag = "worker"

// The command lines of a supervisor, and of a worker.
var (
	Proxy  = []string{"proxy"}
	Worker = []string{"proxy", "--" + WorkerFlag}
)

// StateEnv carries the supervisor's state to the image that takes its place.
const StateEnv = "AGENTOP_SUPERVISOR_STATE"

// The descriptors that a worker is born with: the link, and then sockets.
const (
	LinkFD   = 3
	SocketFD = 4
)

// Process is a worker's process, and this end of the link to it.
type Process struct {
	PID  int
	Link int
}

// first is the worker that waits for Take or Drop.
var first *Process

func init() {
	if len(os.Args) == 0 || !slices.Equal(os.Args[1:], Proxy) {
		return
	}
	// A renewed supervisor has its workers; a service manager's sockets would
	// get into this one.
	if os.Getenv(StateEnv) != "" || os.Getenv("LISTEN_FDS") != "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	if p, err := Start(self, append(os.Args[:1:1], Worker...), nil); err == nil {
		first = &p
	}
}

// Take gives the worker that was started ahead to its supervisor, once. It
// runs this process's image. The sockets must be sent to it.
func Take() (Process, bool) {
	p := first
	first = nil
	if p == nil {
		return Process{}, false
	}
	return *p, true
}

// Drop ends the worker that was started ahead, if nobody took it.
func Drop() {
	p, found := Take()
	if !found {
		return
	}
	_ = syscall.Close(p.Link)
	_ = syscall.Kill(p.PID, syscall.SIGKILL) // not later than its supervisor
	_, _ = syscall.Wait4(p.PID, nil, 0, nil)
}

// Start starts a worker. Its descriptors: 0 is /dev/null, 1 and 2 are this
// process's, then come the link and the sockets.
func Start(path string, argv []string, sockets []int) (Process, error) {
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, err
	}
	defer syscall.Close(null)
	ours, theirs, err := Pair()
	if err != nil {
		return Process{}, err
	}
	defer syscall.Close(theirs)
	files := []uintptr{uintptr(null), 1, 2, uintptr(theirs)}
	for _, fd := range sockets {
		files = append(files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: environment(os.Environ()), Files: files})
	if err != nil {
		_ = syscall.Close(ours)
		return Process{}, err
	}
	return Process{PID: pid, Link: ours}, nil
}

// Pair makes both ends of a link, of which no child inherits any by itself.
func Pair() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return -1, -1, err
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	return fds[0], fds[1], nil
}

// environment leaves out what speaks to the supervisor alone.
func environment(env []string) []string {
	var kept []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		switch name {
		case "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID", StateEnv:
		default:
			kept = append(kept, pair)
		}
	}
	return kept
}
