package reqlog

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

const day = 24 * time.Hour

func fileNames(t *testing.T, dir string) (out []string) {
	t.Helper()
	files, err := osFiles{}.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		out = append(out, f.id.name())
	}
	return out
}

// loadNow marks the log as read back, as Load does at start.
func loadNow(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOldFilesGoAndLiveConversationsStay(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(0)}
	files := newFaultFiles()
	l := openLog(t, dir, Options{Now: c.now, fs: files})
	loadNow(t, l)
	old := mainTurn(0, "live", "glm", 7, 8)
	old.Responses, old.Input, old.Output, old.ModelAsked, old.ModelSent = []string{"resp_1"}, 100, 10, "opus", "glm-5"
	old.Pin, old.Why, old.TotalMS = PinNew, "opened", 1000
	mustAppend(t, l, old, mainTurn(0, "forgotten", "glm", 17, 18), forgetLine(time.Second, "forgotten"),
		mainTurn(0, "moved", "glm", 27, 28), moveLine(time.Second, "moved", "lab"), sideLine(0, "lab", 38))
	for i := range 5 {
		c.add(7 * day)
		if i == 4 {
			c.add(-5 * day) // 30 days and 12 hours after the first file
		}
		mustAppend(t, l, mainTurn(c.now().Sub(at(0)), "other", "glm", 100+uint64(i), 200))
	}
	c.add(day)
	before, _ := l.Index().Last("claude-code", "live")
	l.Maintain()
	if got := fileNames(t, dir); len(got) != 6 || got[0] != "requests-2026-03-17.jsonl" {
		t.Errorf("files %v, want the first gone and one of today", got)
	}
	keeps := 0
	Read(t.Context(), dir, Filter{Kind: KindKeep}, func(Line) bool { keeps++; return true })
	if keeps != 2 {
		t.Errorf("%d lines kept, want those of live and moved", keeps)
	}
	if i, j := slices.Index(files.trace, "remove requests-2026-03-10.jsonl"), lastIndex(files.trace, "write"); i < 0 || j < 0 || !slices.Contains(files.trace[j:i], "sync") {
		t.Errorf("not written, synced, then removed: %v", files.trace)
	}
	l.Close()

	x := reload(t, dir, Options{Now: c.now}).Index()
	after, _ := x.Last("claude-code", "live")
	before.Context = 0 // of the last turn, not kept
	if !reflect.DeepEqual(after, before) {
		t.Errorf("after rotation and restart\ngot  %+v\nwant %+v", after, before)
	}
	for what, c := range map[string]struct {
		got  []Owner
		want []string
	}{
		"key":               {x.ByKey(7), []string{"live@glm"}},
		"mark":              {x.ByMark(8), []string{"live@glm"}},
		"response":          {x.ByResponse("resp_1"), []string{"live@glm"}},
		"forgotten key":     {x.ByKey(17), nil},
		"moved key":         {x.ByKey(27), []string{"moved@lab"}},
		"of another's line": {x.ByKey(104), []string{"other@glm"}},
	} {
		if got := places(c.got); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

func lastIndex(s []string, v string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == v {
			return i
		}
	}
	return -1
}

// A crash between writing the kept lines and removing the file leaves both:
// nothing is counted twice, whatever is read first.
func TestCrashInRotationCountsNothingTwice(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(0)}
	l := openLog(t, dir, Options{Now: c.now})
	loadNow(t, l)
	for i := range 3 {
		line := mainTurn(time.Duration(i)*time.Second, "s", "glm", uint64(i+1), 0)
		line.Input = 10
		mustAppend(t, l, line)
	}
	first := filepath.Join(dir, fileNames(t, dir)[0])
	saved, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.add(15*day + 6*time.Hour + 30*time.Minute)
		mustAppend(t, l, mainTurn(c.now().Sub(at(0)), "other", "glm", 50, 0))
	}
	l.Maintain()
	if _, err := os.Stat(first); err == nil {
		t.Fatal("the first file is still there")
	}
	if err := os.WriteFile(first, saved, 0o600); err != nil {
		t.Fatal(err)
	}
	line := mainTurn(c.now().Sub(at(0))+time.Minute, "s", "glm", 9, 0)
	line.Input = 10
	mustAppend(t, l, line)
	l.Close()
	if got, _ := reload(t, dir, Options{Now: c.now}).Index().Last("claude-code", "s"); got.Turns != 4 || got.Input != 40 || got.Key != 9 {
		t.Errorf("got %+v, want 4 turns and 40 tokens", got)
	}
}

