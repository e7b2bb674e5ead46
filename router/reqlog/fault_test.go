package reqlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// faultFiles is the real file system with faults on cue and a count of all
// that is asked of it.
type faultFiles struct {
	osFiles
	mu     sync.Mutex
	room   int // bytes that can still be written; -1: any number
	sync   error
	mkdir  error
	calls  map[string]int
	writes []int // length of each
	trace  []string
}

func newFaultFiles() *faultFiles { return &faultFiles{room: -1, calls: map[string]int{}} }

func (f *faultFiles) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[what]++
	f.trace = append(f.trace, what)
}

func (f *faultFiles) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *faultFiles) n(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[what]
}

func (f *faultFiles) all() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.calls)
}

func (f *faultFiles) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		n += c
	}
	return n
}

func (f *faultFiles) MakeDir(dir string) (bool, error) {
	f.count("mkdir")
	f.mu.Lock()
	err := f.mkdir
	f.mu.Unlock()
	if err != nil {
		return false, err
	}
	return f.osFiles.MakeDir(dir)
}

func (f *faultFiles) OpenAppend(name string) (appendFile, error) {
	f.count("open")
	a, err := f.osFiles.OpenAppend(name)
	if err != nil {
		return nil, err
	}
	return faultFile{a.(osAppend), f}, nil
}

func (f *faultFiles) OpenRead(name string) (readFile, error) {
	f.count("open to read")
	return f.osFiles.OpenRead(name)
}

func (f *faultFiles) Same(name string, a appendFile) bool {
	f.count("same")
	return f.osFiles.Same(name, a.(faultFile).osAppend)
}

func (f *faultFiles) List(dir string) ([]logFile, error) {
	f.count("list")
	return f.osFiles.List(dir)
}

func (f *faultFiles) Remove(name string) error {
	f.count("remove " + filepath.Base(name))
	return f.osFiles.Remove(name)
}

func (f *faultFiles) SyncDir(dir string) error {
	f.count("sync dir")
	return f.osFiles.SyncDir(dir)
}

type faultFile struct {
	osAppend
	f *faultFiles
}

func (a faultFile) Write(b []byte) (int, error) {
	a.f.count("write")
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	a.f.writes = append(a.f.writes, len(b))
	if a.f.room < 0 || len(b) <= a.f.room {
		if a.f.room >= 0 {
			a.f.room -= len(b)
		}
		return a.osAppend.Write(b)
	}
	n := a.f.room
	a.f.room = 0
	if n > 0 {
		if _, err := a.osAppend.Write(b[:n]); err != nil {
			return 0, err
		}
	}
	return n, syscall.ENOSPC
}

func (a faultFile) Sync() error {
	a.f.count("sync")
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	if a.f.sync != nil {
		return a.f.sync
	}
	return nil // a bubble's clock stands while a real sync blocks
}

// sessions reads the sessions of the lines that are in dir, in order.
func sessions(t *testing.T, dir string) (out []string) {
	t.Helper()
	if err := Read(t.Context(), dir, Filter{}, func(l Line) bool {
		out = append(out, l.Session)
		return true
	}); err != nil {
		t.Fatalf("Read: %v", err)
	}
	return out
}

