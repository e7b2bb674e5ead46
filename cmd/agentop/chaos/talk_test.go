//go:build linux

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentop/router/fakeserver"
)

// client is how one agent talks, as far as it matters here.
type client struct {
	agent, path, session, version string
	body                          func(messages []message) string
}

type message struct{ role, text string }

var clients = []client{
	{"claude-code", "/claude-code/v1/messages", "X-Claude-Code-Session-Id", "claude-cli/2.1.332 (external, cli)", func(m []message) string {
		return `{"model":"m","max_tokens":32000,"stream":true,"system":"You are a test.","tools":[{"name":"Read"},{"name":"Edit"},{"name":"Bash"},{"name":"Grep"}],"messages":` + list(m, "text", "text") + `}`
	}},
	{"codex", "/codex/v1/responses", "Session-Id", "codex_cli_rs/0.171.0", func(m []message) string {
		return `{"model":"m","stream":true,"instructions":"You are a test.","tools":[{"type":"function","name":"shell"}],"input":` + list(m, "input_text", "output_text") + `}`
	}},
	{"opencode", "/opencode/openai/v1/chat/completions", "X-Session-Id", "opencode/1.18.33", func(m []message) string {
		return `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"bash"}}],"messages":` + list(m, "text", "text") + `}`
	}},
}

// list writes messages, with the names that their text parts have.
func list(messages []message, user, assistant string) string {
	var b strings.Builder
	for i, m := range messages {
		part := user
		if m.role == "assistant" {
			part = assistant
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, m.role, part, m.text)
	}
	return "[" + b.String() + "]"
}

// talk is one conversation as its client sees it.
type talk struct {
	client  *client
	id      string
	history []message
	turns   int
}

// counts is what the clients met.
type counts struct {
	turns, refused, cut, errors, server atomic.Int64
	inFlight                            atomic.Int64
	mu                                  sync.Mutex
	last                                map[string]time.Time // when the last answered turn of each agent began
	texts                               map[string]int       // agentop's own errors
}

// load is many clients that talk without a pause.
type load struct {
	stage *stage
	counts
	stop  context.CancelFunc
	done  sync.WaitGroup
	talks []*talk // all that were opened; under counts.mu
	seq   atomic.Int64
}

// start lets n clients talk until the load is stopped.
func (s *stage) startLoad(n int) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stage: s, stop: stop}
	l.last, l.texts = map[string]time.Time{}, map[string]int{}
	for i := range n {
		l.done.Go(func() { l.live(ctx, &clients[i%len(clients)], rand.New(rand.NewPCG(s.seed, uint64(i)))) })
	}
	return l
}

// finish ends the load with the turns that are under way.
func (l *load) finish() []*talk {
	l.stop()
	l.done.Wait()
	return l.talks
}

// live leads one conversation after the other.
func (l *load) live(ctx context.Context, c *client, r *rand.Rand) {
	for ctx.Err() == nil {
		t := &talk{client: c, id: fmt.Sprintf("%s-%d-%d", c.agent, l.stage.seed, l.seq.Add(1))}
		l.mu.Lock()
		l.talks = append(l.talks, t)
		l.mu.Unlock()
		for turns := 1 + r.IntN(12); t.turns < turns && ctx.Err() == nil; {
			if !l.turn(t) {
				pause(ctx, 20*time.Millisecond) // the same turn again, as real clients do
				continue
			}
			pause(ctx, time.Duration(r.IntN(30))*time.Millisecond)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d): // the time that people and tools take
	}
}

