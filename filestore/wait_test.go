package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentop/filestore"
)

// TestGroupCommit holds a save up and lets callers gather: they share the
// next one.
func TestGroupCommit(t *testing.T) {
	gate := &gateFS{FS: filestore.OS(), entered: make(chan struct{}), leave: make(chan struct{})}
	s := open(t, newPath(t), filestore.WithFS(gate))
	var wg sync.WaitGroup
	set := func(i int) {
		wg.Go(func() {
			if err := s.SetDurable(context.Background(), fmt.Sprint("k", i), "v", 0); err != nil {
				t.Error(err)
			}
		})
	}
	set(0)
	<-gate.entered // the first save is on its way
	for i := range 200 {
		set(i + 1)
	}
	eventually(t, "all are written in memory", func() bool { return s.Len() == 201 })
	gate.open()
	wg.Wait()
	if got := s.State().Saves; got > 3 {
		t.Errorf("201 durable writes took %d saves, want at most 3", got)
	}
}

// gateFS holds up the first sync of a folder until it is opened.
type gateFS struct {
	filestore.FS
	once           sync.Once
	entered, leave chan struct{}
}

func (g *gateFS) open() { close(g.leave) }

func (g *gateFS) SyncDir(dir string) error {
	g.once.Do(func() {
		close(g.entered)
		<-g.leave
	})
	return g.FS.SyncDir(dir)
}

// TestNothingWaitsForTheDisk holds up a save: reads, plain writes and State
// go on, and a durable write that has waited long enough can leave.
func TestNothingWaitsForTheDisk(t *testing.T) {
	gate := &gateFS{FS: filestore.OS(), entered: make(chan struct{}), leave: make(chan struct{})}
	s := open(t, newPath(t), filestore.WithFS(gate))
	saved := make(chan error)
	go func() { saved <- s.SetDurable(context.Background(), "a", "1", 0) }()
	<-gate.entered
	s.Set("b", "2", 0)
	wantGet(t, s, "b", "2", true)
	if st := s.State(); st.Saving.IsZero() || st.Unsaved != 2 {
		t.Errorf("State = %+v, want a running save and two unsaved writes", st)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := s.UpdateDurable(ctx, "c", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("UpdateDurable of a caller that has gone = %v, want its context's error", err)
	}
	ctx, leave = context.WithCancel(t.Context())
	waits := make(chan error)
	go func() { waits <- s.SetDurable(ctx, "d", "4", 0) }()
	eventually(t, "d is in memory", func() bool { _, found, _ := s.Get("d"); return found })
	leave()
	if err := <-waits; !isNotSaved(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("SetDurable of a caller that goes = %v, want ErrNotSaved for its context", err)
	}
	wantGet(t, s, "d", "4", true)
	gate.open()
	if err := <-saved; err != nil {
		t.Error(err)
	}
}

// TestKF_D11_LockNeverComes has another process hold the lock, or the call never
// return: opening works, durable writes fail within the limit, memory serves,
// and all is saved when the lock is free.
func TestKF_D11_LockNeverComes(t *testing.T) {
	for name, hang := range map[string]bool{"held by another": false, "call never returns": true} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			setDurable(t, open(t, path), "old", "1")
			locks := &stuckLocks{FS: filestore.OS(), hang: hang, free: make(chan struct{})}
			s := open(t, path, filestore.WithFS(locks), filestore.WithLockWait(20*time.Millisecond))
			wantGet(t, s, "old", "1", true)
			if err := s.SetDurable(t.Context(), "k", "1", 0); !isNotSaved(err) || !errors.Is(err, filestore.ErrLocked) {
				t.Errorf("SetDurable = %v, want ErrNotSaved for ErrLocked", err)
			}
			wantGet(t, s, "k", "1", true)
			close(locks.free)
			eventually(t, "saved", func() bool { return s.State().Err == nil })
			wantGet(t, open(t, path), "k", "1", true)
		})
	}
}

type stuckLocks struct {
	filestore.FS
	hang bool
	free chan struct{}
}

func (l *stuckLocks) TryLock(name string) (filestore.Lock, error) {
	if l.hang {
		<-l.free
	}
	select {
	case <-l.free:
		return l.FS.TryLock(name)
	default:
		return nil, filestore.ErrLocked
	}
}

// TestLock wants one holder at a time, and the holder to know that another
// waits.
func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	fs := filestore.OS()
	first, err := fs.TryLock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.TryLock(name); !errors.Is(err, filestore.ErrLocked) {
		t.Errorf("TryLock of a held lock = %v, want ErrLocked", err)
	}
	if !first.Wanted() {
		t.Error("the holder does not know that the lock is wanted")
	}
	first.Unlock()
	again, err := fs.TryLock(name)
	if err != nil {
		t.Fatal(err)
	}
	if again.Wanted() {
		t.Error("a new lock is wanted by nobody yet")
	}
	again.Unlock()
}
