package supervise

import (
	"errors"
	"fmt"
	"os"
	"time"

	"agentop/cmd/agentop/supervise/ahead"
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

// spawn starts a worker, or takes the one that was started ahead.
func (s *supervisor) spawn() (*worker, error) {
	path := s.binary.start()
	sockets := make([]int, len(s.sockets))
	for i, k := range s.sockets {
		sockets[i] = k.FD
	}
	var sent []int // to who has not inherited them
	p, isAhead := ahead.Take()
	if isAhead {
		sent = sockets
	} else {
		var err error
		if p, err = ahead.Start(path, append([]string{s.binary.path}, s.command...), sockets); err != nil {
			return nil, fmt.Errorf("start a worker: %q: %w", path, err)
		}
	}
	l, err := newLink(p.Link)
	if err != nil {
		return nil, err // its end of the link is closed, so it ends
	}
	w := &worker{pid: p.PID, link: l, state: starting, started: time.Now(), binary: !isAhead && path == s.binary.path}
	hello := message{Kind: kindHello, Sockets: len(sockets), Others: len(s.workers), Ended: s.ended}
	if err := l.send(hello, sent...); err != nil {
		s.say("worker %d does not listen: %v", p.PID, err) // its end is noticed by itself
	}
	s.attend(w)
	return w, nil
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
