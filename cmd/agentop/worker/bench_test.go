package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentop/agents"
	"agentop/filestore"
	"agentop/router"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/reqlog"
)

// The benchmarks of a whole request. Each measures agentop beside others in
// one run, client and server in this process too: what counts is by how much
// one is above `direct`, not the figure itself. docs/performance.md says more.

// events is how many events an answer has.
const events = 20

// eventStream answers at once, an event at a time. It tells when a request
// arrives.
func eventStream(b *testing.B, arrived func(session string)) string {
	b.Helper()
	piece := fmt.Appendf(nil, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", strings.Repeat("word ", 20))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		arrived(req.Header.Get("X-Claude-Code-Session-Id"))
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		for range events {
			_, _ = w.Write(piece)
			_ = out.Flush()
		}
		_, _ = io.WriteString(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// whole is agentop with everything on: a store and a request log on disk.
type whole struct {
	url   string
	store filestore.Store
	log   *reqlog.Log
}

type (
	noKey       struct{}
	noMetrics   struct{}
	memoryFirst struct{ router.PinStore } // without durability
)

func (noKey) Key(context.Context, *config.Server) (credential.Secret, error) {
	return credential.Secret{}, nil
}
func (noKey) Rejected(string)                              {}
func (noMetrics) Request(string, string, agents.Turn, int) {}
func (noMetrics) FirstByte(string, time.Duration)          {}
func (noMetrics) PinWrite(string)                          {}
func (noMetrics) Refused(string)                           {}
func (s memoryFirst) Put(ctx context.Context, key, value string, ttl time.Duration, _ bool) error {
	return s.PinStore.Put(ctx, key, value, ttl, false)
}

// wholeTo starts agentop before a server, with so many pins of other
// conversations and as many keys in the log's index.
func wholeTo(b *testing.B, server string, pins, keys int, durable bool) *whole {
	b.Helper()
	dir := b.TempDir()
	w := &whole{}
	var err error
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	if w.store, err = filestore.Open(context.Background(), filestore.FileURL(filepath.Join(dir, "pins.json")), filestore.WithLogger(quiet)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.store.Close() })
	for i := range pins {
		session := fmt.Sprintf("other-%d", i)
		value := fmt.Sprintf(`{"agent":"claude-code","session":%q,"server":"up","opened":"2026-01-02T03:04:05Z","renewed":"2026-01-02T03:04:05Z","pin":"new","why":"opened 03:04 when claude-code was set to up","names":{"claude-opus-4-5":"claude-opus-4-5"},"title":"Rename the parser of the settings","dir":"/home/dev/app"}`, session)
		if err := w.store.Set(router.PinPrefix+"claude-code:"+session, value, 31*24*time.Hour); err != nil {
			b.Fatal(err)
		}
	}
	if w.log, err = reqlog.Open(filepath.Join(dir, "log"), reqlog.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.log.Close() })
	for i := range keys {
		w.log.Register(reqlog.Placed{Agent: "claude-code", Session: fmt.Sprintf("other-%d", i%max(pins, 1)), Server: "up", Key: uint64(i+1) * 0x9e3779b97f4a7c15, At: time.Now()})
	}
	if err := w.log.Load(context.Background()); err != nil {
		b.Fatal(err)
	}
	cfg, err := config.Parse("config.yaml", fmt.Appendf(nil, "servers:\n  up: {url: %s, key: none}\nagents:\n  claude-code: {server: up, upstream: none}\n", server))
	if err != nil {
		b.Fatal(err)
	}
	stored, recorder := Join(w.store, w.log, new(atomic.Bool))
	if !durable {
		stored = memoryFirst{stored}
	}
	r := router.New(router.Parts{
		Config: func() *config.Config { return cfg }, Pins: stored, Recorder: recorder, Credentials: noKey{}, Meter: noMetrics{},
		Logger: quiet, Now: time.Now, Publish: func(control.Event) {}, Watched: func() bool { return false }, Metrics: http.NotFoundHandler(),
	})
	w.url = serveOn(b, router.NewServer(r, log.New(io.Discard, "", 0))) + "/claude-code"
	return w
}

func serveOn(b *testing.B, s interface {
	Serve(net.Listener) error
	Close() error
}) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	b.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}

// plainTo is the least that a proxy in Go takes that reads a body before it
// sends it: net/http's own on both sides.
func plainTo(b *testing.B, server string) string {
	b.Helper()
	to, err := url.Parse(server)
	if err != nil {
		b.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(to) },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	return serveOn(b, &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := make([]byte, req.ContentLength)
		if _, err := io.ReadFull(req.Body, body); err != nil {
			panic(http.ErrAbortHandler)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, req)
	})})
}

