package reqlog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// childEnv holds the directory and the name of a child that appends until it
// is killed, telling of each line that Append returned for.
const childEnv = "REQLOG_TEST_CHILD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		dir, name, _ := strings.Cut(spec, "|")
		appendForever(dir, name)
	}
	os.Exit(m.Run())
}

func appendForever(dir, name string) {
	l, err := Open(dir, Options{})
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		line := Line{Kind: KindTurn, Turn: TurnContinuation, Agent: "codex", Session: fmt.Sprintf("%s-%d", name, i),
			Server: "glm", Key: Hex(uint64(i + 1)), Path: strings.Repeat("x", i%500)}
		if err := l.Append(line); err != nil {
			fmt.Println("append:", err)
			os.Exit(1)
		}
		fmt.Printf("ok %d\n", i)
	}
}

// child starts a process that appends, and returns a function that waits for
// n lines, kills it and returns how many it was told of.
func child(t *testing.T, dir, name string, n int) func() int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+dir+"|"+name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() int {
		told := 0
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			if !strings.HasPrefix(scan.Text(), "ok ") {
				t.Errorf("child %s: %s", name, scan.Text())
				continue
			}
			if told++; told == n {
				cmd.Process.Kill() // what it tells until it is dead counts too
			}
		}
		cmd.Wait()
		return told
	}
}

// What Append returned for is there after kill -9, however soon after; with two
// processes in one file no line is cut by the other's.
func TestKilledProcessesLoseNoLine(t *testing.T) {
	dir := logDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for round := range 3 {
		a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
		waitA, waitB := child(t, dir, a, 200*(round+1)), child(t, dir, b, 300)
		var wg sync.WaitGroup
		var mu sync.Mutex
		for name, wait := range map[string]func() int{a: waitA, b: waitB} {
			wg.Go(func() {
				n := wait()
				mu.Lock()
				defer mu.Unlock()
				told[name] = n
			})
		}
		wg.Wait()
	}
	l := reload(t, dir, Options{Now: time.Now})
	for name, n := range told {
		for i := range n {
			if c, ok := l.Index().Last("codex", fmt.Sprintf("%s-%d", name, i)); !ok || c.Turns != 1 || c.Key != uint64(i+1) {
				t.Fatalf("line %d of %d of %s: %+v, %v", i, n, name, c, ok)
			}
		}
	}
	// A process that is killed within its write may leave half a line, of which
	// it told nobody; the other's next line is glued to it, and read.
	if s := l.State(); s.Damaged > uint64(len(told)) {
		t.Errorf("%d damaged lines of %d processes", s.Damaged, len(told))
	}
}

// Two logs of one process stand for two workers.
func TestFollowingTheOtherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := logDir(t)
		older := openLog(t, dir, Options{})
		mustAppend(t, older, mainTurn(0, "before", "glm", 1, 2))
		newer := openLog(t, dir, Options{})
		mustAppend(t, newer, mainTurn(0, "own", "glm", 3, 4))
		mustAppend(t, older, mainTurn(1, "between", "lab", 5, 6))
		loadNow(t, newer)
		var seen []string
		stop := newer.Subscribe(func(l Line) { seen = append(seen, l.Session) })
		newer.CatchUp()
		if newer.Index().ByKey(5) != nil {
			t.Error("caught up without being told to follow")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- newer.Follow(ctx) }()
		synctest.Wait()
		if got := places(newer.Index().ByKey(5)); !reflect.DeepEqual(got, []string{"between@lab"}) {
			t.Errorf("line between Open and Follow: %v", got)
		}
		mustAppend(t, older, mainTurn(2, "stream", "lab", 7, 8))
		newer.CatchUp()
		if got := places(newer.Index().ByMark(8)); !reflect.DeepEqual(got, []string{"stream@lab"}) {
			t.Errorf("after CatchUp: %v", got)
		}
		for i := range 10 {
			mustAppend(t, newer, mainTurn(time.Duration(3+i), "own", "glm", 9, 0))
			mustAppend(t, older, mainTurn(time.Duration(3+i), "stream", "lab", 7, 8))
		}
		time.Sleep(pollEvery + time.Millisecond)
		synctest.Wait()
		for session, want := range map[string]int{"own": 11, "stream": 11, "before": 1, "between": 1} {
			if c, _ := newer.Index().Last("claude-code", session); c.Turns != want {
				t.Errorf("%d turns of %s, want %d", c.Turns, session, want)
			}
		}
		mustAppend(t, older, mainTurn(20, "last", "lab", 11, 12))
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Follow: %v", err)
		}
		if newer.Index().ByKey(11) == nil {
			t.Error("what was written just before the end is not known")
		}
		stop()
		mustAppend(t, newer, mainTurn(21, "after", "lab", 0, 0))
		if len(seen) != 23 {
			t.Errorf("%d lines were told, want 23: %v", len(seen), seen)
		}
		if s := newer.State(); s.Damaged != 0 {
			t.Errorf("%d damaged", s.Damaged)
		}
		older.Close()
		newer.Close()
	})
}

