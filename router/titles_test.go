package router

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"agentop/agents"
	"agentop/router/control"
	"agentop/router/fakeserver"
	"agentop/router/placement"
)

// titled is a bench whose servers answer title requests with a title.
func titled(t *testing.T) *bench {
	t.Helper()
	return newBench(t, func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
		if strings.Contains(string(rec.Body), "<session>") {
			return fakeserver.Behaviour{Text: `{"title": "The agent's own title"}`, Unsigned: true}
		}
		return fakeserver.Behaviour{Text: longText}
	})
}

// title has the agent ask for a title.
func (b *bench) title(session string) *http.Response {
	h := claudeHeader(session)
	h.Del("X-Claude-Code-Request-Class")
	return b.do("POST", "/claude-code/v1/messages", strings.NewReader(`{"model":"m","max_tokens":64,"stream":true,`+
		`"system":[{"type":"text","text":"You are a test."}],"messages":[`+user("<session>say hello</session>")+`]}`), h)
}

// The agent's own title takes the place of the first words, for good: it goes
// into the pin with the pin's next save, and causes none of its own.
func TestTheAgentsOwnTitleStays(t *testing.T) {
	b := titled(t)
	c := placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"}
	shows := func(when, want string) {
		t.Helper()
		if s, _ := b.router.Session(c); s.Title != want {
			t.Errorf("%s: title %q, want %q", when, s.Title, want)
		}
	}
	kept := func(when, want string) {
		t.Helper()
		value, _ := b.pins.Get(pinKey(c))
		if p, err := decodePin(c, value); err != nil || p.Title != want {
			t.Errorf("%s: the pin is %s (%v), want the title %q", when, value, err, want)
		}
	}
	const own = "The agent's own title"
	b.route("opening", b.claude("s1", user("say hello")), "server=a")
	shows("opening", "say hello")
	b.route("title", b.title("s1"), "turn=side")
	shows("title", own)
	kept("title", "say hello")
	next := strings.Join([]string{user("say hello"), assistant("hi"), user("go on")}, ",")
	b.route("next turn", b.claude("s1", next), "server=a")
	shows("next turn", own)
	// Another model's name is one more thing to keep, so the pin is saved.
	b.route("other model", b.do("POST", "/claude-code/v1/messages", strings.NewReader(strings.Replace(claudeBody(next), "claude-opus-5-5", "claude-sonnet-5-5", 1)), claudeHeader("s1")), "server=a")
	kept("other model", own)
	if err := b.router.Move(t.Context(), c, "b"); err != nil {
		t.Fatal(err)
	}
	kept("move", own)
	shows("move", own)
}

// titles: off hides those that are known, too, and takes them out of the pins
// as these are saved.
func TestTitlesOffHidesThoseThatAreKnown(t *testing.T) {
	b := titled(t)
	c := placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"}
	b.route("opening", b.claude("s1", user("say hello")), "server=a")
	off := *b.config()
	off.Titles = false
	b.mu.Lock()
	b.cfg = &off
	b.mu.Unlock()
	if s, _ := b.router.Session(c); s.Title != "" || b.router.Sessions()[0].Title != "" {
		t.Errorf("title %q is shown", s.Title)
	}
	res := b.do("POST", "/claude-code/v1/messages", strings.NewReader(strings.Replace(claudeBody(user("say hello")), "opus", "sonnet", 1)), claudeHeader("s1"))
	_, _ = io.Copy(io.Discard, res.Body)
	if value, _ := b.pins.Get(pinKey(c)); strings.Contains(value, "say hello") {
		t.Errorf("the pin was saved with its title: %s", value)
	}
}

// Events name a conversation as lists do, also one whose id agentop derived:
// else a reader of both has it twice.
func TestEventsNameConversationsAsListsDo(t *testing.T) {
	b := newBench(t, nil)
	named := make(chan string, 100)
	b.router.Publish = func(e control.Event) {
		if e.Session != nil {
			named <- e.Session.ID
		}
	}
	b.route("opening without an id", b.opencode("", user("hello"), nil), "turn=opening", "pin=new")
	list := b.router.Sessions()
	if len(list) != 1 || !strings.HasPrefix(list[0].ID, "px:") {
		t.Fatalf("listed %+v, want one with a derived id", list)
	}
	close(named)
	n := 0
	for id := range named {
		if n++; id != list[0].ID {
			t.Errorf("an event names %q, the list %q", id, list[0].ID)
		}
	}
	if n == 0 {
		t.Error("no event came")
	}
}
