package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/fakeserver"
	"agentop/router/placement"
	"agentop/router/reqlog"
)

// memoryPins is a pin store that counts its durable writes and can refuse them.
type memoryPins struct {
	mu      sync.Mutex
	values  map[string]string
	durable int
	fail    bool
	before  func() // called before a durable write returns
}

func (m *memoryPins) Get(key string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[key]
	return v, ok
}

func (m *memoryPins) Put(_ context.Context, key, value string, _ time.Duration, durable bool) error {
	m.mu.Lock()
	m.values[key] = value
	fail, before := m.fail, m.before
	if durable {
		m.durable++
	}
	m.mu.Unlock()
	if durable && before != nil {
		before()
	}
	if fail {
		return errors.New("no space left on device")
	}
	return nil
}

func (m *memoryPins) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

// logRecorder records into a real request log.
type logRecorder struct{ log *reqlog.Log }

func (r logRecorder) Append(l reqlog.Line) { _ = r.log.Append(l) }
func (r logRecorder) Register(c placement.Conversation, server string, key uint64, arrived time.Time) {
	r.log.Register(reqlog.Placed{Agent: string(c.Agent), Session: c.Session, Server: server, Key: key, At: arrived})
}

func (r logRecorder) Answered(c placement.Conversation, server string, mark uint64, response string, arrived time.Time) {
	r.log.Register(reqlog.Placed{Agent: string(c.Agent), Session: c.Session, Server: server, Mark: mark, Response: response, At: arrived})
}
func (r logRecorder) Last(c placement.Conversation) (string, bool) {
	l, ok := r.log.Index().Last(string(c.Agent), c.Session)
	return l.Server, ok
}
func (r logRecorder) Response(id string) []placement.Owner {
	return ownersOf(r.log.Index().ByResponse(id))
}
func (r logRecorder) Key(k uint64) []placement.Owner  { return ownersOf(r.log.Index().ByKey(k)) }
func (r logRecorder) Mark(m uint64) []placement.Owner { return ownersOf(r.log.Index().ByMark(m)) }
func (r logRecorder) Loaded() <-chan struct{}         { return r.log.Loaded() }

func ownersOf(list []reqlog.Owner) []placement.Owner {
	var out []placement.Owner
	for _, o := range list {
		out = append(out, placement.Owner{Conversation: placement.Conversation{Agent: agents.Agent(o.Agent), Session: o.Session}, Server: o.Server})
	}
	return out
}

type noKeys struct{}

func (noKeys) Key(context.Context, *config.Server) (credential.Secret, error) {
	return credential.Secret{}, nil
}
func (noKeys) Rejected(string) {}

type noMeter struct{}

func (noMeter) Request(string, string, agents.Turn, int) {}
func (noMeter) FirstByte(string, time.Duration)          {}
func (noMeter) PinWrite(string)                          {}
func (noMeter) Refused(string)                           {}

// bench is a router between a client and three fake servers: a and b, which
// are configured, and own, the agents' own upstream.
type bench struct {
	t       *testing.T
	servers map[string]*fakeserver.Server
	pins    *memoryPins
	router  *Router
	url     string

	mu  sync.Mutex
	cfg *config.Config
}

// newBench starts everything; script may be nil.
func newBench(t *testing.T, script func(server string, rec *fakeserver.Record) fakeserver.Behaviour) *bench {
	t.Helper()
	b := &bench{t: t, servers: map[string]*fakeserver.Server{}, pins: &memoryPins{values: map[string]string{}}}
	for _, name := range []string{"a", "b", "own"} {
		opts := fakeserver.Options{Name: name}
		if script != nil {
			opts.Script = func(rec *fakeserver.Record) fakeserver.Behaviour { return script(name, rec) }
		}
		s := fakeserver.New(opts)
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		b.servers[name] = s
	}
	log, err := reqlog.Open(t.TempDir(), reqlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if err := log.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.choose("a")
	b.router = New(Parts{
		Config: b.config, Pins: b.pins, Recorder: logRecorder{log}, Credentials: noKeys{}, Meter: noMeter{},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now,
		Publish: func(control.Event) {}, Metrics: http.NotFoundHandler(),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: b.router}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	b.url = "http://" + l.Addr().String()
	return b
}

func (b *bench) config() *config.Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cfg
}

// choose sets the server of all agents' new conversations; "" is not routed.
func (b *bench) choose(server string) {
	b.configure(fmt.Sprintf(`
servers:
  a: {url: %s, key: none}
  b: {url: %s, key: none}
agents:
  claude-code: {server: %q, upstream: %s}
  codex: {server: %q, upstream: %s}
  opencode: {server: %q, upstream: %s}
`, b.servers["a"].URL(), b.servers["b"].URL(), server, b.servers["own"].URL(), server, b.servers["own"].URL(), server, b.servers["own"].URL()))
}

func (b *bench) configure(yaml string) {
	b.t.Helper()
	c, err := config.Parse("config.yaml", []byte(yaml))
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cfg = c
}

// claude sends a main turn of Claude Code.
func (b *bench) claude(session, messages string) *http.Response {
	return b.post("/claude-code/v1/messages", claudeBody(messages), claudeHeader(session))
}

func claudeHeader(session string) http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"claude-cli/2.1.332 (external, cli)"},
		"X-Claude-Code-Session-Id": {session}, "X-Claude-Code-Request-Class": {"main"}, "X-Api-Key": {"sk-fake-client"},
	}
}

func claudeBody(messages string) string {
	return `{"model":"claude-opus-5-5","max_tokens":32000,"stream":true,"context_management":{"edits":[]},` +
		`"tools":[{"name":"Read"},{"name":"Edit"},{"name":"Bash"},{"name":"Grep"}],` +
		`"system":[{"type":"text","text":"You are a test."}],"messages":[` + messages + `]}`
}

func user(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
func assistant(text string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}]}`, text)
}

func (b *bench) post(path, body string, header http.Header) *http.Response {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header = header
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// read takes the whole answer.
func read(t *testing.T, res *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return string(body)
}