// A worker follows the one before it, and later the one that takes over from
// it; its own lines of the time between are not taken twice.
func TestFollowingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := logDir(t)
		other := openLog(t, dir, Options{})
		l := openLog(t, dir, Options{})
		loadNow(t, l)
		follow := func() {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- l.Follow(ctx) }()
			synctest.Wait()
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Follow: %v", err)
			}
		}
		for i := range 3 {
			mustAppend(t, l, mainTurn(time.Duration(2*i), "own", "glm", 1, 0))
			mustAppend(t, other, mainTurn(time.Duration(2*i+1), "other", "lab", 2, 0))
			follow()
		}
		for _, session := range []string{"own", "other"} {
			if c, _ := l.Index().Last("claude-code", session); c.Turns != 3 {
				t.Errorf("%d turns of %s, want 3", c.Turns, session)
			}
		}
		other.Close()
		l.Close()
	})
}

// A line that is being written is not taken for a damaged one.
func TestFollowWaitsForTheWholeLine(t *testing.T) {
	dir := logDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "requests-2026-03-10.jsonl")
	one, two := mainTurn(0, "one", "glm", 1, 0), mainTurn(0, "two", "glm", 2, 0)
	b := appendLine(appendLine(nil, &one), &two)
	for cut := 0; cut < len(b); cut += 13 {
		if err := os.WriteFile(name, b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l := openLog(t, dir, Options{})
		l.following.setActive(true)
		for to := cut; to <= len(b); to += 61 {
			os.WriteFile(name, b[:to], 0o600)
			l.CatchUp()
		}
		os.WriteFile(name, b, 0o600)
		l.CatchUp()
		loadNow(t, l)
		if l.Index().ByKey(1) == nil || l.Index().ByKey(2) == nil {
			t.Fatalf("cut at %d: key 1 of %v, key 2 of %v", cut, l.Index().ByKey(1), l.Index().ByKey(2))
		}
		l.Close()
	}
}

// A turn that was in flight when its conversation was forgotten is nobody's,
// live and after a restart, although a newer file holds it.
func TestTurnInFlightWhenForgotten(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(11*time.Hour + 59*time.Minute)}
	start := c.now().Sub(at(0))
	l := openLog(t, dir, Options{Now: c.now})
	mustAppend(t, l, pinLine(start, "s", "glm", 1), forgetLine(start+2*time.Second, "s"))
	c.add(5 * time.Minute) // past midnight
	mustAppend(t, l, pinLine(start+100*time.Second, "s", "lab", 2), mainTurn(start+time.Second, "s", "glm", 3, 4))
	l.Close()
	if got := fileNames(t, dir); len(got) != 2 {
		t.Fatalf("files %v, want two", got)
	}
	for name, x := range map[string]*Index{"live": l.Index(), "restarted": reload(t, dir, Options{Now: c.now}).Index()} {
		if x.ByKey(1) != nil || x.ByKey(3) != nil || x.ByMark(4) != nil {
			t.Errorf("%s: keys of %v, %v, mark of %v, want nobody's", name, x.ByKey(1), x.ByKey(3), x.ByMark(4))
		}
		if c, ok := x.Last("claude-code", "s"); !ok || c.Server != "lab" || c.Turns != 0 {
			t.Errorf("%s: %+v, %v", name, c, ok)
		}
	}
	var logged []Line
	Read(t.Context(), dir, Filter{Kind: KindTurn}, func(l Line) bool { logged = append(logged, l); return true })
	if len(logged) != 1 || logged[0].Key != "" || logged[0].Mark != "" {
		t.Errorf("logged %+v, want no key and no mark", logged)
	}
}

// Loading is in the background: what is looked up, registered and appended
// meanwhile is neither lost nor undone.
func TestLoadBesideRequests(t *testing.T) {
	dir := logDir(t)
	writeHeavyUser(t, dir, 5000)
	l := openLog(t, dir, Options{})
	first, err := Tail(t.Context(), dir, 1, Filter{Main: true})
	if err != nil {
		t.Fatal(err)
	}
	session := first[0].Session
	mustAppend(t, l, moveLine(time.Hour, session, "lab"))
	done := make(chan error)
	go func() { done <- l.Load(t.Context()) }()
	for i := 0; ; i++ {
		select {
		case <-l.Loaded():
		default:
			l.Register(Placed{Agent: "codex", Session: fmt.Sprint(i % 100), Server: "glm", Key: uint64(i + 1), At: at(time.Hour)})
			mustAppend(t, l, mainTurn(time.Hour, "live", "glm", 0, 0))
			continue
		}
		break
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c, ok := l.Index().Last("claude-code", session); !ok || c.Server != "lab" || c.Turns == 0 {
		t.Errorf("a conversation that was moved while loading: %+v, %v", c, ok)
	}
	if s := l.State(); !s.Loaded || s.Damaged != 0 || s.Conversations < 1000 {
		t.Errorf("state %+v", s)
	}
}

func TestLoadEndsWhenCancelled(t *testing.T) {
	dir := logDir(t)
	writeHeavyUser(t, dir, 3000)
	l := openLog(t, dir, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Load(ctx); err == nil {
		t.Error("Load of a cancelled context returns no error")
	}
	<-l.Loaded() // nobody waits for ever
}
