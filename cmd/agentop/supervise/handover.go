package supervise

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// start begins a worker if none is starting.
func (s *supervisor) start() {
	s.retryAt.Stop()
	if s.next != nil || s.stopping {
		return
	}
	w, err := s.spawn()
	if err != nil {
		s.binary.failed(false)
		s.notReady(Trouble{Text: err.Error(), Cure: "install agentop again, then `agentop service restart`"})
		return
	}
	s.next = w
	s.readyBy.Reset(s.Limits.Ready)
}

// handOver begins a worker that is to take the place of the present one. Who
// asks for it wants also what failed before to be tried again.
func (s *supervisor) handOver() {
	if s.next != nil || s.stopping {
		return
	}
	s.failures = 0
	s.binary.forgive()
	s.rebind()
	s.start()
}

// rebind opens the sockets of a changed address for the next worker. Until
// that is ready the old ones stay.
func (s *supervisor) rebind() {
	address, err := s.Listen()
	if err != nil || address == "" || serves(s.sockets, address) {
		return // a configuration that is not valid is the worker's to refuse
	}
	opened, note, err := openSockets(address, 0)
	if err != nil {
		s.say("the old address stays: %v", err)
		return
	}
	if note != "" {
		s.say("%s", note)
	}
	s.before = s.sockets
	for _, k := range s.sockets {
		if k.Inherited {
			opened = append(opened, k)
		}
	}
	s.sockets = opened
}

// restart notes a worker's wish to be replaced. It is answered when its
// successor is ready or has failed.
func (s *supervisor) restart(w *worker, id int) {
	if s.stopping {
		_ = w.link.send(message{Kind: kindRestarted, ID: id, Text: "the proxy is stopping"})
		return
	}
	w.asked = append(w.asked, id)
	s.handOver()
}

// answer tells everybody who asked for a restart how it went.
func (s *supervisor) answer(t Trouble) {
	for _, w := range s.workers {
		for _, id := range w.asked {
			_ = w.link.send(message{Kind: kindRestarted, ID: id, Text: t.Text, Hint: t.Cure})
		}
		w.asked = nil
	}
}

// ready makes the starting worker the one that serves; the one before it
// finishes its streams.
func (s *supervisor) ready(w *worker, m message) {
	if w != s.next {
		return
	}
	s.next = nil
	s.readyBy.Stop()
	s.downAt.Stop()
	old := s.current
	s.current = w
	w.state, w.ready, w.version = ready, time.Now(), m.Version
	s.ended = ""
	s.trouble = Trouble{}
	s.restAt.Reset(restAfter)
	s.lock.tell("", "")
	s.stopDown()
	s.answer(Trouble{})
	if old != nil {
		old.state, old.since = draining, time.Now()
		_ = old.link.send(message{Kind: kindDrain}) // one that is gone is noticed by itself
		s.say("worker %d (version %s) serves; %d finishes its streams", w.pid, w.version, old.pid)
	}
	s.tellOthers(nil)
	s.dropBefore()
	if !s.told {
		s.told = true
		_, _ = fmt.Fprintf(s.Stderr, "agentop serves on %v\n", m.Addresses)
	}
	notify("READY=1\nSTATUS=serving on " + fmt.Sprint(m.Addresses))
	if w.binary && s.binary.replaced() {
		s.renewAt.Reset(0)
	}
}

// dropBefore closes the sockets that the present worker has no more use for.
func (s *supervisor) dropBefore() {
	for _, k := range s.before {
		if !slices.Contains(s.sockets, k) {
			closeSockets([]socket{k})
		}
	}
	s.before = nil
}

// keepBefore goes back to the sockets that served before rebind.
func (s *supervisor) keepBefore() {
	if s.before == nil {
		return
	}
	for _, k := range s.sockets {
		if !slices.Contains(s.before, k) {
			closeSockets([]socket{k})
		}
	}
	s.sockets, s.before = s.before, nil
}

// tooSlow drops a starting worker whose time is over.
func (s *supervisor) tooSlow() {
	if s.next == nil {
		return
	}
	s.next.failed = message{Text: fmt.Sprintf("the new worker was not ready within %s", s.Limits.Ready)}
	s.next.kill() // its exit does the rest
}

