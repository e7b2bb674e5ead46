package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/supervise/ahead"
	"agentop/router/control"
	"agentop/router/fakeserver"
)

// The test binary is the worker, too: what it does is in this variable.
const roleEnv = "AGENTOP_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if slices.Equal(os.Args[1:], ahead.Worker) {
		role = "worker"
	}
	switch role {
	case "":
		os.Exit(m.Run())
	case "supervisor":
		os.Exit(supervisorMain())
	case "starting":
		fmt.Println("started")
		time.Sleep(time.Hour) // it is killed
	case "taking":
		if _, found := ahead.Take(); !found {
			fmt.Println("none is ahead")
		}
	case "environment":
		_, _ = fmt.Fprintln(os.NewFile(ahead.SocketFD, "out"), strings.Join(os.Environ(), "\n"))
	default:
		os.Exit(workerMain())
	}
}

// workerMain is a worker that answers with its process number. A file in the
// home tells it to misbehave.
func workerMain() int {
	c, err := Inherit()
	if errors.Is(err, ErrUnneeded) {
		return 1
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir := os.Getenv(home.EnvName)
	switch mood, _ := os.ReadFile(filepath.Join(dir, "mood")); string(mood) {
	case "refuse":
		c.Failed("config.yaml:1: bad", "mend it")
		return 1
	case "crash":
		return 7
	case "hang":
		<-c.Drain()
		return 0
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "%d %s", os.Getpid(), c.Ended)
	})
	mux.HandleFunc("/arguments", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, os.Args[1:])
	})
	mux.HandleFunc("/restart", func(w http.ResponseWriter, r *http.Request) {
		var refused *control.Error
		switch err := c.Restart(r.Context()); {
		case errors.As(err, &refused):
			http.Error(w, refused.Message+" | "+refused.Hint, http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	var taken sync.WaitGroup
	server := &http.Server{Handler: mux, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			taken.Done()
		}
	}}
	// What is asked through a connection comes after this word.
	c.Ready("test", []string{c.Listeners()[0].Addr().String()})
	for _, l := range c.Listeners() {
		go func() { _ = server.Serve(&takenListener{l, &taken}) }()
	}
	select {
	case <-c.Drain():
	case <-c.Stop():
	}
	for _, l := range c.Listeners() {
		_ = l.Close()
	}
	taken.Wait() // the tests' connections end with their answer
	return 0
}

// takenListener counts from before a connection is accepted, so that none is
// dropped when the process ends.
type takenListener struct {
	net.Listener
	taken *sync.WaitGroup
}

func (l *takenListener) Accept() (net.Conn, error) {
	l.taken.Add(1)
	c, err := l.Listener.Accept()
	if err != nil {
		l.taken.Done()
	}
	return c, err
}

// supervisorMain is a supervisor in a process of its own, which tests may kill.
func supervisorMain() int {
	defer ahead.Drop()
	_ = os.Setenv(roleEnv, "worker")
	err := Run(context.Background(), testOptions(home.Home(os.Getenv(home.EnvName)), os.Getenv("AGENTOP_TEST_ADDRESS"), os.Stderr))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func testOptions(dir home.Home, address string, stderr io.Writer) Options {
	return Options{
		Home: dir, Version: "test", Stderr: stderr,
		Listen: func() (string, error) { return address, nil },
		Down: func(t Trouble) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				status := http.StatusBadRequest
				if t.Passing {
					status = http.StatusServiceUnavailable
				}
				http.Error(w, t.Text+" | "+t.Cure, status)
			})
		},
		Command: []string{"-test.run=^$"},
		Limits:  Limits{Ready: 2 * time.Second, Down: 300 * time.Millisecond, Poll: 50 * time.Millisecond, Backoff: 200 * time.Millisecond},
	}
}

// said collects what a supervisor says.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// bench is one supervisor of a test, in this process.
type bench struct {
	t       *testing.T
	dir     home.Home
	address string
	said    said
	stop    context.CancelFunc
	ended   chan error
}