func readAll(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "requests-2026-03-10.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A full disk cuts a line at any byte. Once there is room, everything is
// there, in order, and nothing twice.
func TestFullDiskLosesNothing(t *testing.T) {
	size := len(appendLine(nil, &Line{Time: at(0), Kind: KindPin, Agent: "claude-code", Session: "s0", Server: "glm", Pin: PinNew, Why: "opened", Key: Hex(1)}))
	for room := 0; room <= 2*size; room += 7 {
		synctest.Test(t, func(t *testing.T) {
			files := newFaultFiles()
			dir := logDir(t)
			l := openLog(t, dir, Options{fs: files})
			mustAppend(t, l, pinLine(0, "s0", "glm", 1))
			files.set(func() { files.room = room })
			var want []string
			failed := false
			for i := range 5 {
				err := l.Append(pinLine(time.Duration(i+1), fmt.Sprint("s", i+1), "glm", 1))
				failed = failed || err != nil
				if failed && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("room %d: line %d: %v", room, i+1, err)
				}
				if s := l.State(); failed && (s.Err == nil || s.Queued == 0 || s.Since.IsZero()) {
					t.Errorf("room %d: state %+v", room, s)
				}
			}
			if _, ok := l.Index().Last("claude-code", "s5"); !ok {
				t.Error("memory does not know what the disk refused")
			}
			wantOthers := room % 2
			if wantOthers == 1 { // another process writes meanwhile, behind half a line
				other := openLog(t, dir, Options{})
				mustAppend(t, other, pinLine(9, "other", "glm", 1))
				defer other.Close()
			}
			files.set(func() { files.room = -1 })
			time.Sleep(2 * syncEvery) // the bubble's clock
			if s := l.State(); s.Err != nil || s.Queued != 0 || s.Dropped != 0 {
				t.Errorf("room %d: state after there is room: %+v", room, s)
			}
			for i := range 6 {
				want = append(want, fmt.Sprint("s", i))
			}
			var got []string
			others := 0
			for _, s := range sessions(t, dir) {
				if s == "other" {
					others++
				} else {
					got = append(got, s)
				}
			}
			if !reflect.DeepEqual(got, want) || others != wantOthers {
				t.Errorf("room %d: lines of %v and %d of another process, want %v and %d", room, got, others, want, wantOthers)
			}
			for _, line := range strings.Split(readAll(t, dir), "\n") {
				if strings.Count(line, string(lineStart)) > 1 {
					t.Errorf("room %d: a line is glued to half a line: %q", room, line)
				}
			}
			l.Close()
		})
	}
}

// What waits is bounded; turns go before pins, moves and what was forgotten.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newFaultFiles()
		dir := logDir(t)
		var warned []string
		l := openLog(t, dir, Options{fs: files, MaxQueue: 8 << 10, Warn: func(s string) { warned = append(warned, s) }})
		files.set(func() { files.room = 0 })
		l.Append(pinLine(0, "pinned", "glm", 1))
		l.Append(moveLine(1, "moved", "lab"))
		for i := range 500 {
			l.Append(mainTurn(time.Duration(i+2), fmt.Sprint("s", i), "glm", 5, 6))
		}
		s := l.State()
		if s.Dropped == 0 || s.Queued+int(s.Dropped) != 502 {
			t.Errorf("state %+v, want 502 lines queued or dropped", s)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "cannot be written") {
			t.Errorf("warnings %q, want one in a minute", warned)
		}
		files.set(func() { files.room = -1 })
		time.Sleep(2 * syncEvery)
		got := sessions(t, dir)
		if len(got) != s.Queued || got[0] != "pinned" || got[1] != "moved" || got[len(got)-1] != "s499" {
			t.Errorf("%d lines, first %q, last %q; want %d, pins and moves first", len(got), got[:2], got[len(got)-1], s.Queued)
		}
		l.Close()
	})
}

func TestFailedSyncIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newFaultFiles()
		l := openLog(t, logDir(t), Options{fs: files})
		files.set(func() { files.sync = syscall.EIO })
		mustAppend(t, l, pinLine(0, "s", "glm", 1))
		time.Sleep(syncEvery + time.Millisecond)
		if s := l.State(); !errors.Is(s.Err, syscall.EIO) {
			t.Errorf("state %+v, want EIO", s)
		}
		mustAppend(t, l, pinLine(1, "s", "glm", 1))
		if s := l.State(); !errors.Is(s.Err, syscall.EIO) {
			t.Errorf("an append hides that syncing fails: %+v", s)
		}
		files.set(func() { files.sync = nil })
		time.Sleep(2 * syncEvery)
		if s := l.State(); s.Err != nil || !s.Since.IsZero() {
			t.Errorf("state %+v, want none", s)
		}
		l.Close()
	})
}