// turnOf is a body of a size as Claude Code sends it: messages, then the tools.
func turnOf(size int) []byte {
	text := strings.Repeat(`\tif err := store.Save(ctx, \"pins\"); err != nil {\n\t\treturn fmt.Errorf(\"save: %w\", err)\n\t}\n`, 30)
	var body bytes.Buffer
	body.WriteString(`{"model":"claude-opus-4-5","messages":[{"role":"user","content":"begin"}`)
	for i := 0; body.Len() < max(size-60_000, 0); i++ {
		fmt.Fprintf(&body, `,{"role":"assistant","content":[{"type":"text","text":"answer %d %s"}]},{"role":"user","content":[{"type":"text","text":"%s"}]}`, i, text[:200], text)
	}
	body.WriteString(`],"system":[{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."}],"tools":[`)
	for i := 0; body.Len() < size; i++ {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"name":"Tool%d","description":%q,"input_schema":{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}}`, i, strings.Repeat("It reads what is there. ", 70))
	}
	body.WriteString(`],"max_tokens":32000,"stream":true}`)
	return body.Bytes()
}

// ask sends one turn and reads the whole answer; it returns the time to the
// first byte.
func ask(b *testing.B, client *http.Client, base, session string, body []byte) time.Duration {
	req, err := http.NewRequest(http.MethodPost, base+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		b.Error(err)
		return 0
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"claude-cli/2.1.332 (external, cli)"}, "X-Claude-Code-Session-Id": {session}, "X-Api-Key": {"sk-fake-client"}}
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer res.Body.Close()
	var one [1]byte
	_, err = io.ReadFull(res.Body, one[:])
	first := time.Since(began)
	if _, rest := io.Copy(io.Discard, res.Body); err != nil || rest != nil || res.StatusCode != http.StatusOK {
		b.Errorf("status %d, %v, %v", res.StatusCode, err, rest)
	}
	return first
}

// cpu is what this process has used of the processors.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// many has callers do b.N things between them and reports processor time and
// the median of what one returns.
func many(b *testing.B, callers int, one func(i int) time.Duration) {
	var next atomic.Int64
	times := make([]time.Duration, b.N)
	var done sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	for range callers {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < b.N; i = int(next.Add(1)) - 1 {
				times[i] = one(i)
			}
		})
	}
	done.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2]), "p50-ns")
}

func newClient(b *testing.B) *http.Client {
	t := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// BenchmarkProxy is a turn of a running conversation: directly, through a
// plain proxy, and through agentop with 5,000 pins and 200,000 keys.
func BenchmarkProxy(b *testing.B) {
	server := eventStream(b, func(string) {})
	bases := map[string]string{"direct": server, "plain": plainTo(b, server), "agentop": wholeTo(b, server, 5000, 200_000, true).url}
	client := newClient(b)
	for _, size := range []int{100_000, 1_000_000, 3_200_000} {
		body := turnOf(size)
		for _, at := range []int{1, 32} {
			for _, via := range []string{"direct", "plain", "agentop"} {
				b.Run(fmt.Sprintf("bytes=%d/at=%d/via=%s", size, at, via), func(b *testing.B) {
					for i := range at { // connections, and pins
						ask(b, client, bases[via], fmt.Sprintf("running-%d", i), body)
					}
					many(b, at, func(i int) time.Duration {
						return ask(b, client, bases[via], fmt.Sprintf("running-%d", i%at), body)
					})
				})
			}
		}
	}
}

// BenchmarkOpening is the time from a new conversation's request to its
// arrival at the server, which is after its pin is on disk; beside the same
// without durability, and the least that anything durable costs.
func BenchmarkOpening(b *testing.B) {
	b.Run("fsynced-append", func(b *testing.B) {
		f, err := os.OpenFile(filepath.Join(b.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line := bytes.Repeat([]byte("x"), 500)
		for b.Loop() {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
	body := turnOf(20_000)
	for _, pins := range []int{100, 5000, 65_536} {
		for _, durable := range []bool{false, true} {
			var arrivals sync.Map
			server := eventStream(b, func(session string) { arrivals.Store(session, time.Now()) })
			w := wholeTo(b, server, pins, 0, durable)
			client := newClient(b)
			for _, at := range []int{1, 8, 64} {
				run := 0
				b.Run(fmt.Sprintf("pins=%d/durable=%t/at=%d", pins, durable, at), func(b *testing.B) {
					run++
					many(b, at, func(i int) time.Duration {
						session := fmt.Sprintf("new-%d-%d-%d", at, run, i)
						began := time.Now()
						ask(b, client, w.url, session, body)
						arrived, ok := arrivals.Load(session)
						if !ok {
							b.Errorf("%s never arrived", session)
							return 0
						}
						return arrived.(time.Time).Sub(began)
					})
				})
			}
		}
	}
}

// BenchmarkGrowth is a turn of a running conversation among ever more others.
func BenchmarkGrowth(b *testing.B) {
	server := eventStream(b, func(string) {})
	client := newClient(b)
	body := turnOf(100_000)
	for _, c := range []struct{ pins, keys int }{{10, 0}, {5000, 0}, {65_536, 1_000_000}} {
		w := wholeTo(b, server, c.pins, c.keys, true)
		b.Run(fmt.Sprintf("pins=%d/keys=%d", c.pins, c.keys), func(b *testing.B) {
			for i := range 32 {
				ask(b, client, w.url, fmt.Sprintf("running-%d", i), body)
			}
			many(b, 32, func(i int) time.Duration { return ask(b, client, w.url, fmt.Sprintf("running-%d", i%32), body) })
		})
	}
}
