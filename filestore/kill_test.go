package filestore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/filestore"
)

func init() { children["writer"] = writer }

// writer is a child that writes to a store until it is killed. It tells of
// each write before and after: "w KEY VALUE" and "a KEY VALUE".
// Its arguments are the file, its number among so many writers, and how many
// keys there are in all.
func writer(args []string) error {
	path, me, of, keys := args[0], atoi(args[1]), atoi(args[2]), atoi(args[3])
	s, err := filestore.Open(context.Background(), filestore.FileURL(path), quiet, filestore.WithSaveDelay(20*time.Millisecond), filestore.WithSpare(1))
	if err != nil {
		return err
	}
	const threads = 64
	var wg sync.WaitGroup
	for thread := range threads {
		wg.Go(func() {
			for {
				n := rand.IntN(keys/of/threads)*threads + thread
				key, val := fmt.Sprintf("k%d", n*of+me), time.Now().UnixNano()
				fmt.Printf("w %s %d\n", key, val)
				if n%5 == 0 { // now and then plainly, which acknowledges nothing
					s.Set(key, strconv.FormatInt(val, 10), 0)
					continue
				}
				if err := s.SetDurable(context.Background(), key, strconv.FormatInt(val, 10), 0); err != nil {
					fmt.Fprintln(os.Stderr, "writer:", err)
					continue
				}
				fmt.Printf("a %s %d\n", key, val)
			}
		})
	}
	wg.Wait()
	return nil
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// listen notes what a writer tells until its pipe ends, and closes first at
// the first write that is acknowledged, or at the end.
func (h *history) listen(mu *sync.Mutex, pipe io.Reader, first chan<- struct{}) {
	told := sync.OnceFunc(func() { close(first) })
	defer told()
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) != 3 {
			continue // cut by the kill
		}
		val, err := strconv.Atoi(f[2])
		if err != nil || len(f[2]) != 19 {
			continue
		}
		mu.Lock()
		if f[0] == "w" {
			h.written[f[1]] = max(h.written[f[1]], val)
		} else {
			h.acked[f[1]] = max(h.acked[f[1]], val)
			told()
		}
		mu.Unlock()
	}
}

// startWriter starts a writer whose telling goes to h. first is closed when
// it has a write acknowledged; wait returns when it is dead and all it told
// is noted.
func startWriter(t *testing.T, h *history, mu *sync.Mutex, args ...string) (cmd *exec.Cmd, first <-chan struct{}, wait func()) {
	t.Helper()
	cmd = child(t, nil, "writer", args...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard, acked := make(chan struct{}), make(chan struct{})
	go func() {
		h.listen(mu, pipe, acked)
		close(heard)
	}()
	return cmd, acked, func() {
		<-heard
		cmd.Wait()
	}
}

// TestKF_D1_KilledWhileSaving kills a writing child at random, again and again on one file.
func TestKF_D1_KilledWhileSaving(t *testing.T) {
	rounds := 25
	if full() {
		rounds = 300
	}
	path, h := newPath(t), newHistory()
	var mu sync.Mutex
	for round := range rounds {
		before := len(h.acked)
		cmd, first, wait := startWriter(t, h, &mu, path, "0", "1", "400")
		if round%4 > 0 { // one in four may die before it has written anything
			<-first
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		cmd.Process.Kill()
		wait()
		judgeFile(t, path, h)
		if t.Failed() {
			t.Fatalf("after kill %d; %d keys were acknowledged, %d before", round+1, len(h.acked), before)
		}
	}
	if len(h.acked) == 0 {
		t.Fatal("nothing was acknowledged in all rounds")
	}
	t.Logf("%d kills, %d keys acknowledged", rounds, len(h.acked))
}

func judgeFile(t *testing.T, path string, h *history) {
	t.Helper()
	s, err := filestore.Open(context.Background(), filestore.FileURL(path), quiet)
	if err != nil {
		t.Error(err)
		return
	}
	if err := h.judge(s); err != nil {
		t.Error(err)
	}
	if st := s.State(); len(st.SetAside) > 0 {
		t.Errorf("set aside: %q", st.SetAside)
	}
	mustClose(t, s)
}

// TestKF_D6_FourProcesses has four processes write 10,000 keys of one file, each
// killed and started again at random, while a reader parses the file all the
// time. At the end every acknowledged write is there.
func TestKF_D6_FourProcesses(t *testing.T) {
	duration := 4 * time.Second
	if full() {
		duration = 20 * time.Second
	}
	path, h := newPath(t), newHistory()
	var mu sync.Mutex
	stop := time.Now().Add(duration)
	var wg sync.WaitGroup
	kills := 0
	for me := range 4 {
		wg.Go(func() {
			for time.Now().Before(stop) {
				cmd, _, wait := startWriter(t, h, &mu, path, strconv.Itoa(me), "4", "10000")
				time.Sleep(min(time.Until(stop), time.Duration(200+rand.IntN(1500))*time.Millisecond))
				cmd.Process.Kill()
				wait()
				mu.Lock()
				kills++
				mu.Unlock()
			}
		})
	}
	wg.Go(func() { readAllTheTime(t, path, stop) })
	wg.Wait()
	judgeFile(t, path, h)
	if len(h.acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	t.Logf("%d kills, %d keys acknowledged", kills, len(h.acked))
}

// readAllTheTime wants the file to be whole JSON whenever it is there.
func readAllTheTime(t *testing.T, path string, stop time.Time) {
	for time.Now().Before(stop) {
		b, err := os.ReadFile(path)
		if err == nil && !json.Valid(b) {
			t.Errorf("a reader saw a broken file of %d bytes", len(b))
			return
		}
	}
}
