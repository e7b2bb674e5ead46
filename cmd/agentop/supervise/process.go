package supervise

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"agentop/router/control"
)

// The states of a worker, in the order in which it goes through them.
type state string

const (
	starting state = "starting"
	ready    state = "ready"
	draining state = "draining" // it accepts nothing more and finishes its streams
)

// worker is a process that serves, as the supervisor sees it. It belongs to
// the supervisor's loop.
type worker struct {
	pid      int
	process  *os.Process // nil if it could not be found any more
	link     *link
	state    state
	version  string
	started  time.Time
	ready    time.Time
	since    time.Time // draining
	binary   bool      // it runs what was at the stable path, not this image
	failed   message   // why it could not start, in its own words
	load     map[string]int
	streams  int
	sessions []control.Streaming
	asked    []int         // restarts that it asked for and that are not answered
	reading  chan struct{} // closed when nobody reads the link
	over     chan struct{} // closed when the link has ended
}

// event is something that a worker did.
type event struct {
	w       *worker
	message message
	exited  bool   // its process has ended
	how     string // how it ended, "" for in good order
}

// WorkerFlag is the hidden flag of `agentop proxy` that makes it a worker.
const WorkerFlag = "worker"

// spawn starts a worker. Its descriptors: 0 to 2 are the supervisor's (0 is
// /dev/null), 3 is the link, 4 and on are the sockets.
func (s *supervisor) spawn() (*worker, error) {
	l, theirs, err := newPair()
	if err != nil {
		return nil, err
	}
	defer syscall.Close(theirs)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		l.close()
		return nil, err
	}
	defer null.Close()
	files := []uintptr{null.Fd(), 1, 2, uintptr(theirs)}
	for _, k := range s.sockets {
		files = append(files, uintptr(k.FD))
	}
	path := s.binary.start()
	pid, err := syscall.ForkExec(path, append([]string{s.binary.path}, s.command...), &syscall.ProcAttr{
		Env: workerEnv(os.Environ()), Files: files,
	})
	if err != nil {
		l.close()
		return nil, fmt.Errorf("start a worker: %q: %w", path, err)
	}
	w := &worker{pid: pid, link: l, state: starting, started: time.Now(), binary: path == s.binary.path}
	s.attend(w)
	hello := message{Kind: kindHello, Sockets: len(s.sockets), Others: len(s.workers) - 1, Ended: s.ended}
	if err := l.send(hello); err != nil {
		s.say("worker %d does not listen: %v", pid, err) // its end is noticed by itself
	}
	return w, nil
}

// workerEnv leaves out what speaks to the supervisor alone.
func workerEnv(env []string) []string {
	var kept []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		switch name {
		case "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID", stateEnv:
		default:
			kept = append(kept, pair)
		}
	}
	return kept
}

// attend begins to listen to a worker and to wait for its end.
func (s *supervisor) attend(w *worker) {
	s.workers = append(s.workers, w)
	w.over = make(chan struct{})
	s.read(w)
	w.process, _ = os.FindProcess(w.pid) // nil: it is gone, and Wait would not find it either
	go func() {
		how := "in a way that was not seen"
		if w.process != nil {
			if end, err := w.process.Wait(); err == nil {
				how = endOf(end)
			}
		}
		select { // its last words come first
		case <-w.over:
		case <-time.After(time.Second): // somebody else has its end of the link
		}
		s.emit(event{w: w, exited: true, how: how})
	}()
}

// read passes the worker's messages on until its link ends or is paused.
func (s *supervisor) read(w *worker) {
	done := make(chan struct{})
	w.reading = done
	go func() {
		defer close(done)
		for {
			m, err := w.link.receive()
			if err != nil {
				if !errors.Is(err, errPaused) {
					close(w.over)
				}
				return // its end is told by whoever waits for the process
			}
			s.emit(event{w: w, message: m})
		}
	}()
}

// emit hands an event to the loop, or to nobody once that has ended.
func (s *supervisor) emit(e event) {
	select {
	case s.events <- e:
	case <-s.done:
	}
}

// endOf is how a process ended, "" for in good order.
func endOf(p *os.ProcessState) string {
	if p.Success() {
		return ""
	}
	return p.String()
}

// kill ends the worker at once.
func (w *worker) kill() {
	if w.process != nil {
		_ = w.process.Kill() // it may have ended by itself
	}
}

// others is what a worker is told about the rest of them.
func (s *supervisor) others(w *worker) message {
	m := message{Kind: kindOthers, Load: map[string]int{}}
	for _, o := range s.workers {
		if o == w {
			continue
		}
		m.Others++
		for place, n := range o.load {
			m.Load[place] += n
		}
		if o.state == draining {
			m.Draining = append(m.Draining, control.Draining{PID: o.pid, Version: o.version, Streams: o.streams, Since: o.since, Sessions: o.sessions})
		}
	}
	return m
}

// tellOthers tells every worker but one what the rest of them does.
func (s *supervisor) tellOthers(except *worker) {
	for _, w := range s.workers {
		if w != except {
			_ = w.link.send(s.others(w)) // one that is gone is noticed by itself
		}
	}
}