// turn sends a conversation's next turn and says whether it was answered whole.
func (l *load) turn(t *talk) bool {
	messages := append(t.history[:len(t.history):len(t.history)], message{"user", fmt.Sprintf("turn %d of %s", t.turns, t.id)})
	began := time.Now()
	l.inFlight.Add(1)
	reply, _, err := l.stage.send(t, messages)
	l.inFlight.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	var own *ownError
	switch {
	case err == nil:
		l.turns.Add(1)
		t.turns++
		t.history = append(messages, message{"assistant", reply})
		if began.After(l.last[t.client.agent]) {
			l.last[t.client.agent] = began
		}
	case errors.As(err, &own):
		l.errors.Add(1)
		l.texts[own.text]++
	case errors.Is(err, syscall.ECONNREFUSED):
		l.refused.Add(1)
	case errors.Is(err, errServer):
		l.server.Add(1)
	default:
		l.cut.Add(1)
	}
	return err == nil
}

// answeredSince reports whether each agent has had a whole turn that began
// after a time.
func (l *load) answeredSince(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range clients {
		if !l.last[clients[i].agent].After(at) {
			return false
		}
	}
	return true
}

// ownError is an error that agentop made.
type ownError struct{ text string }

func (e *ownError) Error() string { return e.text }

var (
	errServer = errors.New("an error of the server's")
	errCut    = errors.New("the answer is not whole")
)

// send sends a turn and returns the reply's text and agentop's route header.
func (s *stage) send(t *talk, messages []message) (reply, route string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+t.client.path, strings.NewReader(t.client.body(messages)))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", t.client.version)
	req.Header.Set(t.client.session, t.id)
	res, err := s.transport.RoundTrip(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	route = res.Header.Get("X-Agentop-Route")
	switch {
	case bytes.Contains(answer, []byte("agentop: ")):
		return "", route, &ownError{string(answer[:min(len(answer), 300)])}
	case res.StatusCode != http.StatusOK:
		return "", route, fmt.Errorf("%w: %d", errServer, res.StatusCode)
	case err != nil:
		return "", route, fmt.Errorf("%w: %w", errCut, err)
	case !bytes.Contains(answer, []byte("message_stop")) && !bytes.Contains(answer, []byte("response.completed")) && !bytes.Contains(answer, []byte("[DONE]")):
		return "", route, errCut
	}
	return textOf(answer), route, nil
}

// textOf is the text of a streamed answer of any format.
func textOf(answer []byte) string {
	var b strings.Builder
	for line := range bytes.SplitSeq(answer, []byte("\n")) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var e struct {
			Type    string          `json:"type"`
			Delta   json.RawMessage `json:"delta"`
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if json.Unmarshal(data, &e) != nil {
			continue
		}
		for _, c := range e.Choices {
			b.WriteString(c.Delta.Content)
		}
		switch e.Type {
		case "response.output_text.delta":
			var text string
			_ = json.Unmarshal(e.Delta, &text) // what is no text adds none
			b.WriteString(text)
		case "content_block_delta":
			var d struct {
				Text string `json:"text"`
			}
			_ = json.Unmarshal(e.Delta, &d)
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

// witness knows from the servers' own eyes where each conversation was.
type witness struct {
	mu    sync.Mutex
	seen  map[string]map[string]bool // conversation -> servers
	wrong []string                   // histories that hold another server's replies
}

func (w *witness) note(server string, rec *fakeserver.Record) {
	id := ""
	for i := range clients {
		if v := rec.Header.Get(clients[i].session); v != "" {
			id = v
		}
	}
	if id == "" || rec.Format == fakeserver.NoFormat {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[id] == nil {
		w.seen[id] = map[string]bool{}
	}
	w.seen[id][server] = true
	for _, sig := range rec.History {
		if sig.Server != server {
			w.wrong = append(w.wrong, fmt.Sprintf("%s was sent to %s with a reply of %s", id, server, sig.Server))
		}
	}
}

// moved names the conversations that more than one server has seen.
func (w *witness) moved() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, servers := range w.seen {
		if len(servers) > 1 || servers["own"] {
			ids = append(ids, fmt.Sprintf("%s: %v", id, servers))
		}
	}
	return append(ids, w.wrong...)
}

func (w *witness) saw(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen[id]) > 0
}
