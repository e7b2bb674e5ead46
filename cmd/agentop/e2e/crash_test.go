package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

// kills is how often the proxy is killed; wantBetween of them must have met an
// opening between its arrival and its first byte at a server.
const (
	kills       = 200
	wantBetween = 20
)

// witness notes which servers have seen a main turn of each conversation, from
// the servers' own eyes.
type witness struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // conversation -> servers
}

func (w *witness) note(server string, rec *fakeserver.Record) {
	session := rec.Header.Get("X-Claude-Code-Session-Id")
	if session == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[session] == nil {
		w.seen[session] = map[string]bool{}
	}
	w.seen[session][server] = true
}

func (w *witness) servers(session string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name := range w.seen[session] {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// conversation is one that a client of the crash test leads.
type conversation struct {
	id     string
	opened bool // its opening was answered whole
}

// TestKillAtRandomInstants kills the proxy with -9 at random instants during a
// stream of openings, switches the agent, and has each client go on or send
// its opening again. No conversation may be seen by two servers.
func TestKillAtRandomInstants(t *testing.T) {
	s := newStage(t)
	w := &witness{seen: map[string]map[string]bool{}}
	for name := range s.servers {
		watchServer(t, s, name, w)
	}
	s.configure("a")
	s.restart()

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	const clients = 8
	histogram := map[string]int{}
	between := 0
	current := "a"
	for round := range kills {
		open := make([]*conversation, clients)
		var wg sync.WaitGroup
		for i := range open {
			open[i] = &conversation{id: fmt.Sprintf("kill-%d-%d", round, i)}
			wg.Add(1)
			go func(c *conversation) {
				defer wg.Done()
				c.opened = s.turn(c.id, user("hello"))
			}(open[i])
		}
		time.Sleep(time.Duration(rng.IntN(12_000)) * time.Microsecond) // the random instant
		s.kill()
		wg.Wait()
		met := phases(s, w, open)
		for phase, n := range met {
			histogram[phase] += n
		}
		if met["pinned, not sent"]+met["arrived, not pinned"] > 0 {
			between++
		}
		current = map[string]string{"a": "b", "b": "a"}[current]
		s.configure(current)
		s.start()
		for _, c := range open {
			s.goOn(c)
			if got := w.servers(c.id); len(got) != 1 || got[0] == "own" {
				t.Fatalf("round %d: conversation %s was seen by %v (its opening was answered: %v)", round, c.id, got, c.opened)
			}
		}
	}
	t.Logf("%d kills; openings by phase at the kill: %v; kills between arrival and first byte: %d", kills, histogram, between)
	if between < wantBetween {
		t.Errorf("only %d kills met an opening between its arrival and its first byte at a server, want %d", between, wantBetween)
	}
}

// goOn sends a conversation's next turn, or its opening again if that got no
// answer, until it is answered.
func (s *stage) goOn(c *conversation) {
	s.t.Helper()
	messages := user("hello")
	if c.opened {
		messages += `,{"role":"assistant","content":[{"type":"text","text":"an answer"}]},` + user("go on")
	}
	if !s.turn(c.id, messages) {
		s.t.Fatalf("the running proxy did not answer %s\n%s", c.id, s.said())
	}
}

// phases says how far each opening had come when the proxy was killed.
func phases(s *stage, w *witness, open []*conversation) map[string]int {
	pins, err := os.ReadFile(filepath.Join(s.home, "pins.json"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	met := map[string]int{}
	for _, c := range open {
		switch {
		case c.opened:
			met["answered"]++
		case len(w.servers(c.id)) > 0:
			met["sent, not answered"]++
		case bytes.Contains(pins, []byte(`"pin:claude-code:`+c.id+`"`)):
			met["pinned, not sent"]++
		default:
			met["arrived, not pinned"]++
		}
	}
	return met
}

// watchServer puts a server in a stage's place whose requests are witnessed.
func watchServer(t *testing.T, s *stage, name string, w *witness) {
	t.Helper()
	server := fakeserver.New(fakeserver.Options{
		Name: name, KeepRecords: -1,
		OnRequest: func(rec *fakeserver.Record) { w.note(name, rec) },
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s.servers[name] = server
}

// turn sends a main turn of Claude Code and says whether it was answered whole.
func (s *stage) turn(session, messages string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	body := `{"model":"claude-opus-5-5","max_tokens":32000,"stream":true,"context_management":{"edits":[]},` +
		`"tools":[{"name":"Read"},{"name":"Edit"},{"name":"Bash"},{"name":"Grep"}],` +
		`"system":[{"type":"text","text":"You are a test."}],"messages":[` + messages + `]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base("/claude-code/v1/messages"), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "claude-cli/2.1.332 (external, cli)")
	req.Header.Set("X-Claude-Code-Session-Id", session)
	req.Header.Set("X-Claude-Code-Request-Class", "main")
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return err == nil && res.StatusCode == http.StatusOK && bytes.Contains(answer, []byte("message_stop"))
}

func user(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