// exited takes note of a worker's end.
func (s *supervisor) exited(w *worker, how string) {
	s.workers = slices.DeleteFunc(s.workers, func(o *worker) bool { return o == w })
	w.link.close()
	switch {
	case w == s.next:
		s.next = nil
		s.readyBy.Stop()
		if s.stopping {
			break
		}
		if w.binary {
			s.binary.failed(w.failed.Kind != "")
		}
		s.notReady(s.whyNotReady(w, how))
	case w == s.current:
		s.current = nil
		if !s.stopping {
			s.crashed(w, how)
		}
	case how != "":
		s.say("worker %d, which was finishing its streams, ended: %s", w.pid, how)
	}
	s.tellOthers(nil)
}

// whyNotReady is a failed start in the worker's own words, if it had any.
func (s *supervisor) whyNotReady(w *worker, how string) Trouble {
	if w.failed.Text != "" {
		return Trouble{Text: w.failed.Text, Cure: w.failed.Hint, Passing: w.failed.Kind == ""}
	}
	return Trouble{
		Text: "the new worker ended before it was ready: " + cmp.Or(how, "without a word"),
		Cure: "`agentop logs` and " + s.Home.ProxyLog() + " may tell more", Passing: true,
	}
}

// crashed starts another worker in the place of the one that served: at once,
// or later when it is one of a row.
func (s *supervisor) crashed(w *worker, how string) {
	if time.Since(w.ready) >= s.Limits.Settled {
		s.failures = 0
	}
	s.failures++
	s.config = identify(s.Home.Config())
	s.ended = fmt.Sprintf("the worker before (process %d, version %s) ended: %s", w.pid, w.version, cmp.Or(how, "by itself"))
	s.say("%s", s.ended)
	t := Trouble{Text: "agentop's worker ended: " + cmp.Or(how, "by itself"), Passing: true}
	if s.failures > 1 {
		t.Text = fmt.Sprintf("agentop's worker ended %d times in a row, the last time: %s", s.failures, cmp.Or(how, "by itself"))
		t.Cure = "`agentop doctor` looks for the cause; " + s.Home.ProxyLog() + " may tell more"
	}
	s.inTrouble(t)
	s.downAt.Reset(s.Limits.Down)
	s.retry(crashesAtOnce, crashBackoff)
}

// A worker that served before it crashed will probably serve again: the pauses
// after it are short, as connections wait meanwhile.
const (
	crashesAtOnce = 3
	crashBackoff  = time.Second
)

// notReady takes note of a start that came to nothing. The present worker
// stays, if there is one.
func (s *supervisor) notReady(t Trouble) {
	s.keepBefore()
	if s.current != nil || t != s.trouble { // told once, not at every try
		s.say("%s", t.Text)
	}
	s.answer(t)
	s.config = identify(s.Home.Config())
	if s.current != nil {
		s.say("the present worker stays")
		return
	}
	s.failures++
	s.inTrouble(t)
	s.retry(1, s.Limits.Backoff)
}

// inTrouble makes the reason known to everybody who may ask.
func (s *supervisor) inTrouble(t Trouble) {
	s.trouble = t
	s.lock.tell(t.Text, t.Cure)
	notify("STATUS=no worker is ready: " + t.Text)
	if s.down != nil {
		s.down.set(s.Down(t))
	}
}

// retry starts the next worker: at once after so many failures in a row, then
// the later the more there are.
func (s *supervisor) retry(atOnce int, longest time.Duration) {
	switch {
	case s.next != nil:
	case s.failures <= atOnce:
		s.start()
	default:
		s.retryAt.Reset(backoff(s.failures-atOnce, longest))
	}
}

// backoff is the pause before the next start after n failures in a row that
// are to have one.
func backoff(n int, longest time.Duration) time.Duration {
	d := 50 * time.Millisecond
	for ; n > 1 && d < longest; n-- {
		d *= 2
	}
	return min(d, longest)
}
