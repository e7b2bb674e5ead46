package simulation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agentop/router/control"
	"agentop/router/reqlog"
)

// TestStartWithALongLog starts the built program on the log of a heavy user's
// month and no pins. It prints how soon the program is ready and how soon all
// of the log is known; the first conversation of the month is at home whenever
// it asks. AGENTOP_TEST_FULL=1 has 200,000 lines, else there are fewer.
func TestStartWithALongLog(t *testing.T) {
	lines := 20_000
	if os.Getenv("AGENTOP_TEST_FULL") != "" {
		lines = 200_000
	}
	w := withProgram(t, 9)
	for _, agent := range agentNames {
		w.choose(agent, "s3")
	}
	if err := w.apply(w.yaml()); err != nil {
		t.Fatal(err)
	}
	size := writeMonth(t, filepath.Join(w.dir, "log"), lines)
	var ready, known []time.Duration
	for i := range 5 {
		began := time.Now()
		if err := w.alive(); err != nil {
			t.Fatal(err)
		}
		ready = append(ready, time.Since(began))
		if i > 0 { // the first has it ask while the log is still being read
			untilLoaded(t, w.dir)
			known = append(known, time.Since(began))
		}
		c := &conversation{client: &clients[0], session: monthSession(0), home: "s1", family: &family{}}
		if !w.say(c, restarted) || c.last() != "s1" {
			t.Fatalf("start %d: the first conversation's reply was made by %q, want s1", i, c.last())
		}
		w.proxy.die()
		if err := os.Remove(w.pinFile()); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(ready)
	slices.Sort(known)
	if broken := w.broken(); len(broken) > 0 {
		t.Error(broken[0])
	}
	fmt.Printf("%d lines, %d MB: ready after %d ms (median of %d starts, %d to %d), all known after %d ms\n", lines, size>>20,
		ready[len(ready)/2].Milliseconds(), len(ready), ready[0].Milliseconds(), ready[len(ready)-1].Milliseconds(), known[len(known)/2].Milliseconds())
}

func monthSession(n int) string { return fmt.Sprintf("11111111-0000-4000-8000-%012d", n) }

// writeMonth writes the request log of thirty days: conversations of a hundred
// turns, the first of them on s1, and nothing of it after the first day.
func writeMonth(t *testing.T, dir string, lines int) (bytes int64) {
	t.Helper()
	clock := time.Now().Add(-29*24*time.Hour - time.Hour)
	step := time.Since(clock) / time.Duration(lines)
	l, err := reqlog.Open(dir, reqlog.Options{Now: func() time.Time { return clock }, MaxBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		clock = clock.Add(step)
		n := uint64(i + 1)
		line := reqlog.Line{
			Time: clock, Kind: reqlog.KindTurn, ID: fmt.Sprintf("req_%016x", n), Agent: "claude-code", Session: monthSession(i / 100),
			Turn: reqlog.TurnContinuation, Pin: reqlog.PinKept, Server: []string{"s1", "s2", "s4"}[i/100%3], Format: "messages", Method: "POST", Path: "/v1/messages",
			ModelAsked: "claude-opus-5-5", ModelSent: "claude-opus-5-5", Status: 200, Input: 120_000, CacheRead: 118_000, Output: 900,
			BytesIn: 480_000, BytesOut: 9_000, FirstMS: 640, TotalMS: 9_400,
			Key: reqlog.Hex(n * 0x9e3779b97f4a7c15), Mark: reqlog.Hex(n * 0xc2b2ae3d27d4eb4f), Responses: []string{fmt.Sprintf("msg_%024x", n)},
		}
		if err := l.Append(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}

// untilLoaded waits until the running program knows all of its log.
func untilLoaded(t *testing.T, home string) {
	t.Helper()
	c := control.Dial(home)
	defer c.Close()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if status, err := c.Status(context.Background()); err == nil && status.Log.Loaded {
			return
		}
	}
	t.Fatalf("the log is not loaded after %s", patience)
}
