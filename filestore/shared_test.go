package filestore_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentop/filestore"
)

// Two stores on one file stand for two processes here: they share nothing but
// the file and its lock.

// never is a save delay that no test lives to see.
const never = time.Hour

// TestMissRereads finds what another process wrote, and looks only at the
// file's state while nothing changes.
func TestMissRereads(t *testing.T) {
	path := newPath(t)
	counts := &countFS{FS: filestore.OS()}
	a, b := open(t, path, filestore.WithFS(counts)), open(t, path)
	wantGet(t, a, "k", "", false)
	setDurable(t, b, "k", "1")
	wantGet(t, a, "k", "1", true)
	if ttl, err := a.TTL("k"); ttl != filestore.NoTTL || err != nil {
		t.Errorf("TTL = %v, %v; want NoTTL", ttl, err)
	}
	opens, stats := counts.opens.Load(), counts.stats.Load()
	for range 10 {
		wantGet(t, a, "missing", "", false)
		wantGet(t, a, "k", "1", true)
	}
	if got := counts.opens.Load() - opens; got != 0 {
		t.Errorf("20 reads opened an unchanged file %d times, want 0", got)
	}
	if got := counts.stats.Load() - stats; got != 10 {
		t.Errorf("10 misses and 10 hits asked for the file's state %d times, want 10", got)
	}
	setDurable(t, b, "h", "2")
	if set, err := a.SetNX("h", "mine", 0); set || err != nil {
		t.Errorf("SetNX of the other's key = %v, %v; want false", set, err)
	}
}

