package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentop/router/fakeserver"
)

// crowd are conversations that never pause while servers come and go.
type crowd struct {
	*stage
	epoch atomic.Int64 // each brings new conversations
	ends  atomic.Int64 // turns that have ended
	stop  atomic.Bool

	mu      sync.Mutex
	home    map[string]string // where each conversation began
	refused map[string]int    // turns by the removed server that they were refused for
}

// turn sends one turn of a session and judges what comes back: it is answered
// where the conversation began, or refused because that server is gone.
func (c *crowd) turn(session string) {
	req, err := http.NewRequest(http.MethodPost, c.base("/claude-code/v1/messages"), strings.NewReader(turnBody(user("hi from "+session))))
	if err != nil {
		c.t.Error(err)
		return
	}
	for name, v := range map[string]string{"Content-Type": "application/json", "User-Agent": "claude-cli/2.1.332 (external, cli)",
		"X-Claude-Code-Session-Id": session, "X-Claude-Code-Request-Class": "main"} {
		req.Header.Set(name, v)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		c.t.Errorf("%s: %v", session, err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	text := string(answer)
	_, place, _ := strings.Cut(res.Header.Get("X-Agentop-Route"), "server=")
	c.mu.Lock()
	defer c.mu.Unlock()
	began, known := c.home[session]
	switch whole := err == nil && strings.Contains(text, "message_stop"); {
	case res.StatusCode == http.StatusOK && whole && !known:
		c.home[session] = place
	case res.StatusCode == http.StatusOK && whole && began == place:
	case res.StatusCode == http.StatusBadRequest && known && tellsHowToBringBack(text, began):
		c.refused[began]++
	default:
		c.t.Errorf("%s, which began on %q: %d from %q, %v: %.300s", session, began, res.StatusCode, place, err, text)
	}
	c.ends.Add(1)
}

func tellsHowToBringBack(text, server string) bool {
	return strings.Contains(text, "agentop: this conversation belongs to server") && strings.Contains(text, "agentop server add "+server+" URL")
}

// work begins new conversations in each epoch and goes on with all of them.
func (c *crowd) work(worker int) {
	for n := int64(0); !c.stop.Load() && !c.t.Failed(); n++ {
		c.turn(fmt.Sprintf("w%d-e%d-%d", worker, n%(c.epoch.Load()+1), n%3))
	}
}

// on is how many conversations began on a server.
func (c *crowd) on(server string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, place := range c.home {
		if place == server {
			n++
		}
	}
	return n
}

// settle lets old and new conversations meet what was changed.
func (c *crowd) settle() {
	c.t.Helper()
	c.epoch.Add(1)
	enough := c.ends.Load() + 150
	until(c.t, func() bool { return c.ends.Load() >= enough || c.t.Failed() }, "turns that end")
}

// awaitRefusal waits until a conversation of a removed server was told so.
func (c *crowd) awaitRefusal(server string) {
	c.t.Helper()
	until(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.refused[server] > 0 || c.t.Failed()
	}, "a refusal of what belongs to "+server)
}

// edit changes config.yaml as an editor would.
func (c *crowd) edit(from, to string) {
	c.t.Helper()
	path := filepath.Join(c.stage.home, "config.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(data), from) {
		c.t.Fatalf("%q is not in\n%s", from, data)
	}
	write(c.t, path, strings.Replace(string(data), from, to, 1))
}

var concerned = regexp.MustCompile(`([0-9]+) running conversations? (?:is|are) on it`)

// says wants a command to say first how many running conversations it
// concerns, no fewer than those that have had an answer by now.
func (c *crowd) says(server string, args ...string) {
	c.t.Helper()
	least := c.on(server)
	out := c.agentop(args...)
	found := concerned.FindStringSubmatchIndex(out)
	n := 0
	if found != nil {
		_, _ = fmt.Sscan(out[found[2]:found[3]], &n)
	}
	if n < least || least == 0 {
		c.t.Errorf("agentop %s says %d, while %d conversations run on %s:\n%s", strings.Join(args, " "), n, least, server, out)
	}
	for _, done := range []string{"removed " + server, "changed " + server} {
		if at := strings.Index(out, done); at >= 0 && found != nil && at < found[0] {
			c.t.Errorf("agentop %s says it after the deed:\n%s", strings.Join(args, " "), out)
		}
	}
}

// TestReloadAndRemovalUnderLoad adds, changes, renames and removes servers and
// choices by commands and by hand while conversations run through the real
// program. No turn fails for it but those of conversations whose server is
// gone, and those are told how to bring it back. What a command concerns is
// said first.
func TestReloadAndRemovalUnderLoad(t *testing.T) {
	c := &crowd{stage: newStage(t), home: map[string]string{}, refused: map[string]int{}}
	hold, holding := make(chan struct{}), make(chan struct{})
	holds := sync.OnceFunc(func() { close(holding) })
	for _, name := range []string{"c", "d"} {
		server := fakeserver.New(fakeserver.Options{Name: name, Script: func(rec *fakeserver.Record) fakeserver.Behaviour {
			if strings.Contains(string(rec.Body), "hi from held") {
				holds()
				return fakeserver.Behaviour{Hold: hold}
			}
			return fakeserver.Behaviour{}
		}})
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		c.servers[name] = server
	}
	url := func(name string) string { return c.servers[name].URL() }
	var workers sync.WaitGroup
	for worker := range 6 {
		workers.Go(func() { c.work(worker) })
	}
	end := sync.OnceFunc(func() { c.stop.Store(true); workers.Wait() })
	defer end()

	c.settle()
	c.agentop("server", "add", "c", url("c"), "--no-key") // added
	c.use("claude-code", "c")                             // chosen
	c.settle()
	held := make(chan struct{})
	go func() { defer close(held); c.turn("held") }()
	select {
	case <-holding:
	case <-held: // it has said why
	}

	c.says("c", "server", "remove", "c", "--yes") // removed, with a turn on its way
	c.settle()
	c.awaitRefusal("c")
	close(hold)
	<-held                                                // answered whole, or turn has said so
	c.agentop("server", "add", "c", url("c"), "--no-key") // back
	c.settle()
	c.turn("held")

	c.says("c", "server", "add", "c", url("d"), "--no-key", "--yes") // its URL changed
	before := c.servers["d"].Arrivals()
	c.settle()
	if c.servers["d"].Arrivals() == before {
		t.Error("no turn of c reached its new URL")
	}
	c.use("claude-code", "b")
	c.settle()
	c.edit("  b: {url: "+url("b")+", key: none}", "  b: {url: "+url("b")+", key: none, session_header: x-some-id}") // changed by hand
	c.settle()
	c.agentop("server", "reset", "--agent", "claude-code") // own upstream
	c.settle()
	c.edit("\n  b: {", "\n  new-b: {") // renamed by hand
	c.awaitRefusal("b")
	until(t, func() bool {
		return strings.Contains(c.proxyLog(), "server b is named new-b now: a name is a server's identity, so its running conversations (")
	}, "the log tells what the new name means")
	c.edit("\n  new-b: {", "\n  b: {")
	c.settle()
	end()
	for _, name := range []string{"a", "b", "c", "own"} {
		if c.on(name) == 0 {
			t.Errorf("no conversation began on %s: the test shows less than it says", name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("%d turns of %d conversations, refused for a removed server: %v", c.ends.Load(), len(c.home), c.refused)
}
