package filestore_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/filestore"
)

// TestPredecessor_06_Swept wants lapsed keys gone from memory and file though
// nobody touches them.
func TestPredecessor_06_Swept(t *testing.T) {
	path, clock := newPath(t), newFakeClock()
	s := open(t, path, clock.option(), filestore.WithSweep(5*time.Millisecond), filestore.WithSaveDelay(time.Millisecond), filestore.WithTombstones(time.Minute))
	for i := range 100 {
		s.Set(fmt.Sprint("k", i), strings.Repeat("x", 100), time.Hour)
	}
	setDurable(t, s, "stays", "1")
	clock.pass(time.Hour)
	eventually(t, "values are gone from the file", func() bool {
		b, err := os.ReadFile(path)
		return err == nil && !bytes.Contains(b, []byte("xxx"))
	})
	clock.pass(2 * time.Minute)
	eventually(t, "what is left of them is gone too", func() bool {
		setDurable(t, s, "stays", "1")
		b, err := os.ReadFile(path)
		return err == nil && !bytes.Contains(b, []byte(`"k`))
	})
	if got, _ := s.Keys(""); !slices.Equal(got, []string{"stays"}) {
		t.Errorf("Keys = %q, want [stays]", got)
	}
}

// TestLapsedStaysGone lets a short-lived value lapse over an older one that
// another process has and that lives for ever: it must not come back.
func TestLapsedStaysGone(t *testing.T) {
	path, clock := newPath(t), newFakeClock()
	a := open(t, path, clock.option(), filestore.WithSaveDelay(never), filestore.WithSweep(5*time.Millisecond))
	setDurable(t, a, "k", "for ever")
	b := open(t, path, clock.option(), filestore.WithSaveDelay(never), filestore.WithSweep(never))
	wantGet(t, b, "k", "for ever", true)
	a.Set("k", "short", time.Second)
	clock.pass(2 * time.Second)
	eventually(t, "swept", func() bool { wantGet(t, a, "k", "", false); return a.State().Unsaved >= 2 })
	setDurable(t, a, "x", "1")
	setDurable(t, b, "y", "1")
	wantGet(t, b, "k", "", false)
	wantGet(t, open(t, path, clock.option()), "k", "", false)
}

// TestClockPutForward sets the wall clock to next year while the store runs:
// what is alive keeps the time it had left. A night's sleep counts as time.
func TestClockPutForward(t *testing.T) {
	path, clock := newPath(t), newFakeClock()
	s := open(t, path, clock.option())
	s.Set("k", "1", 10*24*time.Hour)
	clock.pass(24 * time.Hour)
	clock.jump(365 * 24 * time.Hour)
	s.Set("after", "1", time.Hour) // before the store can have noticed
	wantGet(t, s, "k", "1", true)
	if ttl, err := s.TTL("k"); err != nil || ttl != 9*24*time.Hour {
		t.Errorf("TTL after the jump = %v, %v; want nine days", ttl, err)
	}
	if ttl, err := s.TTL("after"); err != nil || ttl != time.Hour {
		t.Errorf("TTL of a key set after the jump = %v, %v; want an hour", ttl, err)
	}
	mustClose(t, s)
	s = open(t, path, clock.option())
	wantGet(t, s, "k", "1", true)
	clock.jump(-365 * 24 * time.Hour)
	setDurable(t, s, "k", "2") // newer than what the file has, though stamped in the past
	wantGet(t, open(t, path, clock.option()), "k", "2", true)
	clock.pass(11 * 24 * time.Hour)
	s.Set("z", "1", time.Hour)
	clock.pass(time.Hour)
	wantGet(t, s, "z", "", false)
}

// TestClockPutForwardAfterItWasAhead sets the clock a year ahead, then ten years
// back, then right: what was written in between bears the stamp of the year
// ahead, since stamps never go back, and keeps the time it had left all the same.
func TestClockPutForwardAfterItWasAhead(t *testing.T) {
	const year = 365 * 24 * time.Hour
	path, clock := newPath(t), newFakeClock()
	s := open(t, path, clock.option())
	setDurable(t, s, "before", "1")
	clock.jump(year)
	s.Set("ahead", "1", 31*24*time.Hour)
	clock.jump(-11 * year)
	s.Set("back", "1", 31*24*time.Hour)
	wantGet(t, s, "back", "1", true)
	clock.jump(10 * year)
	setDurable(t, s, "after", "1")
	for _, key := range []string{"ahead", "back"} {
		if ttl, err := s.TTL(key); err != nil || ttl < 31*24*time.Hour {
			t.Errorf("TTL of %q = %v, %v; want 31 days or more", key, ttl, err)
		}
	}
	mustClose(t, s)
	s = open(t, path, clock.option())
	for _, key := range []string{"before", "ahead", "back", "after"} {
		wantGet(t, s, key, "1", true)
	}
}

// TestPutBackClockOfAnother has a process whose writes bear times to come, as
// before its clock was put right: who writes after that is the later.
func TestPutBackClockOfAnother(t *testing.T) {
	path, ahead, right := newPath(t), newFakeClock(), newFakeClock()
	ahead.jump(1000 * time.Hour)
	mine := open(t, path, right.option(), filestore.WithSaveDelay(never))
	setDurable(t, open(t, path, ahead.option()), "k", "ahead")
	setDurable(t, mine, "k", "later")
	wantGet(t, open(t, path, right.option()), "k", "later", true)
}

