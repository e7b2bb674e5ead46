package reqlog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// However many side requests and other conversations came after it, the last
// main turn of a conversation is found, as long as it is known at all.
func TestPredecessor_11_LastMainTurnHoweverFarBack(t *testing.T) {
	dir := t.TempDir()
	clock := &clock{t: at(0)}
	write, err := Open(dir, Options{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	must := func(l Line) {
		t.Helper()
		l.Time = clock.now()
		if err := write.Append(l); err != nil {
			t.Fatal(err)
		}
	}
	must(mainTurn(0, "long ago", "glm", 7, 8))
	for day := range 29 {
		for i := range 50 {
			side := sideLine(0, "lab", uint64(1000*day+i+100))
			side.Session = "long ago"
			must(side)
			must(mainTurn(0, fmt.Sprint("other ", day, i), "lab", uint64(1_000_000+1000*day+i), 0))
		}
		clock.add(24 * time.Hour)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := Open(dir, Options{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if err := read.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	if c, ok := read.Index().Last("claude-code", "long ago"); !ok || c.Server != "glm" || c.Turns != 1 {
		t.Errorf("after a start: %+v, %v; want its one main turn on glm", c, ok)
	}
	if got := places(read.Index().ByKey(7)); len(got) != 1 || got[0] != "long ago@glm" {
		t.Errorf("its key is of %v", got)
	}
}

// Who asks for what is known, or is not, waits for no disk: not even the first
// time, and not again and again for what is not there.
func TestPredecessor_12_LookUpsTouchNoDisk(t *testing.T) {
	files := newFaultFiles()
	l, err := Open(t.TempDir(), Options{fs: files})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Append(mainTurn(0, "s", "glm", 7, 8)); err != nil {
		t.Fatal(err)
	}
	if err := l.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := files.all()
	for i := range 1000 {
		for _, session := range []string{"s", fmt.Sprint("unknown ", i)} {
			l.Index().Last("claude-code", session)
			l.Index().ByResponse(session)
		}
		l.Index().ByKey(7)
		l.Index().ByMark(uint64(i) + 1)
		l.Register(Placed{Agent: "claude-code", Session: "s", Server: "glm", Key: uint64(i) + 1, At: time.Now()})
	}
	if after := files.all(); after != before {
		t.Errorf("file calls before %s, after %s", before, after)
	}
}

// The log is read in blocks and in files. What stands behind the line of a
// pin, at whatever distance from where a block or a file ends, is read too.
func TestPredecessor_13_NothingIsSkippedBehindAPin(t *testing.T) {
	for shift := range 40 {
		var file bytes.Buffer
		put := func(l Line) { file.Write(appendLine(nil, &l)) }
		padding := mainTurn(0, "padding", "lab", 0, 0)
		padding.Error = strings.Repeat("x", shift*17) // moves each line against the blocks
		put(padding)
		const each = 1000
		for i := range each {
			pin := mainTurn(time.Duration(i)*time.Second, fmt.Sprint("pinned ", i), "glm", uint64(i+1), 0)
			pin.Kind, pin.Turn, pin.Pin = KindPin, "opening", PinNew
			put(pin)
			put(mainTurn(time.Duration(i)*time.Second+time.Millisecond, fmt.Sprint("behind ", i), "lab", uint64(each+i+1), 0))
		}
		if file.Len() < blockSize {
			t.Fatalf("%d bytes are less than a block", file.Len())
		}
		dir := logDir(t)
		l := openLog(t, dir, Options{Now: (&clock{t: at(0)}).now})
		mustAppend(t, l, mainTurn(0, "first", "glm", 0, 0))
		l.Close()
		name := filepath.Join(dir, fileNames(t, dir)[0])
		if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		x := reload(t, dir, Options{Now: (&clock{t: at(time.Hour)}).now}).Index()
		for i := range each {
			for session, key := range map[string]int{"pinned": i + 1, "behind": each + i + 1} {
				want := fmt.Sprintf("%s %d@%s", session, i, map[string]string{"pinned": "glm", "behind": "lab"}[session])
				if got := places(x.ByKey(uint64(key))); len(got) != 1 || got[0] != want {
					t.Fatalf("shifted by %d: key %d is of %v, want %s", shift*17, key, got, want)
				}
			}
		}
	}
}
