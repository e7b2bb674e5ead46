package supervise

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/memory"
)

// Options is what a supervisor needs to know.
type Options struct {
	Home    home.Home
	Version string
	Stderr  io.Writer // gets a line for everything that a person may ask about later
	// Listen says where to listen, as the configuration has it now. With an
	// error, the address may still be a good guess.
	Listen func() (address string, err error)
	// Down makes the handler that answers while no worker can serve.
	Down func(Trouble) http.Handler
	// Command is the arguments that make this program a worker.
	Command []string
	// Terminal says that a hang-up ends the supervisor, as its user's terminal
	// is gone; else it is the sign to hand over to a fresh worker.
	Terminal bool
	// Grace, if set, is asked at a stop for how long streams may go on; 0 is
	// Limits.Drain.
	Grace  func() time.Duration
	Limits Limits
}

// Trouble is why no worker can serve.
type Trouble struct {
	Text string
	Cure string
	// Passing says that it may be over without anybody's doing.
	Passing bool
}

// supervisor is the state of Run. Everything in it belongs to the loop.
type supervisor struct {
	Options
	command []string
	binary  *binary
	lock    *lock
	sockets []socket
	before  []socket // that served until now, while a new worker gets others
	workers []*worker
	current *worker // serves; nil when none is ready
	next    *worker // starts; nil when none does
	events  chan event
	done    chan struct{}
	signals chan os.Signal

	failures int    // starts and crashes in a row that came to nothing
	ended    string // how the last worker or run ended, if badly
	trouble  Trouble
	config   identity // config.yaml as it was last looked at
	down     *downServer
	told     bool // that it serves
	stopping bool
	cut      bool // workers were killed that may have had streams

	readyBy, retryAt, downAt, stopBy, renewAt, restAt, pollAt alarm
}

// alarm is a timer that can be set again and again.
type alarm struct{ *time.Timer }

func newAlarm() alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return alarm{t}
}

// Run supervises until ctx is done or a signal ends it, and then lets running
// streams finish; a second signal cuts them. A *HeldError says that another
// supervisor has this home, any other error at once that nothing can listen.
// It may replace the process's image by a newer one, and then never returns.
func Run(ctx context.Context, o Options) error {
	o.Limits = o.Limits.filled()
	s := &supervisor{
		Options: o, command: o.Command, binary: newBinary(StablePath(), ownImage),
		events: make(chan event, 16), done: make(chan struct{}), signals: make(chan os.Signal, 4),
		readyBy: newAlarm(), retryAt: newAlarm(), downAt: newAlarm(), stopBy: newAlarm(), renewAt: newAlarm(), restAt: newAlarm(), pollAt: newAlarm(),
	}
	defer close(s.done)
	signal.Notify(s.signals, heeded...)
	defer signal.Stop(s.signals)
	if err := s.begin(); err != nil {
		return err
	}
	err := s.loop(ctx)
	closeSockets(s.sockets)
	s.lock.release()
	return err
}

// begin takes the lock and the sockets, or takes them over from the image
// that this process ran before, and starts the first worker.
func (s *supervisor) begin() error {
	s.downAt.Reset(s.Limits.Down)
	adopted, err := s.adopt()
	if err != nil || adopted {
		return err
	}
	if err := s.Home.Create(); err != nil {
		return err
	}
	me := Holder{PID: os.Getpid(), Version: s.Version, Started: time.Now(), Binary: s.binary.path}
	var last *Holder
	s.lock, last, err = takeLock(s.Home, me)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		s.lock.release()
		return err
	}
	if last != nil {
		s.ended = fmt.Sprintf("the last run (process %d, started %s) did not end in good order", last.PID, last.Started.Format(time.DateTime))
	}
	s.start()
	return nil
}

// open finds the sockets of a first start: those that a service manager
// opened, and what the configuration asks for besides.
func (s *supervisor) open() error {
	var err error
	if s.sockets, err = activated(); err != nil {
		return err
	}
	address, err := s.Listen()
	if err != nil && address == "" && len(s.sockets) == 0 {
		return err
	}
	if address == "" || len(s.sockets) > 0 && serves(s.sockets, address) {
		return nil
	}
	if len(s.sockets) > 0 {
		s.say("the service's socket is bound to %v, config.yaml says %s: `agentop service install` brings them together", addressesOf(s.sockets), address)
	}
	opened, note, err := openSockets(address, bindWait)
	if err != nil {
		closeSockets(s.sockets)
		return err
	}
	if note != "" {
		s.say("%s", note)
	}
	s.sockets = append(s.sockets, opened...)
	return nil
}