// TestPredecessor_26_LeastRecentlyUsedGoes fills a store over its limit: the
// least recently used key goes, with a warning that gives count and limit,
// and the newest is never refused.
func TestPredecessor_26_LeastRecentlyUsedGoes(t *testing.T) {
	var log lockedBuffer
	clock := newFakeClock()
	s := open(t, newPath(t), clock.option(), filestore.WithLimits(filestore.Limits{Keys: 3}),
		filestore.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	for _, key := range []string{"a", "b", "c"} {
		s.Set(key, "1", 0)
	}
	s.Get("a")
	s.Set("d", "1", 0)
	if got, _ := s.Keys(""); !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Errorf("Keys = %q, want [a c d]", got)
	}
	for _, key := range []string{"e", "f", "g"} {
		s.Set(key, "1", 0)
	}
	if got, _ := s.Keys(""); !slices.Equal(got, []string{"e", "f", "g"}) {
		t.Errorf("Keys = %q, want [e f g]", got)
	}
	if got := strings.Count(log.String(), "store is full"); got != 1 {
		t.Errorf("four evictions within a minute gave %d warnings, want 1:\n%s", got, log.String())
	}
	clock.pass(2 * time.Minute)
	s.Set("h", "1", 0)
	if got := log.String(); !strings.Contains(got, "dropped=4 keys=3 limit=3") {
		t.Errorf("warnings after a minute:\n%swant one of the 4 since", got)
	}
	if got := s.State().Evicted; got != 5 {
		t.Errorf("Evicted = %d, want 5", got)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestRecencyOfTheCaller asks the caller for uses that the store has not seen.
func TestRecencyOfTheCaller(t *testing.T) {
	clock := newFakeClock()
	s := open(t, newPath(t), clock.option(), filestore.WithLimits(filestore.Limits{Keys: 2}),
		filestore.WithRecency(func(key string) time.Time {
			if key == "a" {
				return clock.now().Add(time.Hour)
			}
			return time.Time{}
		}))
	for _, key := range []string{"a", "b", "c"} {
		s.Set(key, "1", 0)
	}
	if got, _ := s.Keys(""); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("Keys = %q, want [a c]", got)
	}
}

// TestPredecessor_25_ManyUniqueKeys floods a store with keys: it stays within
// its limits of keys and bytes.
func TestPredecessor_25_ManyUniqueKeys(t *testing.T) {
	path := newPath(t)
	s := open(t, path, filestore.WithLimits(filestore.Limits{Keys: 2000, Bytes: 300_000}), filestore.WithSaveDelay(never))
	for i := range 20_000 {
		s.Set(fmt.Sprint("k", i), "value", month)
	}
	if got := s.Len(); got != 2000 {
		t.Errorf("Len = %d, want 2000", got)
	}
	wantGet(t, s, "k17999", "", false)
	wantGet(t, s, "k18000", "value", true)
	for i := range 20 {
		s.Set(fmt.Sprint("large", i), strings.Repeat("x", 20_000), 0)
	}
	if got := s.Len(); got > 15 {
		t.Errorf("Len = %d, want the bytes to be limited too", got)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || bytes.Count(b, []byte(`"deleted"`)) > 2000 {
		t.Errorf("%d deletions are remembered in the file, %v; want at most 2000", bytes.Count(b, []byte(`"deleted"`)), err)
	}
	again := open(t, path)
	if got, want := again.Len(), s.Len(); got != want {
		t.Errorf("opened again: Len = %d, want %d", got, want)
	}
}

// TestSaveMemory wants a save of 65,536 pins to need no more than two copies
// of the file, counted from when the records are in memory.
func TestSaveMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	path := newPath(t)
	s := open(t, path, filestore.WithSaveDelay(never))
	for i := range 65536 {
		s.Set(pinKey(i), pinValue(i), month)
	}
	base := heap()
	peak := watchHeap(func() {
		if err := s.Sync(t.Context()); err != nil {
			t.Error(err)
		}
	})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	size := info.Size()
	if peak-base > 2*size {
		t.Errorf("first save: %d bytes more at the peak, the file has %d", peak-base, size)
	}
	settled := heap()
	if settled-base > size/2 {
		t.Errorf("after the save: %d bytes more than before, the file has %d", settled-base, size)
	}
	s.Set(pinKey(1), pinValue(1), month)
	again := watchHeap(func() {
		if err := s.Sync(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if again-settled > size/2 {
		t.Errorf("next save: %d bytes more at the peak, the file has %d", again-settled, size)
	}
	t.Logf("file %d; heap before the first save %d, at its peak +%d, after it %+d; next save +%d", size, base, peak-base, settled-base, again-settled)
}

// heap is the live heap.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// watchHeap returns the largest heap seen while do runs, garbage included.
func watchHeap(do func()) (peak int64) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, int64(m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
	close(stop)
	<-done
	return peak
}