func TestSizeLimitRemovesOldestFirst(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(0)}
	l := openLog(t, dir, Options{Now: c.now, MaxBytes: 64 << 10})
	loadNow(t, l)
	mustAppend(t, l, mainTurn(0, "first", "glm", 1, 2))
	for i := range 2000 { // all in one day: its file is cut into parts
		mustAppend(t, l, mainTurn(time.Duration(i+1)*time.Millisecond, fmt.Sprint("s", i%5), "glm", uint64(i+10), 0))
		if i%100 == 0 {
			l.Maintain()
		}
	}
	l.Maintain()
	names := fileNames(t, dir)
	var total int64
	for _, n := range names {
		info, err := os.Stat(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 80<<10 || len(names) < 3 || names[0] == "requests-2026-03-10.jsonl" {
		t.Errorf("%d bytes in %v, want at most 64 KB in parts", total, names)
	}
	l.Close()
	x := reload(t, dir, Options{Now: c.now}).Index()
	if got := places(x.ByKey(1)); !reflect.DeepEqual(got, []string{"first@glm"}) {
		t.Errorf("the first conversation's key: %v", got)
	}
}

func TestRotationWaits(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(0)}
	files := newFaultFiles()
	l := openLog(t, dir, Options{Now: c.now, fs: files})
	mustAppend(t, l, mainTurn(0, "s", "glm", 1, 2))
	for range 2 {
		c.add(20 * day)
		mustAppend(t, l, mainTurn(c.now().Sub(at(0)), "other", "glm", 3, 0))
	}
	l.Maintain()
	if n := len(fileNames(t, dir)); n != 3 {
		t.Errorf("%d files: rotated before what is live was known", n)
	}
	loadNow(t, l)
	files.set(func() { files.room = 0 })
	l.Append(mainTurn(0, "waits", "glm", 4, 0))
	l.Maintain()
	if n := len(fileNames(t, dir)); n != 3 {
		t.Errorf("%d files: rotated while the disk refuses", n)
	}
}

// A conversation that the index takes for idle is kept if the pins say that it
// lives.
func TestLiveIsAskedForIdleConversations(t *testing.T) {
	for _, live := range []bool{false, true} {
		dir := logDir(t)
		c := &clock{t: at(0)}
		l := openLog(t, dir, Options{Now: c.now, Live: func(_, session string) bool { return live && session == "s" }})
		loadNow(t, l)
		mustAppend(t, l, mainTurn(0, "s", "glm", 1, 2), mainTurn(0, "t", "glm", 3, 4))
		for range 2 {
			c.add(40 * day)
			mustAppend(t, l, mainTurn(c.now().Sub(at(0)), "other", "glm", 5, 0))
		}
		if err := l.rotate(c.now()); err != nil {
			t.Fatal(err)
		}
		l.Close()
		x := reload(t, dir, Options{Now: c.now}).Index()
		_, s := x.Last("claude-code", "s")
		_, other := x.Last("claude-code", "t")
		if s != live || other {
			t.Errorf("live %v: s is known: %v; t: %v, want not", live, s, other)
		}
	}
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]bool{
		"requests-2026-03-10.jsonl":     true,
		"requests-2026-03-10.2.jsonl":   true,
		"requests-2026-03-10.255.jsonl": true,
		"requests-2026-03-10.1.jsonl":   false,
		"requests-2026-03-10.02.jsonl":  false,
		"requests-2026-03-10.256.jsonl": false,
		"requests-2026-02-30.jsonl":     false,
		"requests-2026-03-10.jsonl.gz":  false,
		"requests-1969-03-10.jsonl":     false,
		"requests-.jsonl":               false,
		"proxy.log":                     false,
	} {
		id, ok := parseName(name)
		if ok != want || ok && id.name() != name {
			t.Errorf("%q: %v, %q", name, ok, id.name())
		}
	}
	if !(newFileID(5, 1) < newFileID(5, 2) && newFileID(5, 255) < newFileID(6, 1)) {
		t.Error("files are not ordered by day and part")
	}
}
