package screen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"agentop/cmd/agentop/command/fakeproxy"
	"agentop/router/control"
)

// measured is a proxy with n conversations of which the measures are taken.
func measured(t *testing.T, n int) (home string, p *fakeproxy.Proxy) {
	t.Helper()
	home = shortHome(t)
	p, err := fakeproxy.Start(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	p.Sessions = nil
	for i := range n {
		p.Sessions = append(p.Sessions, session(i, 1))
	}
	return home, p
}

func session(i, turns int) control.Session {
	return control.Session{
		Agent: []string{"claude-code", "codex", "opencode"}[i%3], ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", i),
		Title: fmt.Sprintf("Conversation %d of the measure, with a title of some length", i), Dir: "/src/measure", Server: []string{"glm", "lab/gpu1:8000", "own"}[i%3],
		Pin: "new", Why: "opened 11:02 when it was set so", Opened: time.Now().Add(-time.Duration(i) * time.Second), LastTurn: time.Now(), Running: true,
		Streams: i % 2, Turns: turns, ModelAsked: "claude-opus-5-5", ModelSent: "glm-5", Context: 81_000, ContextMax: 200_000, Cached: 79_000,
		Input: 400_000, Output: 9_000, CacheRead: 380_000, FirstMS: 410, TotalMS: 9_900, Status: 200, Saved: true,
	}
}

// shown starts the screen at 120x40 and returns when a text is on it.
func shown(t *testing.T, home, text string) (cmd *exec.Cmd, tty *os.File, took time.Duration) {
	t.Helper()
	cmd = exec.Command(binary)
	cmd.Env = append(os.Environ(), "AGENTOP_HOME="+home, "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TMUX=")
	began := time.Now()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	b := make([]byte, 64<<10)
	for !strings.Contains(all.String(), text) {
		n, err := tty.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, &all)
		}
		all.Write(b[:n])
	}
	took = time.Since(began)
	go func() { _, _ = io.Copy(io.Discard, tty) }()
	return cmd, tty, took
}

// cpu is the time that a process has used.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // ticks of a hundredth
}

// The measures of docs/tui.md. They assert nothing: how fast a machine is is
// not the code's matter.
func TestMeasures(t *testing.T) {
	if os.Getenv("AGENTOP_TEST_FULL") == "" {
		fmt.Println("skipped TestMeasures: AGENTOP_TEST_FULL is not set")
		t.Skip("AGENTOP_TEST_FULL is not set")
	}
	home, p := measured(t, 200)
	var times []time.Duration
	for range 21 {
		cmd, tty, took := shown(t, home, "Conversation 19 of")
		_, _ = tty.WriteString("q")
		_ = cmd.Wait()
		_ = tty.Close()
		times = append(times, took)
	}
	slices.Sort(times)
	fmt.Printf("filled first screen, 200 conversations: median %v, slowest of 21 %v\n", times[10].Round(100*time.Microsecond), times[20].Round(100*time.Microsecond))

	cmd, tty, _ := shown(t, home, "Conversation 19 of")
	defer tty.Close()
	time.Sleep(2 * time.Second) // its start is over
	const idle = 30 * time.Second
	before := cpu(t, cmd.Process.Pid)
	time.Sleep(idle)
	fmt.Printf("idle: %.2f %% of a core\n", 100*float64(cpu(t, cmd.Process.Pid)-before)/float64(idle))

	const busy = 15 * time.Second
	before = cpu(t, cmd.Process.Pid)
	events := burst(p, busy)
	used := cpu(t, cmd.Process.Pid) - before
	fmt.Printf("%d events a second: %.1f %% of a core\n", events/int(busy/time.Second), 100*float64(used)/float64(busy))
	_, _ = tty.WriteString("q")
	_ = cmd.Wait()
}

// burst tells 1,000 events a second for a time.
func burst(p *fakeproxy.Proxy, d time.Duration) (events int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < d; <-tick.C {
		for events < int(time.Since(began)/time.Millisecond) {
			s := session(events%200, events)
			p.Hub.Publish(control.Event{Kind: control.EventSession, Session: &s})
			p.Hub.Publish(control.Event{Kind: control.EventRequest, Request: &control.Request{Time: time.Now(), ID: fmt.Sprint(events), Agent: s.Agent,
				Session: s.ID, Turn: "continuation", Server: s.Server, Method: "POST", Path: "/v1/messages", Model: "glm-5", Status: 200}})
			events += 2
		}
	}
	return events
}