func newBench(t *testing.T, mood string, change ...func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, dir: home.Home(t.TempDir()), address: freeAddress(t), ended: make(chan error, 1)}
	b.mood(mood)
	t.Setenv(roleEnv, "worker")
	t.Setenv(home.EnvName, b.dir.String())
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	o := testOptions(b.dir, b.address, &b.said)
	for _, c := range change {
		c(&o)
	}
	go func() { b.ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-b.ended; err != nil && !t.Failed() {
			t.Errorf("Run: %v", err)
		}
		if t.Failed() {
			t.Logf("the supervisor said:\n%s", b.said.String())
		}
	})
	return b
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := fakeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func (b *bench) mood(mood string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir.String(), "mood"), []byte(mood), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// get asks on a fresh connection.
func (b *bench) get(path string) (int, string) {
	b.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	res, err := client.Get("http://" + b.address + path)
	if err != nil {
		b.t.Fatalf("GET %s: %v", path, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}

// until asks until the answer is as wanted.
func (b *bench) until(path string, want func(status int, body string) bool) string {
	b.t.Helper()
	end := time.Now().Add(20 * time.Second)
	for {
		status, body := b.get(path)
		if want(status, body) {
			return body
		}
		if time.Now().After(end) {
			b.t.Fatalf("GET %s still gives %d %q", path, status, body)
		}
		time.Sleep(5 * time.Millisecond) // between questions to another process
	}
}

// open waits until the sockets are there.
func (b *bench) open() *bench {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { // between looks
		if _, held := Find(b.dir); held {
			if c, err := net.Dial("tcp", b.address); err == nil {
				_ = c.Close()
				return b
			}
		}
		if time.Now().After(end) {
			b.t.Fatalf("nobody listens: %s", b.said.String())
		}
	}
}

func pidOf(t *testing.T, body string) int {
	t.Helper()
	word, _, _ := strings.Cut(body, " ")
	pid, err := strconv.Atoi(word)
	if err != nil {
		t.Fatalf("no process number: %q", body)
	}
	return pid
}

func ok(status int, _ string) bool { return status == http.StatusOK }

func TestRestartReplacesTheWorker(t *testing.T) {
	b := newBench(t, "").open()
	first := pidOf(t, b.until("/pid", ok))
	if status, body := b.get("/restart"); status != http.StatusOK {
		t.Fatalf("restart: %d %s", status, body)
	}
	b.until("/pid", func(status int, body string) bool { return status == 200 && pidOf(t, body) != first })
}

func TestFailedHandOverKeepsTheOldWorker(t *testing.T) {
	for _, tc := range []struct{ mood, want string }{
		{"refuse", "config.yaml:1: bad; the present worker stays | mend it"},
		{"crash", "the new worker ended before it was ready: exit status 7; the present worker stays"},
		{"hang", "the new worker was not ready within 2s; the present worker stays"},
	} {
		t.Run(tc.mood, func(t *testing.T) {
			b := newBench(t, "").open()
			first := pidOf(t, b.until("/pid", ok))
			b.mood(tc.mood)
			if status, body := b.get("/restart"); status != http.StatusConflict || !strings.HasPrefix(body, tc.want) {
				t.Errorf("restart: got %d %q, want %d %q", status, body, http.StatusConflict, tc.want)
			}
			if now := pidOf(t, b.until("/pid", ok)); now != first {
				t.Errorf("worker %d serves, want still %d", now, first)
			}
			b.mood("")
			if status, body := b.get("/restart"); status != http.StatusOK {
				t.Errorf("restart once it is mended: %d %s", status, body)
			}
		})
	}
}

// A killed worker is replaced at once; its successor knows how it ended.
func TestKF_L12_KilledWorkerIsReplaced(t *testing.T) {
	b := newBench(t, "").open()
	first := pidOf(t, b.until("/pid", ok))
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	body := b.until("/pid", func(status int, body string) bool { return status == 200 && pidOf(t, body) != first })
	if want := fmt.Sprintf("the worker before (process %d, version test) ended: signal: killed", first); !strings.HasSuffix(body, want) {
		t.Errorf("the new worker knows %q, want %q at its end", body, want)
	}
}

// While no worker becomes ready, every request gets the reason; when it is
// mended, a worker serves without anybody's doing.
func TestDownServerTellsTheReason(t *testing.T) {
	for _, tc := range []struct {
		mood   string
		status int
		want   string
	}{
		{"refuse", http.StatusBadRequest, "config.yaml:1: bad | mend it"},
		{"crash", http.StatusServiceUnavailable, "the new worker ended before it was ready: exit status 7"},
	} {
		t.Run(tc.mood, func(t *testing.T) {
			b := newBench(t, tc.mood).open()
			// Until the first start has failed the answer is that it is under way.
			b.until("/v1/messages", func(status int, body string) bool {
				return status == tc.status && strings.Contains(body, tc.want)
			})
			holder, held := Find(b.dir)
			if !held || !strings.Contains(holder.Trouble+" | "+holder.Cure, tc.want) {
				t.Errorf("the lock tells of %+v, %v", holder, held)
			}
			b.mood("")
			if err := os.WriteFile(b.dir.Config(), []byte("# mended\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b.until("/pid", ok)
			if holder, _ := Find(b.dir); holder.Trouble != "" {
				t.Errorf("the lock still tells of trouble: %+v", holder)
			}
		})
	}
}

// A request that is only half there when a worker becomes ready is answered.
func TestDownServerAnswersWhatItIsReading(t *testing.T) {
	b := newBench(t, "refuse").open()
	isDown := func(status int, _ string) bool { return status == http.StatusBadRequest }
	b.until("/v1/messages", isDown)
	conn, err := net.Dial("tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /late HTTP/1.1\r\nHost: agentop\r\n"); err != nil {
		t.Fatal(err)
	}
	b.until("/v1/messages", isDown) // accepted after the one above
	b.mood("")
	if err := os.WriteFile(b.dir.Config(), []byte("# mended\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.until("/pid", ok)
	if _, err := io.WriteString(conn, "\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("got %q, %v, want the reason of the time when it began", answer, err)
	}
}

// A second supervisor finds the first and says who it is.
func TestKF_L3_SecondSupervisorNamesTheFirst(t *testing.T) {
	b := newBench(t, "").open()
	b.until("/pid", ok)
	err := Run(t.Context(), testOptions(b.dir, freeAddress(t), io.Discard))
	var held *HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() || held.Version != "test" {
		t.Errorf("got %v, want an error that names process %d", err, os.Getpid())
	}
}

// A lock file that a killed process left, or that names another program's
// process, stops no start.
func TestKF_L4_LeftLockFileStopsNobody(t *testing.T) {
	for name, content := range map[string]string{
		"of a dead process": `{"pid":999999,"version":"old","started":"2026-01-02T03:04:05Z"}`,
		"of another one":    fmt.Sprintf(`{"pid":%d}`, os.Getppid()),
		"of nobody":         "\x00\x00garbage",
	} {
		t.Run(name, func(t *testing.T) {
			dir := home.Home(t.TempDir())
			if err := os.WriteFile(dir.Lock(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, held := Find(dir); held {
				t.Error("a lock that nobody holds is found held")
			}
			l, ended, err := takeLock(dir, Holder{PID: 1, Version: "new"})
			if err != nil {
				t.Fatal(err)
			}
			if bad := content[0] == '{'; (ended != nil) != bad {
				t.Errorf("the last run's bad end: %+v, want one: %v", ended, bad)
			}
			if got, held := Find(dir); !held || got.PID != 1 {
				t.Errorf("Find: %+v, %v", got, held)
			}
			l.release()
			if data, err := os.ReadFile(dir.Lock()); err != nil || len(data) != 0 {
				t.Errorf("after a good end the file holds %q, %v", data, err)
			}
		})
	}
}

func TestForeignPortIsAnErrorAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := home.Home(t.TempDir())
	err = Run(t.Context(), testOptions(dir, l.Addr().String(), io.Discard))
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, want %v", err, syscall.EADDRINUSE)
	}
	if _, held := Find(dir); held {
		t.Error("the lock is still held")
	}
}
