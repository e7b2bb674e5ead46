package filestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// locker takes the lock file with a limit, even where the call that takes it
// never returns, as on a dead network file system.
type locker struct {
	fs     FS
	limit  time.Duration
	busy   chan struct{} // holds a token while an attempt is under way
	warn   func(string, ...any)
	warned bool
}

func newLocker(fs FS, limit time.Duration, warn func(string, ...any)) *locker {
	return &locker{fs: fs, limit: limit, busy: make(chan struct{}, 1), warn: warn}
}

// lockPoll is the time between two attempts at a lock that is taken.
const lockPoll = time.Millisecond

type lockResult struct {
	lock Lock
	err  error
}

// take returns with the lock, or with an error after the limit. Only one
// goroutine calls it.
func (l *locker) take(name string) (Lock, error) {
	limit := time.NewTimer(l.limit)
	defer limit.Stop()
	select {
	case l.busy <- struct{}{}:
	case <-limit.C:
		return nil, fmt.Errorf("lock %q: an earlier attempt has not come back: %w", name, ErrLocked)
	}
	got := make(chan lockResult)
	quit := make(chan struct{})
	go l.try(name, got, quit)
	select {
	case r := <-got:
		return l.judge(r)
	case <-limit.C:
		close(quit)
		return nil, fmt.Errorf("lock %q for %v: %w", name, l.limit, ErrLocked)
	}
}

// try asks for the lock until it has it or nobody waits for it any more.
func (l *locker) try(name string, got chan<- lockResult, quit <-chan struct{}) {
	defer func() { <-l.busy }()
	for {
		lock, err := l.fs.TryLock(name)
		if !errors.Is(err, ErrLocked) {
			select {
			case got <- lockResult{lock, err}:
			case <-quit:
				if err == nil {
					_ = lock.Unlock() // nobody waits for it
				}
			}
			return
		}
		select {
		case <-quit:
			return
		case <-time.After(lockPoll + rand.N(lockPoll)): //nolint:gosec // no secret: so that two do not try in step
		}
	}
}

// judge lets the save go on where the file system knows no locks. Two
// processes may then undo each other's saves, which is said once.
func (l *locker) judge(r lockResult) (Lock, error) {
	err := r.err
	if errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) {
		if !l.warned {
			l.warned = true
			l.warn("the file system has no locks: two processes could undo each other's saves", "err", err)
		}
		return noLock{}, nil
	}
	return r.lock, err
}

// noLock stands for a lock where there are none.
type noLock struct{}

func (noLock) Wanted() bool  { return false }
func (noLock) Unlock() error { return nil }