// TestRefreshShowsWhatOthersChanged has a key that is known here changed and
// deleted by another process: a hit answers from memory until it is refreshed.
func TestRefreshShowsWhatOthersChanged(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	setDurable(t, a, "k", "1")
	setDurable(t, b, "k", "2")
	a.Refresh()
	wantGet(t, a, "k", "2", true)
	if _, err := b.DeleteDurable(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	a.Refresh()
	wantGet(t, a, "k", "", false)
}

// TestPredecessor_08_ReadOnce counts how often a file is read for a key that
// another process made: once, and the key is there from then on.
func TestPredecessor_08_ReadOnce(t *testing.T) {
	path := newPath(t)
	b := open(t, path)
	setDurable(t, b, "k", "1")
	counts := &countFS{FS: filestore.OS()}
	a := open(t, path, filestore.WithFS(counts))
	for range 5 {
		wantGet(t, a, "k", "1", true)
	}
	if got := counts.opens.Load(); got != 1 {
		t.Errorf("the file was opened %d times, want 1", got)
	}
}

// countFS counts calls.
type countFS struct {
	filestore.FS
	stats, opens, temps, dirSyncs, renames atomic.Int64
	mu                                     sync.Mutex
	tempNames                              []string
}

func (c *countFS) Stat(name string) (filestore.Info, error) {
	c.stats.Add(1)
	return c.FS.Stat(name)
}

func (c *countFS) Open(name string) (filestore.File, error) {
	c.opens.Add(1)
	return c.FS.Open(name)
}

func (c *countFS) CreateTemp(dir, pattern string) (filestore.File, error) {
	c.temps.Add(1)
	f, err := c.FS.CreateTemp(dir, pattern)
	if err == nil {
		c.mu.Lock()
		c.tempNames = append(c.tempNames, f.Name())
		c.mu.Unlock()
	}
	return f, err
}

func (c *countFS) Rename(from, to string) error {
	c.renames.Add(1)
	return c.FS.Rename(from, to)
}

func (c *countFS) SyncDir(dir string) error {
	c.dirSyncs.Add(1)
	return c.FS.SyncDir(dir)
}

// TestPredecessor_03_FolderSynced wants the folder synced after each rename.
// That it matters is TestPowerCut's to show.
func TestPredecessor_03_FolderSynced(t *testing.T) {
	counts := &countFS{FS: filestore.OS()}
	s := open(t, newPath(t), filestore.WithFS(counts))
	for i := range 3 {
		setDurable(t, s, "k", fmt.Sprint(i))
		if r, d := counts.renames.Load(), counts.dirSyncs.Load(); r != int64(i+1) || d != r {
			t.Errorf("after %d saves: %d renames, %d syncs of the folder", i+1, r, d)
		}
	}
}

// TestPredecessor_05_OwnTemporaryFile wants every save to write a file of its
// own, of its owner alone. TestKF_D6_FourProcesses has the processes overlap.
func TestPredecessor_05_OwnTemporaryFile(t *testing.T) {
	path := newPath(t)
	counts := &countFS{FS: filestore.OS()}
	a, b := open(t, path, filestore.WithFS(counts)), open(t, path, filestore.WithFS(counts))
	for i := range 5 {
		setDurable(t, a, "a", fmt.Sprint(i))
		setDurable(t, b, "b", fmt.Sprint(i))
	}
	names := map[string]bool{}
	for _, name := range counts.tempNames {
		names[name] = true
	}
	if len(names) != 10 {
		t.Errorf("10 saves wrote %d different temporary files: %q", len(names), counts.tempNames)
	}
}

// TestMergeNewestWins has two processes change the same keys without having
// seen each other's writes.
func TestMergeNewestWins(t *testing.T) {
	for _, c := range []struct {
		name    string
		write   func(a, b filestore.Store) // in this order of time
		want    map[string]string          // at the end, in both
		missing []string
	}{
		{"other keys", func(a, b filestore.Store) { a.Set("a", "1", 0); b.Set("b", "2", 0) }, map[string]string{"a": "1", "b": "2"}, nil},
		{"later value", func(a, b filestore.Store) { a.Set("k", "a", 0); b.Set("k", "b", 0) }, map[string]string{"k": "b"}, nil},
		{"earlier saver", func(a, b filestore.Store) { b.Set("k", "b", 0); a.Set("k", "a", 0) }, map[string]string{"k": "a"}, nil},
		{"deleted later", func(a, b filestore.Store) { a.Set("old", "a", 0); b.Delete("old") }, nil, []string{"old"}},
		{"written later", func(a, b filestore.Store) { a.Delete("old"); b.Set("old", "b", 0) }, map[string]string{"old": "b"}, nil},
		{"deleted by one", func(a, b filestore.Store) { a.Delete("old"); b.Set("x", "b", 0) }, map[string]string{"x": "b"}, []string{"old"}},
		{"hash over string", func(a, b filestore.Store) {
			a.Set("k", "a", 0)
			b.HSet("k", map[string]string{"f": "1"})
			b.Set("x", "", 0)
		}, map[string]string{"x": ""}, nil},
		{"time to live", func(a, b filestore.Store) { a.Expire("old", time.Hour); b.Expire("old", -1) }, nil, []string{"old"}},
	} {
		for _, first := range []string{"a", "b"} {
			t.Run(c.name+", "+first+" saves first", func(t *testing.T) {
				path := newPath(t)
				base := open(t, path)
				setDurable(t, base, "old", "1")
				// Two writes in one microsecond have no order that could be held.
				var calls atomic.Int64
				clock := filestore.WithClock(func() time.Time {
					return time.Now().Add(time.Duration(calls.Add(1)) * time.Microsecond)
				}, nil)
				a, b := open(t, path, filestore.WithSaveDelay(never), clock), open(t, path, filestore.WithSaveDelay(never), clock)
				c.write(a, b)
				one, two := a, b
				if first == "b" {
					one, two = b, a
				}
				for _, s := range []filestore.Store{one, two} {
					if err := s.Sync(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				setDurable(t, one, "again", "1") // so that it takes in what the other saved
				for _, s := range []filestore.Store{one, two, open(t, path)} {
					for key, want := range c.want {
						wantGet(t, s, key, want, true)
					}
					for _, key := range c.missing {
						wantGet(t, s, key, "", false)
					}
				}
			})
		}
	}
}

// fakeClock is a clock that a test moves.
type fakeClock struct {
	mu     sync.Mutex
	wall   time.Time
	steady time.Duration
}

func newFakeClock() *fakeClock {
	return &fakeClock{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// pass lets time pass; jump sets the wall clock.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.steady = c.wall.Add(d), c.steady+d
}

func (c *fakeClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *fakeClock) option() filestore.Option {
	return filestore.WithClock(c.now, func() time.Duration {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.steady
	})
}

// TestTombstonesEnd wants a deletion remembered for its time and no longer,
// and what a process has slept through to stay deleted even then.
func TestTombstonesEnd(t *testing.T) {
	path, clock := newPath(t), newFakeClock()
	opts := []filestore.Option{clock.option(), filestore.WithSweep(10 * time.Millisecond), filestore.WithSaveDelay(never)}
	a := open(t, path, opts...)
	setDurable(t, a, "k", "1")
	setDurable(t, a, "keep", "1")
	asleep := open(t, path, clock.option(), filestore.WithSaveDelay(never), filestore.WithSweep(never))
	wantGet(t, asleep, "k", "1", true)
	if _, err := a.DeleteDurable(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); !strings.Contains(string(b), `"k":{"deleted":true`) {
		t.Errorf("the deletion is not in the file: %s", b)
	}
	clock.pass(2 * time.Hour)
	eventually(t, "the deletion is forgotten", func() bool {
		setDurable(t, a, "x", "1")
		b, err := os.ReadFile(path)
		return err == nil && !strings.Contains(string(b), `"k":`)
	})
	setDurable(t, asleep, "y", "1")
	wantGet(t, asleep, "k", "", false)
	wantGet(t, asleep, "keep", "1", true)
}

// TestFileTakenAway removes the file, or puts an older copy in its place,
// under a running store: it writes again what it has.
func TestFileTakenAway(t *testing.T) {
	path := newPath(t)
	s := open(t, path, filestore.WithSweep(20*time.Millisecond), filestore.WithSaveDelay(time.Millisecond))
	setDurable(t, s, "old", "1")
	copied, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	setDurable(t, s, "new", "1")
	setDurable(t, s, "old", "2")
	for name, change := range map[string]func() error{
		"removed":  func() error { return os.Remove(path) },
		"replaced": func() error { return os.Rename(writeTemp(t, copied), path) },
		"damaged":  func() error { return os.WriteFile(path, copied[:len(copied)/2], 0o600) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" file is written again", func() bool {
			b, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(b), `"new":{"string":"1"`) && strings.Contains(string(b), `"old":{"string":"2"`)
		})
	}
}

// TestDurableNXOnce has several stores race for each of many keys: one wins.
func TestDurableNXOnce(t *testing.T) {
	path := newPath(t)
	const stores, keys = 4, 20
	var won [keys]atomic.Int64
	var wg sync.WaitGroup
	for i := range stores {
		s := open(t, path)
		for k := range keys {
			wg.Go(func() {
				set, err := s.SetNXDurable(t.Context(), fmt.Sprint("k", k), fmt.Sprint(i), 0)
				if err != nil {
					t.Error(err)
				}
				if set {
					won[k].Add(1)
				}
			})
		}
	}
	wg.Wait()
	for k := range won {
		if n := won[k].Load(); n != 1 {
			t.Errorf("key %d was set first by %d stores", k, n)
		}
	}
}

// TestDurableUpdateCounts has stores count up one key together.
func TestDurableUpdateCounts(t *testing.T) {
	path := newPath(t)
	var wg sync.WaitGroup
	const stores, each = 3, 15
	for range stores {
		s := open(t, path)
		for range each {
			wg.Go(func() {
				err := s.UpdateDurable(t.Context(), "n", func(it filestore.Item) (filestore.Item, error) {
					return filestore.Item{Value: it.Value + "x", Exists: true}, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	wantGet(t, open(t, path), "n", strings.Repeat("x", stores*each), true)
}
