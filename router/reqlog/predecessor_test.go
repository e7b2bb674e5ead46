package reqlog

import (
	"context"
	"fmt"
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