// loop does one thing at a time until no worker is left after a stop.
func (s *supervisor) loop(ctx context.Context) error {
	s.pollAt.Reset(s.Limits.Poll)
	stop := ctx.Done()
	for !s.stopping || len(s.workers) > 0 {
		select {
		case <-stop:
			stop = nil
			s.stop()
		case got := <-s.signals:
			s.signal(got)
		case e := <-s.events:
			s.handle(e)
		case now := <-s.pollAt.C:
			s.look(now)
			s.pollAt.Reset(s.untilLook())
		case <-s.readyBy.C:
			s.tooSlow()
		case <-s.retryAt.C:
			s.start()
		case <-s.downAt.C:
			s.serveDown()
		case <-s.stopBy.C:
			s.killAll()
		case <-s.renewAt.C:
			s.renew()
		case <-s.restAt.C:
			s.rest()
		}
	}
	if s.cut {
		return ErrKilled
	}
	return nil
}

// heeded are the signals that mean something to a supervisor.
var heeded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, retrySignal}

// retrySignal wants a worker where there is none. It does no harm to a process
// that does not know it, and none to one that a shell has continued; a hang-up
// would end a supervisor in a terminal.
const retrySignal = syscall.SIGCONT

// Retry tells a supervisor without a worker to start one at once, without
// waiting for it. One that has a worker does nothing.
func Retry(h Holder) error {
	if err := syscall.Kill(h.PID, retrySignal); err != nil {
		return fmt.Errorf("tell process %d to try again: %w", h.PID, err)
	}
	return nil
}

func (s *supervisor) signal(got os.Signal) {
	switch {
	case got == retrySignal:
		if s.current == nil {
			s.handOver()
		}
	case got == syscall.SIGHUP && !s.Terminal:
		s.handOver()
	case s.stopping:
		s.killAll()
	default:
		s.stop()
	}
}

// handle takes in what a worker did.
func (s *supervisor) handle(e event) {
	if e.exited {
		s.exited(e.w, e.how)
		return
	}
	switch m := e.message; m.Kind {
	case kindReady:
		s.ready(e.w, m)
	case kindFailed:
		e.w.failed = m
	case kindRestart:
		s.restart(e.w, m.ID)
	case kindLoad:
		e.w.load, e.w.streams, e.w.sessions = m.Load, m.Streams, m.Sessions
		s.tellOthers(e.w)
	}
}

// look looks for a replaced binary and, in trouble, for a mended
// configuration.
func (s *supervisor) look(now time.Time) {
	if s.stopping || s.next != nil {
		return
	}
	mended := false
	if s.trouble.Text != "" || s.binary.tried != (identity{}) { // else a look would only wake the system
		now := identify(s.Home.Config())
		mended = now != s.config
		s.config = now
	}
	if mended {
		s.binary.forgive()
	}
	if s.binary.look(now, s.Limits.Poll) {
		s.say("%s was replaced: handing over to it", s.binary.path)
		s.handOver()
		return
	}
	if s.current == nil && s.trouble.Text != "" && mended {
		s.failures = 0
		s.start()
	}
}

// untilLook is how long until the next look: shorter while something is to be
// seen soon.
func (s *supervisor) untilLook() time.Duration {
	if s.current == nil || s.binary.settling() {
		return min(s.Limits.Poll, time.Second)
	}
	return s.Limits.Poll
}

// restAfter is how long after a worker became ready the supervisor becomes
// small: in the first moments the worker has more use for the processor.
const restAfter = time.Second

// rest makes the supervisor small: there is nothing more to do.
func (s *supervisor) rest() {
	memory.Wait()
	memory.GiveBack()
}

// say writes one line for people.
func (s *supervisor) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Stderr, "agentop: "+format+"\n", args...) // nobody to tell that nobody reads
}

// stop ends in good order: nothing more is accepted, streams finish.
func (s *supervisor) stop() {
	s.stopping = true
	notify("STOPPING=1")
	s.retryAt.Stop()
	s.downAt.Stop()
	s.stopDown()
	for _, w := range s.workers {
		_ = w.link.send(message{Kind: kindStop}) // one that is gone is noticed by itself
	}
	if s.next != nil {
		s.next.kill()
	}
	closeSockets(s.sockets)
	s.sockets = nil
	limit := s.Limits.Drain + 10*time.Second // workers know their limit themselves
	if s.Grace != nil {
		if grace := s.Grace(); grace > 0 {
			limit = grace
		}
	}
	s.stopBy.Reset(limit)
}

// killAll ends every worker at once.
func (s *supervisor) killAll() {
	s.stopping = true
	for _, w := range s.workers {
		s.cut = true
		w.kill()
	}
}
