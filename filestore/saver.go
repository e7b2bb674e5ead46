package filestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// A failed save is tried again after retryMin, then ever more seldom down to
// once in retryMax; and at once when a durable write comes, unless failing
// took longer than slowFailure: then that write is told of the last failure.
const (
	retryMin    = 250 * time.Millisecond
	retryMax    = 5 * time.Second
	slowFailure = 500 * time.Millisecond
)

// waiter is a caller that waits for the disk.
type waiter struct {
	gen  uint64     // the write that it waits for
	op   func(edit) // if set, to be done under the file lock first
	done chan error // told once; holds one
}

// await waits until w's write is on disk.
func (s *fileStore) await(ctx context.Context, w *waiter) error {
	w.done = make(chan error, 1)
	s.stateMu.Lock()
	s.waiting = append(s.waiting, w)
	s.stateMu.Unlock()
	s.poke()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSaved, ctx.Err())
	case <-s.done:
	}
	select {
	case err := <-w.done:
		return err
	default:
		return ErrClosed
	}
}

func (s *fileStore) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// afterWrite starts the clock for a plain write.
func (s *fileStore) afterWrite() {
	if s.armed.CompareAndSwap(false, true) {
		s.poke()
	}
}

// schedule is what run keeps between two looks.
type schedule struct {
	plainDue  time.Time     // when plain writes must be saved; zero if there are none
	gatherDue time.Time     // until when durable writes wait for more; zero if they do not
	sweepDue  time.Time     // when to sweep
	spareDue  time.Time     // when the spare has waited in vain; zero if there is none
	retryDue  time.Time     // when to try again; zero if the last save went well
	backoff   time.Duration // the next wait before a retry
	slow      bool          // the last failure took long
	pace      pace
}

// run saves when it is time to, until Close. All times here are the system's
// own, which never jump.
func (s *fileStore) run() {
	defer close(s.done)
	sch := schedule{sweepDue: time.Now().Add(s.opt.sweep)}
	if s.State().Err != nil {
		sch.retryDue = time.Now().Add(retryMin)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.wake:
		case <-timer.C:
		case <-s.quit:
			s.last = s.finish()
			return
		}
		s.step(&sch)
		timer.Reset(time.Until(sch.next()))
	}
}

// next is when there is something to do without being woken. While saving
// fails, a plain write waits for the retry: its own time is over soon, and
// would keep the loop spinning until then.
func (sch *schedule) next() time.Time {
	due := sch.plainDue
	if !sch.retryDue.IsZero() {
		due = sch.retryDue
	}
	for _, other := range []time.Time{sch.gatherDue, sch.sweepDue, sch.spareDue} {
		if due.IsZero() || !other.IsZero() && other.Before(due) {
			due = other
		}
	}
	return due
}

// step does what is due.
func (s *fileStore) step(sch *schedule) {
	now := time.Now()
	if !now.Before(sch.sweepDue) {
		s.sweepAll()
		s.rereadFile()
		sch.sweepDue = time.Now().Add(s.opt.sweep)
	}
	if !sch.spareDue.IsZero() && !now.Before(sch.spareDue) {
		s.disk.dropSpare()
		sch.spareDue = time.Time{}
	}
	if s.armed.Load() && sch.plainDue.IsZero() {
		sch.plainDue = now.Add(s.opt.delay)
	}
	s.stateMu.Lock()
	waiting, suspect := len(s.waiting), s.suspect
	s.stateMu.Unlock()
	failing := !sch.retryDue.IsZero()
	sch.gatherDue = time.Time{}
	if waiting > 0 && !failing {
		sch.gatherDue = sch.pace.gather(waiting, now)
	}
	urgent := waiting > 0 && sch.gatherDue.IsZero()
	retry := failing && !now.Before(sch.retryDue)
	plain := !failing && !sch.plainDue.IsZero() && !now.Before(sch.plainDue)
	switch {
	case urgent && failing && sch.slow && !retry:
		s.answerFromMemory()
	case urgent || plain || retry || suspect && !failing:
		s.save(sch, now)
	}
}

// save runs one cycle and sets the schedule by how it went.
func (s *fileStore) save(sch *schedule, began time.Time) {
	s.armed.Store(false)
	sch.plainDue, sch.gatherDue = time.Time{}, time.Time{}
	shared, err := s.cycle()
	sch.pace.saved(began, shared)
	sch.spareDue = time.Time{}
	if s.disk.spare != nil {
		sch.spareDue = time.Now().Add(spareLife)
	}
	if err == nil {
		sch.retryDue, sch.backoff, sch.slow = time.Time{}, 0, false
		return
	}
	sch.slow = time.Since(began) > slowFailure
	sch.backoff = min(max(2*sch.backoff, retryMin), retryMax)
	sch.retryDue = time.Now().Add(sch.backoff)
}

// finish is the last save.
func (s *fileStore) finish() error {
	s.mu.RLock()
	clean := s.t.gen == s.t.saved
	s.mu.RUnlock()
	s.stateMu.Lock()
	idle := len(s.waiting) == 0
	s.stateMu.Unlock()
	if clean && idle {
		return nil
	}
	_, err := s.cycle()
	return err
}

