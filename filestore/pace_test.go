package filestore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentop/filestore"
)

// The tests here run in a bubble whose time stands still while anybody works:
// a save takes what saveTime says, and nothing else takes any.

const saveTime = time.Millisecond

type slowSync struct{ filestore.FS }

func (s slowSync) SyncDir(dir string) error {
	time.Sleep(saveTime)
	return s.FS.SyncDir(dir)
}

// paced is a store on a disk in memory, in a bubble.
type paced struct {
	filestore.Store
	t    *testing.T
	keys atomic.Int64
}

func inBubble(t *testing.T, do func(p *paced)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := openOn(slowSync{newCrashFS()}, filestore.WithClock(time.Now, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		do(&paced{Store: s, t: t})
	})
}

// set writes a new key durably, and returns how long that took.
func (p *paced) set() time.Duration {
	began := time.Now()
	if err := p.SetDurable(context.Background(), fmt.Sprint("k", p.keys.Add(1)), "1", 0); err != nil {
		p.t.Error(err)
	}
	return time.Since(began)
}

// crowd has so many write at the same time.
func (p *paced) crowd(n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() { p.set() })
	}
	all.Wait()
}

// TestOneAtATimeNeverWaits has one caller write again as soon as it may.
func TestOneAtATimeNeverWaits(t *testing.T) {
	inBubble(t, func(p *paced) {
		for i := range 20 {
			if took := p.set(); took != saveTime {
				t.Errorf("write %d took %v, want %v: a save and nothing else", i, took, saveTime)
			}
		}
	})
}

// TestTheSameCrowdDoesNotWait has eight callers write again as soon as they
// may: a save begins when all eight are there again.
func TestTheSameCrowdDoesNotWait(t *testing.T) {
	const rounds = 50
	inBubble(t, func(p *paced) {
		began := time.Now()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range rounds {
					p.set()
				}
			})
		}
		all.Wait()
		// Two saves a round, and a few times apart until all have met.
		if got, want := time.Since(began), 2*rounds*saveTime+5*filestore.SaveApart; got > want {
			t.Errorf("%d rounds took %v, want %v at most", rounds, got, want)
		}
	})
}

// TestABurstSharesSaves has ten come together, and then one each millisecond:
// they share saves too, and none waits for long.
func TestABurstSharesSaves(t *testing.T) {
	inBubble(t, func(p *paced) {
		p.crowd(10)
		before := p.State().Saves
		var all sync.WaitGroup
		took := make([]time.Duration, 900)
		for i := range took {
			all.Go(func() { took[i] = p.set() })
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		if got := p.State().Saves - before; got > 200 {
			t.Errorf("900 writes took %d saves, want 200 at most: at least five have met", got)
		}
		if got, want := slices.Max(took), filestore.SaveApart+2*saveTime; got > want {
			t.Errorf("one waited for %v, want %v at most", got, want)
		}
	})
}

// TestACrowdIsForgotten has a crowd, single writes for longer than it is
// remembered, and then some that follow each other as soon as they may.
func TestACrowdIsForgotten(t *testing.T) {
	inBubble(t, func(p *paced) {
		p.crowd(50)
		for range 11 {
			time.Sleep(filestore.CrowdLife / 10)
			p.set()
		}
		for range 3 {
			if took := p.set(); took != saveTime {
				t.Errorf("a write took %v, want %v", took, saveTime)
			}
		}
	})
}

// TestAfterAPauseNobodyWaits has a crowd, a pause, and one that comes then.
func TestAfterAPauseNobodyWaits(t *testing.T) {
	inBubble(t, func(p *paced) {
		p.crowd(50)
		time.Sleep(filestore.SaveApart)
		if took := p.set(); took != saveTime {
			t.Errorf("the first after a pause took %v, want %v", took, saveTime)
		}
	})
}

// TestClosingDoesNotWaitForMore closes the store while a write waits for
// others to share its save.
func TestClosingDoesNotWaitForMore(t *testing.T) {
	inBubble(t, func(p *paced) {
		p.crowd(50)
		saved := make(chan error, 1)
		go func() { saved <- p.SetDurable(context.Background(), "last", "1", 0) }()
		synctest.Wait()
		began := time.Now()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != saveTime {
			t.Errorf("closing took %v, want %v", took, saveTime)
		}
		if err := <-saved; err != nil {
			t.Errorf("the write that waited: %v", err)
		}
	})
}
