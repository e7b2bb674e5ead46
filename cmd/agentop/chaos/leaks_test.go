//go:build linux

package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

// held is what a process holds.
type held struct {
	files, rss int // rss in kB
	temporary  []string
}

// holds measures the worker when nothing runs.
func (s *stage) holds(pid int) held {
	h := held{files: openFiles(pid)}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		s.t.Fatal(err)
	}
	if m := regexp.MustCompile(`VmRSS:\s+(\d+)`).FindSubmatch(status); m != nil {
		h.rss, _ = strconv.Atoi(string(m[1]))
	}
	for _, pattern := range []string{"*.tmp*", ".*", "*.corrupt*", "log/*.tmp*"} {
		h.temporary = append(h.temporary, s.match(pattern)...)
	}
	return h
}

// goroutines ends the worker and counts what it was doing.
func (s *stage) goroutines(pid int) int {
	before, _ := os.ReadFile(s.log.Name())
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		s.t.Fatal(err)
	}
	n := 0
	s.until("the worker has told its goroutines", patience, func() bool {
		said, _ := os.ReadFile(s.log.Name())
		said = said[len(before):]
		n = len(regexp.MustCompile(`(?m)^goroutine \d+ `).FindAll(said, -1))
		return strings.Contains(string(said), "another") || strings.Contains(string(said), "ended: ") || strings.Contains(string(said), "rip ") || strings.Contains(string(said), "pc ")
	})
	return n
}

// in runs f n times, some at once.
func in(n, atOnce int, f func(i int)) {
	var wait sync.WaitGroup
	for w := range atOnce {
		wait.Go(func() {
			for i := w; i < n; i += atOnce {
				f(i)
			}
		})
	}
	wait.Wait()
}

// TestLeaks sends many requests, of which many are given up, and changes the
// configuration many times. Descriptors, goroutines, temporary files and memory
// are then what they were.
func TestLeaks(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("what a process holds is read from Linux's /proc")
	}
	requests, aborts, reloads := 3000, 300, 20
	if full {
		requests, aborts, reloads = 200_000, 10_000, 1000
	}
	s := newStage(t, stageOptions{env: []string{"GOTRACEBACK=all"}})
	// Answers that are too short for a mark: what conversations are known by is
	// kept, up to the bounds of its tables, and is no leak.
	short := func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
		b := fakeserver.Behaviour{Text: "ok", Unsigned: true}
		if strings.Contains(string(rec.Plain), "never answered") {
			b.FirstByte = time.Hour
		}
		return b
	}
	s.script.Store(&short)
	turn := func(i int) {
		c := &talk{client: &clients[i%2*2], id: fmt.Sprint("leak-", i%100)}
		if _, _, err := s.send(c, []message{{"user", c.id}}); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	quiet := func() {
		s.transport.CloseIdleConnections()
		s.until("nothing is in flight", patience, func() bool { st, ok := s.status(); return ok && st.Streams == 0 && st.Store.Unsaved == 0 })
	}
	in(2000, 16, turn)
	quiet()
	time.Sleep(time.Second) // kept connections to servers live for half of that
	pid := s.worker()
	before := s.holds(pid)
	began := time.Now()
	in(requests, 16, turn)
	in(aborts, 16, func(i int) { s.abort(t, i) })
	for i := range reloads {
		s.choice = map[bool]string{true: "a", false: "b"}[i%2 == 0]
		s.write("config.yaml", s.config()+fmt.Sprintf("# %d\n", i))
		if i%10 == 0 {
			turn(i)
		}
	}
	took := time.Since(began)
	quiet()
	var after held
	s.until("the descriptors are given back", patience, func() bool { after = s.holds(pid); return after.files <= before.files+3 })
	goroutines := s.goroutines(pid)
	fresh := newStage(t, stageOptions{env: []string{"GOTRACEBACK=all"}})
	baseline := fresh.goroutines(fresh.worker())
	t.Logf("%d requests, %d given up, %d reloads in %s: descriptors %d to %d, memory %d to %d kB, goroutines %d, of a fresh worker %d, temporary files %v",
		requests, aborts, reloads, took.Round(time.Second), before.files, after.files, before.rss, after.rss, goroutines, baseline, after.temporary)
	if len(after.temporary) > len(before.temporary) {
		t.Errorf("files that were left: %v", after.temporary)
	}
	if after.rss > before.rss+before.rss/2+20<<10 {
		t.Errorf("memory: %d kB, then %d", before.rss, after.rss)
	}
	if baseline == 0 || goroutines > baseline+8 {
		t.Errorf("%d goroutines, a fresh worker has %d", goroutines, baseline)
	}
}

// abort begins a request and gives it up: before an answer, or inside of one.
func (s *stage) abort(t *testing.T, i int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	text := "never answered"
	if i%2 == 0 {
		text = "given up"
	}
	c := &clients[0]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+c.path, strings.NewReader(c.body([]message{{"user", text}})))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(c.session, fmt.Sprint("abort-", i%50))
	if i%2 != 0 {
		time.AfterFunc(20*time.Millisecond, cancel)
	}
	res, err := s.transport.RoundTrip(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	_, _ = io.ReadFull(res.Body, make([]byte, 20)) // and no more
}
