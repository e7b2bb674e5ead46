//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pacer is a server whose answers are slow streams: an event each second, that
// says when it was written.
type pacer struct {
	began    time.Time
	events   int // of one answer
	interval time.Duration
	over     chan struct{} // answers end when it is closed
}

func (p *pacer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for range p.events {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		_, _ = fmt.Fprintf(w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%d\"}}\n\n", time.Since(p.began))
		_ = out.Flush()
	}
	select {
	case <-p.over:
	case <-r.Context().Done():
	}
	_, _ = fmt.Fprint(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
}

// hear reads one stream and returns how late each event was.
func (p *pacer) hear(tr http.RoundTripper, url string, n int) (late []time.Duration, err error) {
	body := clients[0].body([]message{{"user", fmt.Sprint("stream ", n)}})
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", clients[0].version)
	req.Header.Set(clients[0].session, fmt.Sprint("stream-", n))
	res, err := tr.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		_, text, ok := bytes.Cut(lines.Bytes(), []byte(`"text":"`))
		if !ok {
			continue
		}
		now := time.Since(p.began)
		at, err := strconv.ParseInt(string(text[:bytes.IndexByte(text, '"')]), 10, 64)
		if err != nil {
			return nil, err
		}
		late = append(late, now-time.Duration(at))
	}
	return late, lines.Err()
}

// hearAll opens n streams within one interval and reads them to their ends;
// during is called when all are under way.
func (p *pacer) hearAll(t *testing.T, n int, url string, during func()) (late []time.Duration) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	var wait sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		wait.Go(func() {
			got, err := p.hear(tr, url, i)
			if err != nil || len(got) != p.events {
				t.Errorf("stream %d: %d of %d events, %v", i, len(got), p.events, err)
			}
			mu.Lock()
			defer mu.Unlock()
			late = append(late, got...)
		})
		time.Sleep(p.interval / time.Duration(n)) // they are spread over the interval, as people are
	}
	during()
	wait.Wait()
	slices.Sort(late)
	return late
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// TestManySlowStreams has thousands of agents listen to slow models through
// agentop, and some directly at the same time. No event may come much later
// through it, and what a stream costs in memory is printed and bounded.
func TestManySlowStreams(t *testing.T) {
	n, seconds := 100, 3
	if full {
		n, seconds = 2000, 300
	}
	s := newStage(t, stageOptions{})
	p := &pacer{began: time.Now(), interval: time.Second, events: seconds, over: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: p}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	base := "http://" + l.Addr().String()
	s.write("config.yaml", fmt.Sprintf("listen: %s\nservers:\n  slow: {url: %s, key: none}\nagents:\n  claude-code: {server: slow, upstream: none}\n", s.address, base))
	s.until("the slow server is chosen", patience, func() bool {
		st, ok := s.status()
		return ok && len(st.Servers) == 1 && st.Servers[0].Name == "slow"
	})

	pid := s.worker()
	before := s.holds(pid)
	var most, last held
	direct := make(chan []time.Duration, 1)
	go func() { direct <- p.hearAll(t, n/4, base+"/v1/messages", func() {}) }()
	late := p.hearAll(t, n, "http://"+s.address+clients[0].path, func() {
		s.until("all streams are under way", patience, func() bool { st, ok := s.status(); return ok && st.Streams == n })
		most = s.holds(pid)
		time.Sleep(time.Duration(seconds-2) * p.interval) // to look again when they have gone on for long
		last = s.holds(pid)
		close(p.over)
	})
	alone := <-direct
	perStream := func(h held) int { return (h.rss - before.rss) / n }
	t.Logf("%d streams for %d s: %d events; late at p50 %v, p99.9 %v, most %v; of %d direct ones %v, %v, %v; memory %d kB a stream at first, %d at the end",
		n, seconds, len(late), quantile(late, 0.5), quantile(late, 0.999), quantile(late, 1), n/4, quantile(alone, 0.5), quantile(alone, 0.999), quantile(alone, 1), perStream(most), perStream(last))
	if full && quantile(late, 0.999) > quantile(alone, 0.999)+50*time.Millisecond {
		t.Errorf("events were late at p99.9 by %v, directly by %v", quantile(late, 0.999), quantile(alone, 0.999))
	}
	if per := perStream(last); per > 256 {
		t.Errorf("a stream costs %d kB", per)
	}
	if last.rss > most.rss+most.rss/2+20<<10 {
		t.Errorf("memory grew while streams went on: %d kB, then %d", most.rss, last.rss)
	}
}
