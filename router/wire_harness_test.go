package router

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

// patience is how long a test waits for what must happen at once: long enough
// for a busy machine, short enough that a failure is seen.
const patience = time.Minute

// logged is the proxy's log as a test sees it.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// watchLog makes the bench's router log into the returned buffer.
func (b *bench) watchLog() *logged {
	l := new(logged)
	b.router.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return l
}

// do sends one request with an exact path and returns the answer unread.
func (b *bench) do(method, path string, body io.Reader, header http.Header) *http.Response {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url, body)
	if err != nil {
		b.t.Fatal(err)
	}
	path, req.URL.RawQuery, _ = strings.Cut(path, "?")
	req.URL.Opaque = path
	if header != nil {
		req.Header = header
	}
	// One connection for each request, so that no test meets another's.
	client := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.t.Cleanup(cancel)
	res, err := client.RoundTrip(req.WithContext(ctx))
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	b.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// last is the newest request that a server got; it waits for its answer's end.
func (b *bench) last(server string) *fakeserver.Record {
	b.t.Helper()
	records := b.servers[server].Records()
	if len(records) == 0 {
		b.t.Fatalf("server %s got no request", server)
	}
	rec := records[len(records)-1]
	within(b.t, rec.Done, "the end of an answer at "+server)
	return rec
}

// within waits for done to be closed.
func within(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// event reads one server-sent event with the blank line behind it.
func event(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var text strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", text.String(), err)
		}
		text.WriteString(line)
		if strings.TrimRight(line, "\r\n") == "" {
			return text.String()
		}
	}
}

// lockstep is a stream whose server sends the next event only when the client
// has the one before: a proxy that holds anything back stops it for ever.
type lockstep struct {
	had     chan struct{} // a token for each event that the client has
	counts  string        // only events that contain it are counted
	stopped chan struct{}
}

func newLockstep(t *testing.T, counts string) *lockstep {
	l := &lockstep{had: make(chan struct{}, 1<<16), counts: counts, stopped: make(chan struct{})}
	t.Cleanup(func() { close(l.stopped) })
	return l
}

// gate is a fakeserver's Gate.
func (l *lockstep) gate(i int) {
	if i == 0 {
		return
	}
	select {
	case <-l.had:
	case <-l.stopped:
	}
}

// read takes a whole stream, event by event.
func (l *lockstep) read(t *testing.T, res *http.Response) (events []string) {
	t.Helper()
	late := time.AfterFunc(patience, func() { _ = res.Body.Close() })
	defer late.Stop()
	r := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		if _, err := r.Peek(1); err == io.EOF {
			return events
		}
		events = append(events, event(t, r)) // fails where the next one is held back
		if strings.Contains(events[len(events)-1], l.counts) {
			l.had <- struct{}{}
		}
	}
}

// upstream listens on loopback and hands each connection to serve, a goroutine
// each. It returns the base URL.
func upstream(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer c.Close()
				serve(c)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// only makes every agent's requests go to one server at url, with whatever
// else the server's line says.
func (b *bench) only(url, more string) {
	b.t.Helper()
	b.configure(fmt.Sprintf(`
servers:
  a: {url: %q, %s}
agents:
  claude-code: {server: a, upstream: none}
  codex: {server: a, upstream: none}
  opencode: {server: a, upstream: none}
  other: {server: a, upstream: none}
`, url, more))
}

// request reads one request off a connection; nil when there is none.
func request(r *bufio.Reader) (*http.Request, []byte) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, nil
	}
	return req, body
}

// answerJSON is a whole answer for a connection.
func answerJSON(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(body), body)
}

// full reports whether the long forms of tests are to run.
func full() bool { return os.Getenv("AGENTOP_TEST_FULL") != "" }
