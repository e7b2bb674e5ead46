package router

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/reqlog"
)

// The tests in servers_*_test.go hold what config.yaml says of servers against
// servers of each kind, with the real resolver of keys between them.

// resolved is the resolver as the router wants it.
type resolved struct{ *credential.Resolver }

func (r resolved) Rejected(server string) { r.Invalidate(server) }

// countMeter counts pin writes and refusals.
type countMeter struct {
	noMeter
	mu     sync.Mutex
	writes map[string]int
}

func (m *countMeter) PinWrite(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes[reason]++
}

func (m *countMeter) count(reason string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes[reason]
}

// rig is a router with a configuration that tests may change.
type rig struct {
	t      *testing.T
	dir    string // holds keys.json and the request log
	pins   *memoryPins
	meter  *countMeter
	keys   *credential.Resolver
	router *Router
	url    string

	later atomic.Int64 // how far the router's clock is ahead, in nanoseconds

	mu  sync.Mutex
	cfg *config.Config
}

// newRig serves yaml, whose %s are filled with args.
func newRig(t *testing.T, yaml string, args ...any) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), pins: &memoryPins{values: map[string]string{}}, meter: &countMeter{writes: map[string]int{}}}
	r.keys = credential.NewResolver(filepath.Join(r.dir, "keys.json"))
	r.configure(yaml, args...)
	r.restart()
	return r
}

// restart puts a new router, that knows only what is stored, in the place of
// the present one.
func (r *rig) restart() {
	r.t.Helper()
	log, err := reqlog.Open(filepath.Join(r.dir, "log"), reqlog.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = log.Close() })
	if err := log.Load(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	r.router = New(Parts{
		Config: r.config, Pins: r.pins, Recorder: logRecorder{log}, Credentials: resolved{r.keys}, Meter: r.meter,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now:     func() time.Time { return time.Now().Add(time.Duration(r.later.Load())) },
		Publish: func(control.Event) {}, Metrics: http.NotFoundHandler(),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	srv := &http.Server{Handler: r.router}
	go func() { _ = srv.Serve(l) }()
	r.t.Cleanup(func() { _ = srv.Close() })
	r.url = "http://" + l.Addr().String()
}

func (r *rig) config() *config.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg
}

func (r *rig) configure(yaml string, args ...any) {
	r.t.Helper()
	c, err := config.Parse("config.yaml", fmt.Appendf(nil, yaml, args...))
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg = c
}

// store puts a key into keys.json.
func (r *rig) store(server, key string) {
	r.t.Helper()
	if err := r.keys.Store(context.Background(), server, config.KeyStored, credential.NewSecret(key)); err != nil {
		r.t.Fatal(err)
	}
}

// send sends a request and reads the whole answer.
func (r *rig) send(path, body string, header http.Header) (*http.Response, string) {
	r.t.Helper()
	res, text, err := r.try(path, body, header)
	if err != nil {
		r.t.Fatal(err)
	}
	return res, text
}

// try is send for what may fail, and for other goroutines.
func (r *rig) try(path, body string, header http.Header) (*http.Response, string, error) {
	req, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header = header.Clone()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

// talk is an agent's way to talk in one format.
type talk struct {
	format string
	agent  agents.Agent
	path   string
	model  string
	// body is a request with these turns, the user's and the server's by
	// turns, the user's first.
	body   func(model string, turns ...string) string
	header func(session string) http.Header
}

// talks are the three formats as the agents speak them.
var talks = []talk{
	{
		format: "messages", agent: agents.ClaudeCode, path: "/claude-code/v1/messages", model: "claude-opus-5-5",
		body: func(model string, turns ...string) string {
			return strings.Replace(claudeBody(rolled(turns)), "claude-opus-5-5", model, 1)
		},
		header: claudeHeader,
	},
	{
		format: "responses", agent: agents.Codex, path: "/codex/v1/responses", model: "gpt-5-codex",
		body: func(model string, turns ...string) string {
			var items []string
			for i, text := range turns {
				kind, role := "input_text", "user"
				if i%2 == 1 {
					kind, role = "output_text", "assistant"
				}
				items = append(items, fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, kind, text))
			}
			return fmt.Sprintf(`{"model":%q,"instructions":"You are a test.","input":[%s],"tools":[{"type":"function","name":"shell","parameters":{}}],"stream":true,"store":false}`,
				model, strings.Join(items, ","))
		},
		header: func(session string) http.Header {
			return http.Header{
				"Content-Type": {"application/json"}, "User-Agent": {"codex_cli_rs/0.171.0"}, "Thread-Id": {session},
				"Session-Id": {session}, "Authorization": {"Bearer sk-fake-client"},
			}
		},
	},
	{
		format: "chat", agent: agents.OpenCode, path: "/opencode/lab/v1/chat/completions", model: "some-model",
		body: func(model string, turns ...string) string {
			return fmt.Sprintf(`{"model":%q,"messages":[{"role":"system","content":"You are a test."},%s],"tools":[{"type":"function","function":{"name":"read","parameters":{}}}],"stream":true}`,
				model, rolled(turns))
		},
		header: func(session string) http.Header {
			return http.Header{
				"Content-Type": {"application/json"}, "User-Agent": {"opencode/1.18.33"}, "X-Session-Id": {session},
				"Authorization": {"Bearer sk-fake-client"},
			}
		},
	},
}

func rolled(turns []string) string {
	var list []string
	for i, text := range turns {
		if i%2 == 0 {
			list = append(list, user(text))
		} else {
			list = append(list, assistant(text))
		}
	}
	return strings.Join(list, ",")
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