// Lines are synced within a second; with nothing to do, nothing is.
func TestSyncedEachSecondAndIdleOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newFaultFiles()
		l := openLog(t, logDir(t), Options{fs: files})
		time.Sleep(time.Hour)
		before := files.total()
		mustAppend(t, l, pinLine(0, "s", "glm", 1))
		if files.n("sync") != 0 || files.n("write") != 1 {
			t.Errorf("calls %v, want one write and no sync yet", files.all())
		}
		time.Sleep(syncEvery + time.Millisecond)
		if files.n("sync") != 1 || files.n("sync dir") != 1 {
			t.Errorf("calls %v, want one sync of the file and its new name", files.all())
		}
		time.Sleep(time.Hour)
		after := files.total()
		time.Sleep(24 * time.Hour)
		if files.n("sync") != 1 || files.total() != after || before != 2 {
			t.Errorf("an idle log asks for %v", files.all())
		}
		l.Close()
	})
}

// Nothing that a request asks of the index touches the disk.
func TestLookUpsTouchNoDisk(t *testing.T) {
	files := newFaultFiles()
	l := openLog(t, logDir(t), Options{fs: files})
	mustAppend(t, l, mainTurn(0, "s", "glm", 7, 8))
	if err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := files.total()
	for i := range uint64(20) {
		l.Register(Placed{Agent: "claude-code", Session: fmt.Sprint("s", i), Server: "glm", Key: i, At: at(0)})
		l.Index().ByKey(i)
		l.Index().ByMark(i)
		l.Index().ByResponse(fmt.Sprint(i))
		l.Index().Last("claude-code", fmt.Sprint("s", i))
		l.Index().Last("claude-code", "unknown")
		l.Index().Conversations(time.Time{})
		l.Index().Sweep()
		l.State()
		l.CatchUp()
		<-l.Loaded()
	}
	if got := files.total() - before; got != 0 {
		t.Errorf("%d calls to the file system: %v", got, files.all())
	}
	mustAppend(t, l, mainTurn(0, "s", "glm", 7, 8))
	if got := files.total() - before; got != 1 {
		t.Errorf("an append made %d calls, want its write alone: %v", got, files.all())
	}
}

// A log that cannot be opened works from memory and says so.
func TestLogThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newFaultFiles()
		files.mkdir = syscall.EROFS
		dir := filepath.Join(t.TempDir(), "log")
		l, err := Open(dir, Options{fs: files, Now: fixed(0)})
		if !errors.Is(err, syscall.EROFS) || l == nil {
			t.Fatalf("Open = %v, %v", l, err)
		}
		if err := l.Append(mainTurn(0, "s", "glm", 7, 8)); !errors.Is(err, syscall.EROFS) {
			t.Errorf("Append: %v", err)
		}
		if err := l.Load(t.Context()); err != nil {
			t.Errorf("Load: %v", err)
		}
		<-l.Loaded()
		if len(l.Index().ByKey(7)) != 1 || l.State().Queued != 1 {
			t.Errorf("key of %v, state %+v", l.Index().ByKey(7), l.State())
		}
		files.set(func() { files.mkdir = nil })
		time.Sleep(2 * syncEvery)
		if got := sessions(t, dir); len(got) != 1 || l.State().Err != nil {
			t.Errorf("once it can be: %v, state %+v", got, l.State())
		}
		l.Close()
	})
}

// The directory may be removed under a running proxy.
func TestLogDirectoryRemovedWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		l := openLog(t, dir, Options{})
		mustAppend(t, l, pinLine(0, "a", "glm", 1))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		mustAppend(t, l, pinLine(0, "b", "glm", 1))
		if got := sessions(t, dir); len(got) != 1 || got[0] != "b" {
			t.Errorf("lines of %v, want b", got)
		}
		l.Close()
	})
}

func TestAppendAfterClose(t *testing.T) {
	l := openLog(t, logDir(t), Options{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(pinLine(0, "s", "glm", 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("Append: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestRightsAreNarrow(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, newFileID(dayOf(at(0)), 1).name())
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var warned []string
	l := openLog(t, dir, Options{Warn: func(s string) { warned = append(warned, s) }})
	mustAppend(t, l, pinLine(0, "s", "glm", 1))
	for path, want := range map[string]os.FileMode{dir: 0o700, name: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", path, info.Mode(), err, want)
		}
	}
	if len(warned) != 1 {
		t.Errorf("warnings %q, want one", warned)
	}
}