// answerFromMemory does what waits for the disk in memory, and says so.
func (s *fileStore) answerFromMemory() {
	ws := s.takeWaiters()
	s.runOps(ws)
	s.stateMu.Lock()
	err := s.health.err
	s.stateMu.Unlock()
	tell(ws, err)
}

// takeWaiters takes all that wait.
func (s *fileStore) takeWaiters() []*waiter {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	ws := s.waiting
	s.waiting = nil
	return ws
}

// runOps does what is to be done under the file lock. A caller that has gone
// was told that nothing was changed.
func (s *fileStore) runOps(ws []*waiter) {
	for _, w := range ws {
		if w.op == nil {
			continue
		}
		s.mu.Lock()
		e := edit{s.memory, s.now()}
		w.op(e)
		s.keepLimits(e.now)
		w.gen = s.t.gen
		s.mu.Unlock()
	}
}

func tell(ws []*waiter, err error) {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	for _, w := range ws {
		w.done <- err
	}
}

// cycle is one save for all that wait: lock, take in what others wrote, do
// what was to be done under the lock, write. It returns how many waited.
func (s *fileStore) cycle() (shared int, err error) {
	s.setSaving(s.opt.wall())
	ws := s.takeWaiters()
	gen, wanted, err := s.cycleLocked(&ws)
	if err != nil {
		s.failed(err)
	} else {
		s.succeeded(gen)
	}
	s.setSaving(time.Time{})
	tell(ws, err)
	s.disk.closeOld()
	if wanted {
		// Another process waits for the lock. Without a pause this one would
		// have it again before the other looks.
		time.Sleep(4 * lockPoll)
	}
	return len(ws), err
}

// cycleLocked returns the number of the last write that is now on disk; 0 if
// there was nothing to write.
func (s *fileStore) cycleLocked(ws *[]*waiter) (gen uint64, wanted bool, err error) {
	ran := false
	defer func() {
		if !ran {
			s.runOps(*ws) // memory serves although the disk does not
		}
	}()
	target, err := s.disk.target()
	if err != nil {
		return 0, false, err
	}
	s.setLocation(target)
	switch info, err := s.opt.fs.Stat(target); {
	case err != nil: // the folder may be gone, too
		if err := s.opt.fs.MkdirAll(filepath.Dir(target)); err != nil {
			return 0, false, err
		}
	case !info.Mode.IsRegular():
		return 0, false, fmt.Errorf("save %q: %w", target, ErrNotRegular) // nothing is to be made beside a device
	}
	lock, err := s.locks.take(target + lockSuffix)
	if err != nil {
		return 0, false, err
	}
	defer func() {
		wanted = lock.Wanted()
		_ = lock.Unlock() // closing the file ends the lock
	}()
	if err := s.catchUp(true); err != nil {
		return 0, false, err
	}
	if !s.cleaned {
		s.disk.removeTemps(target)
		s.cleaned = true
	}
	s.runOps(*ws)
	ran = true
	*ws = append(*ws, s.takePlainWaiters()...)
	gen, err = s.write(target)
	return gen, false, err
}

// takePlainWaiters takes those that came meanwhile and whose write is made.
func (s *fileStore) takePlainWaiters() (plain []*waiter) {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	rest := s.waiting[:0]
	for _, w := range s.waiting {
		if w.op == nil {
			plain = append(plain, w)
		} else {
			rest = append(rest, w)
		}
	}
	clear(s.waiting[len(rest):])
	s.waiting = rest
	return plain
}

// sweepBatch is how many records are looked at under one lock.
const sweepBatch = 2048

// sweepAll removes what has lapsed.
func (s *fileStore) sweepAll() {
	for at, more := 0, true; more; {
		s.mu.Lock()
		now := s.now()
		if at == 0 {
			s.compareClocks(now)
		}
		at = s.t.sweep(at, sweepBatch, now, s.tombEnd(now))
		more = at < len(s.t.recs)
		dirty := s.t.gen != s.t.saved
		s.mu.Unlock()
		if dirty {
			s.afterWrite()
		}
	}
}

func (s *fileStore) setSaving(at time.Time) {
	s.stateMu.Lock()
	s.health.saving = at
	s.stateMu.Unlock()
}

// failed notes and, the first time in a row, warns.
func (s *fileStore) failed(err error) {
	s.stateMu.Lock()
	first := s.health.err == nil || errors.Is(err, ErrNewerFormat) && !s.health.readOnly
	if s.health.err == nil {
		s.health.since = s.opt.wall()
	}
	s.health.err = err
	s.health.readOnly = errors.Is(err, ErrNewerFormat)
	s.stateMu.Unlock()
	if first {
		s.opt.log.Warn("not saved: memory serves, and the save is tried again", "err", err)
	}
}

func (s *fileStore) succeeded(gen uint64) {
	now := s.opt.wall()
	s.stateMu.Lock()
	was, since := s.health.err, s.health.since
	s.health.err, s.health.since, s.health.readOnly = nil, time.Time{}, false
	s.syncedAt = now
	if gen > 0 {
		s.health.saves++
		s.health.lastSave = now
	}
	s.stateMu.Unlock()
	if was != nil {
		s.opt.log.Warn("saved again", "after", now.Sub(since).Round(time.Millisecond))
	}
}
