package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentop/router/control"
	"agentop/router/fakeserver"
)

// The load of the hand-over tests: clients that keep their connection, and
// slow streams, one after the other each.
const (
	keepers = 50
	slow    = 6
)

// rounds is how often each of the tests hands over or kills.
func rounds() int {
	if os.Getenv("AGENTOP_TEST_FULL") != "" {
		return 20
	}
	return 4
}

// slowServer answers sessions whose name begins with slow- for about three
// seconds, all others at once.
func slowServer(t *testing.T, s *stage) {
	t.Helper()
	s.replace("a", fakeserver.Options{Name: "a", KeepRecords: 1, Script: func(rec *fakeserver.Record) fakeserver.Behaviour {
		if strings.HasPrefix(rec.Header.Get("X-Claude-Code-Session-Id"), "slow-") {
			return fakeserver.Behaviour{Interval: 100 * time.Millisecond, Events: 30, TextBytes: 600}
		}
		return fakeserver.Behaviour{}
	}})
	s.restart()
}

// load runs the clients until the returned function is called, which waits for
// their last answers.
func (s *stage) load() (quick, streams *tally, end func()) {
	quick, streams = new(tally), new(tally)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range keepers {
		k := &keeper{address: s.address, session: fmt.Sprintf("keep-%d", i)}
		// Some are always at it, some are idle when the worker is replaced.
		wg.Go(func() { k.run(stop, time.Duration(5+i*12)*time.Millisecond, quick) })
	}
	for i := range slow {
		k := &keeper{address: s.address, session: fmt.Sprintf("slow-%d", i)}
		wg.Go(func() { k.run(stop, time.Millisecond, streams) })
	}
	return quick, streams, func() { close(stop); wg.Wait() }
}

func (s *stage) control() *control.Client {
	c := control.Dial(s.home)
	s.t.Cleanup(c.Close)
	return c
}

// status waits for a worker to answer.
func (s *stage) status(c *control.Client, want func(control.Status) bool) control.Status {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		got, err := c.Status(ctx)
		if err == nil && want(got) {
			return got
		}
		if ctx.Err() != nil {
			s.t.Fatalf("the proxy's status is not what it should become: %+v, %v\n%s", got, err, s.said())
		}
		time.Sleep(5 * time.Millisecond) // between questions to another process
	}
}

// TestPromise6_HandOversLoseNothing replaces the worker again and again under load. No
// request may be lost, no stream cut, no connection refused.
func TestPromise6_HandOversLoseNothing(t *testing.T) {
	s := newStage(t)
	slowServer(t, s)
	c := s.control()
	before := s.status(c, func(control.Status) bool { return true })
	quick, streams, end := s.load()
	shown := 0
	for i := range rounds() {
		time.Sleep(300 * time.Millisecond) // the load goes on
		began := time.Now()
		if err := c.Restart(t.Context()); err != nil {
			t.Fatalf("hand-over %d: %v", i, err)
		}
		after := s.status(c, func(now control.Status) bool { return now.PID != before.PID })
		for _, d := range after.Draining {
			if d.Streams > 0 {
				shown++
				break
			}
		}
		t.Logf("hand-over %d: %d -> %d in %s, draining %+v", i, before.PID, after.PID, time.Since(began).Round(time.Millisecond), after.Draining)
		before = after
	}
	end()
	losses, answers, longest := quick.take()
	cut, whole, _ := streams.take()
	t.Logf("%d answers and %d slow streams over %d hand-overs; the longest wait was %s", answers, whole, rounds(), longest)
	for _, l := range append(losses, cut...) {
		t.Errorf("lost: %v (connected %v)", l.err, l.dialed)
	}
	if shown == 0 {
		t.Error("no hand-over showed the streams of the worker before")
	}
	if whole < slow {
		t.Errorf("%d slow streams ended, want some for each client", whole)
	}
	s.status(c, func(now control.Status) bool { return len(now.Draining) == 0 })
}

// TestRestartIsAnswered restarts a proxy that has nothing else to do, so that
// the worker that was asked ends as soon as it may: not before its answer.
func TestRestartIsAnswered(t *testing.T) {
	s := newStage(t)
	for i := range 10 {
		if err := s.control().Restart(t.Context()); err != nil {
			t.Fatalf("restart %d: %v", i, err)
		}
	}
}

