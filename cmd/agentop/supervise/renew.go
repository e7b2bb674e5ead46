package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentop/cmd/agentop/supervise/ahead"
	"agentop/router/control"
)

// Renewed reports, before Run, whether this process goes on as the supervisor
// that an older binary was: its sockets and workers are there already.
func Renewed() bool {
	_, found := os.LookupEnv(ahead.StateEnv)
	return found
}

// carried is what the supervisor takes along when it executes a newer binary
// in its own place: the process, its children and these descriptors stay.
// Fields are only ever added.
type carried struct {
	PID     int             `json:"pid"` // a child that inherits the variable is not meant
	Lock    int             `json:"lock"`
	Started time.Time       `json:"started"`
	Sockets []socket        `json:"sockets"`
	Workers []carriedWorker `json:"workers"`
}

type carriedWorker struct {
	PID     int            `json:"pid"`
	Link    int            `json:"link"`
	Rest    []byte         `json:"rest,omitempty"` // of the link, read and not handled
	State   state          `json:"state"`
	Version string         `json:"version"`
	Started time.Time      `json:"started"`
	Ready   time.Time      `json:"ready"`
	Since   time.Time      `json:"since"`
	Load    map[string]int `json:"load,omitempty"`
	Streams int            `json:"streams,omitempty"`
	Asked   []int          `json:"asked,omitempty"`

	Sessions []control.Streaming `json:"sessions,omitempty"`
}

// renewPause is how long a renewal waits when something happens meanwhile.
const renewPause = 100 * time.Millisecond

// renew executes the newer binary, whose worker already serves, in this
// process's place. It returns only if that is not possible now.
func (s *supervisor) renew() {
	if s.stopping || s.next != nil || s.current == nil || !s.binary.replaced() {
		return
	}
	if missed := s.pauseLinks(); len(missed) > 0 {
		s.resumeLinks()
		for _, e := range missed {
			s.handle(e)
		}
		s.renewAt.Reset(renewPause)
		return
	}
	err := s.execute()
	s.resumeLinks()
	if errors.Is(err, errSignal) {
		s.renewAt.Reset(renewPause)
		return
	}
	s.binary.failed(true)
	s.say("this process stays at version %s: %v", s.Version, err)
}

// pauseLinks ends all readers and returns what they had still to tell.
func (s *supervisor) pauseLinks() (missed []event) {
	for _, w := range s.workers {
		w.link.pause()
		for reading := true; reading; {
			select {
			case <-w.reading:
				reading = false
			case e := <-s.events:
				missed = append(missed, e)
			}
		}
	}
	for {
		select {
		case e := <-s.events:
			missed = append(missed, e)
		default:
			return missed
		}
	}
}

func (s *supervisor) resumeLinks() {
	for _, w := range s.workers {
		w.link.resume()
		s.read(w)
	}
}

// execute replaces the image. It returns only with the reason why it could
// not; everything is then as it was.
func (s *supervisor) execute() error {
	c := carried{PID: os.Getpid(), Lock: int(s.lock.file.Fd()), Started: s.lock.holder.Started, Sockets: s.sockets}
	var links []int
	defer func() {
		for _, fd := range links {
			_ = syscall.Close(fd)
		}
	}()
	for _, w := range s.workers {
		fd, err := duplicate(w.link.conn)
		if err != nil {
			return fmt.Errorf("keep the link to worker %d: %w", w.pid, err)
		}
		links = append(links, fd)
		c.Workers = append(c.Workers, carriedWorker{
			PID: w.pid, Link: fd, Rest: w.link.rest, State: w.state, Version: w.version,
			Started: w.started, Ready: w.ready, Since: w.since, Load: w.load, Streams: w.streams, Asked: w.asked, Sessions: w.sessions,
		})
	}
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("describe this process: %w", err)
	}
	kept := append([]int{c.Lock}, links...)
	for _, k := range s.sockets {
		kept = append(kept, k.FD)
	}
	if err := keepOnExec(kept, true); err != nil {
		return err
	}
	// From here until the new image asks for signals, one that is to end this
	// process does so at once, and the workers finish by themselves: in the
	// channel it would be lost. A hang-up is left out.
	signal.Reset(heeded...)
	signal.Ignore(syscall.SIGHUP)
	defer signal.Notify(s.signals, heeded...)
	if len(s.signals) > 0 {
		return joined(errSignal, keepOnExec(kept, false))
	}
	args := append([]string{s.binary.path}, os.Args[1:]...)
	err = syscall.Exec(s.binary.path, args, append(os.Environ(), ahead.StateEnv+"="+string(text)))
	return fmt.Errorf("execute %q: %w", s.binary.path, joined(err, keepOnExec(kept, false)))
}

// errSignal is returned by execute when a signal came that this image has to
// heed first.
var errSignal = errors.New("a signal waits")

func joined(first, second error) error {
	if second != nil {
		return fmt.Errorf("%w (%w)", first, second)
	}
	return first
}

// keepOnExec says whether descriptors stay open when an image is replaced.
func keepOnExec(fds []int, keep bool) error {
	flag := unix.FD_CLOEXEC
	if keep {
		flag = 0
	}
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag); err != nil {
			return fmt.Errorf("set the flags of descriptor %d: %w", fd, err)
		}
	}
	return nil
}

// adopt takes over from the image that this process ran before, if it did.
func (s *supervisor) adopt() (bool, error) {
	text, found := os.LookupEnv(ahead.StateEnv)
	_ = os.Unsetenv(ahead.StateEnv)
	var c carried
	if !found || json.Unmarshal([]byte(text), &c) != nil || c.PID != os.Getpid() {
		return false, nil
	}
	var err error
	s.lock, err = adoptLock(c.Lock, Holder{PID: c.PID, Version: s.Version, Started: c.Started, Binary: s.binary.path})
	if err != nil {
		return true, err
	}
	s.sockets, s.told = c.Sockets, true
	for _, k := range s.sockets {
		syscall.CloseOnExec(k.FD)
	}
	for _, cw := range c.Workers {
		s.adoptWorker(cw)
	}
	s.say("this process runs version %s", s.Version)
	if s.current == nil {
		s.start()
	} else {
		s.downAt.Stop()
	}
	return true, nil
}

func (s *supervisor) adoptWorker(c carriedWorker) {
	syscall.CloseOnExec(c.Link)
	l, err := newLink(c.Link)
	if err != nil {
		s.say("worker %d is lost: %v", c.PID, err)
		return
	}
	l.rest = c.Rest
	w := &worker{
		pid: c.PID, link: l, state: c.State, version: c.Version, started: c.Started, ready: c.Ready,
		since: c.Since, load: c.Load, streams: c.Streams, sessions: c.Sessions, asked: c.Asked, binary: true,
	}
	s.attend(w)
	if w.state == ready {
		s.current = w
		s.restAt.Reset(restAfter)
	}
}
