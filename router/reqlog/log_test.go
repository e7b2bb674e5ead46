package reqlog

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// at is a fixed moment, and d after it.
func at(d time.Duration) time.Time {
	return time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC).Add(d)
}

// logDir is a directory for a log; it is not there yet.
func logDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "log")
}

func openLog(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return at(0) }
	}
	l, err := Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// reload opens the log in dir anew and reads it back.
func reload(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	l := openLog(t, dir, o)
	if err := l.Load(context.Background()); err != nil {
		t.Fatalf("Load: %v", err)
	}
	return l
}

func mustAppend(t *testing.T, l *Log, lines ...Line) {
	t.Helper()
	for _, line := range lines {
		if err := l.Append(line); err != nil {
			t.Fatalf("Append(%+v): %v", line, err)
		}
	}
}

// mainTurn is a continuation of a claude-code conversation.
func mainTurn(d time.Duration, session, server string, key, mark uint64) Line {
	return Line{
		Time: at(d), Kind: KindTurn, Turn: TurnContinuation, Pin: PinKept, Agent: "claude-code",
		Session: session, Server: server, Status: 200, Key: Hex(key), Mark: Hex(mark),
	}
}

func TestWhatIsAppendedIsKnownAfterReload(t *testing.T) {
	dir := logDir(t)
	l := openLog(t, dir, Options{})
	line := mainTurn(0, "s1", "glm", 7, 8)
	line.Responses = []string{"resp_1"}
	mustAppend(t, l, line, Line{
		Time: at(1), Kind: KindTurn, Turn: TurnSide, Agent: "claude-code", Session: "s1", Server: "lab/gpu1", Mark: Hex(9),
	})
	l.Close()

	for name, l := range map[string]*Log{"writer": l, "reader": reload(t, dir, Options{})} {
		x := l.Index()
		if c, ok := x.Last("claude-code", "s1"); !ok || c.Server != "glm" || c.Turns != 1 || c.Key != 7 || c.Mark != 8 {
			t.Errorf("%s: Last = %+v, %v", name, c, ok)
		}
		want := Owner{"claude-code", "s1", "glm"}
		for what, got := range map[string][]Owner{"key": x.ByKey(7), "mark": x.ByMark(8), "response": x.ByResponse("resp_1")} {
			if len(got) != 1 || got[0] != want {
				t.Errorf("%s: by %s = %+v, want %+v", name, what, got, want)
			}
		}
		if got := x.ByMark(9); len(got) != 1 || got[0] != (Owner{Server: "lab/gpu1"}) || !got[0].Side() {
			t.Errorf("%s: a side request's mark = %+v", name, got)
		}
		if got := x.ByKey(8); got != nil {
			t.Errorf("%s: a mark is a key: %+v", name, got)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "requests-2026-03-10.jsonl"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info, err)
	}
}