// TestKilledWorkersLoseOnlyTheirOwn kills the worker with -9 again and again
// under load. Only what it had in flight may be lost, and no connection is
// refused.
func TestKilledWorkersLoseOnlyTheirOwn(t *testing.T) {
	s := newStage(t)
	slowServer(t, s)
	c := s.control()
	before := s.status(c, func(control.Status) bool { return true })
	quick, streams, end := s.load()
	var kills []kill
	for i := range rounds() {
		time.Sleep(300 * time.Millisecond) // the load goes on
		began := time.Now()
		if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		after := s.status(c, func(now control.Status) bool { return now.PID != before.PID })
		kills = append(kills, kill{began, time.Now()})
		t.Logf("kill %d: %d -> %d in %s", i, before.PID, after.PID, time.Since(began).Round(time.Millisecond))
		before = after
	}
	end()
	losses, answers, longest := quick.take()
	cut, whole, _ := streams.take()
	t.Logf("%d answers, %d slow streams; lost %d and %d over %d kills; the longest wait was %s", answers, whole, len(losses), len(cut), len(kills), longest)
	for _, l := range append(losses, cut...) {
		if !l.dialed {
			t.Errorf("a connection was refused: %v", l.err)
		} else if !inFlightAt(kills, l) {
			t.Errorf("lost without having been in flight at a kill: %v", l.err)
		}
	}
	if !strings.Contains(s.proxyLog(), "signal: killed") {
		t.Error("proxy.log does not say how the worker before ended")
	}
}

// kill is when a worker was killed, and when the next one was seen, which is
// not before the killed one's sockets are closed.
type kill struct{ at, over time.Time }

// inFlightAt reports whether a request was on its way at one of the kills, and
// was told so: one that ends at its own limit has been forgotten.
func inFlightAt(kills []kill, l loss) bool {
	if errors.Is(l.err, os.ErrDeadlineExceeded) {
		return false
	}
	return slices.ContainsFunc(kills, func(k kill) bool {
		return l.opened.Before(k.over) && l.began.Before(k.over) && l.ended.After(k.at)
	})
}

func (s *stage) proxyLog() string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.home, "log", "proxy.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// TestKilledSupervisorLeavesNobodyListening kills the supervisor alone. Its
// worker stops listening at once and finishes its streams.
func TestKilledSupervisorLeavesNobodyListening(t *testing.T) {
	s := newStage(t)
	slowServer(t, s)
	c := s.control()
	worker := s.status(c, func(control.Status) bool { return true }).PID
	stream := make(chan loss, 1)
	k := &keeper{address: s.address, session: "slow-orphan"}
	go func() { stream <- k.request(time.Now()) }()
	s.status(c, func(now control.Status) bool { return now.Streams == 1 })
	if err := syscall.Kill(s.proxy.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.proxy.Wait()
	s.proxy = nil
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // between looks at another process
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(end) {
			t.Fatal("somebody still listens long after the supervisor was killed")
		}
	}
	if l := <-stream; l.err != nil {
		t.Errorf("the running stream was cut: %v", l.err)
	}
	// A new proxy starts on the same home and port while the old worker lives.
	s.start()
	s.status(c, func(now control.Status) bool { return now.PID != worker })
	if !strings.Contains(s.proxyLog(), "did not end in good order") {
		t.Error("proxy.log does not say that the last run ended badly")
	}
	for end := time.Now().Add(patience); !ended(worker); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("worker %d still lives long after its last stream", worker)
		}
	}
}

// TestReplacedBinaryTakesOver puts another build in the running one's place
// while a client streams: the stream ends normally, the new build serves, and
// the supervisor's process stays.
func TestReplacedBinaryTakesOver(t *testing.T) {
	s := newStage(t)
	slowServer(t, s)
	installed, upgrade := builds(t)(t)
	s.kill()
	s.run(exec.Command(installed, "proxy"))
	supervisor := s.proxy.Process.Pid
	c := s.control()
	s.status(c, func(now control.Status) bool { return now.Version != "v2.0.0" })
	quick, streams, end := s.load()
	s.status(c, func(now control.Status) bool { return now.Streams >= slow })
	if err := upgrade(); err != nil {
		t.Fatal(err)
	}
	s.status(c, func(now control.Status) bool { return now.Version == "v2.0.0" })
	s.status(c, func(control.Status) bool {
		data, err := os.ReadFile(filepath.Join(s.home, "proxy.lock"))
		return err == nil && strings.Contains(string(data), fmt.Sprintf(`"pid":%d,"version":"v2.0.0"`, supervisor))
	})
	// The new image supervises as the old one did.
	if err := c.Restart(t.Context()); err != nil {
		t.Errorf("a hand-over by the new image: %v", err)
	}
	end()
	losses, answers, _ := quick.take()
	cut, whole, _ := streams.take()
	t.Logf("%d answers, %d slow streams", answers, whole)
	for _, l := range append(losses, cut...) {
		t.Errorf("lost: %v (connected %v)", l.err, l.dialed)
	}
	s.status(c, func(now control.Status) bool { return len(now.Draining) == 0 })
}
