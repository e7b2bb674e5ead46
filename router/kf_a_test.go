package router

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/fakeserver"
	"agentop/router/placement"
)

// The tests of this file are named by the ids of known failures of other
// proxies: identity of conversations, and affinity. KF-A7 and KF-A8, which
// header each version of each client sends, are agents.TestFixtures, and the
// real clients of cmd/agentop/e2e.

// route asserts what became of an answered request.
func (b *bench) route(what string, res *http.Response, want ...string) {
	b.t.Helper()
	read(b.t, res)
	for _, w := range want {
		if got := res.Header.Get(RouteHeader) + ";"; !strings.Contains(got, w+";") {
			b.t.Errorf("%s: route %q, want %q", what, got, w)
		}
	}
}

func (b *bench) codex(session, input, more string) *http.Response {
	return b.do("POST", "/codex/v1/responses", strings.NewReader(`{"model":"gpt-6","stream":true,"instructions":"x",`+more+`"input":[`+input+`]}`),
		http.Header{"Content-Type": {"application/json"}, "User-Agent": {"codex_cli_rs/0.171.0"}, "Session-Id": {session}})
}

func (b *bench) opencode(session, messages string, more http.Header) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"opencode/1.18.33"}}
	if session != "" {
		h.Set("X-Session-Id", session)
	}
	for name, v := range more {
		h[name] = v
	}
	return b.do("POST", "/opencode/lab/v1/chat/completions", strings.NewReader(`{"model":"glm-5","stream":true,"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[`+messages+`]}`), h)
}

func TestKF_A1_ChoosingMovesNoRunningConversation(t *testing.T) {
	b := newBench(t, nil)
	for _, s := range []string{"one", "two"} {
		b.route("opening", b.claude(s, user("hello "+s)), "server=a")
		b.route("opening", b.codex(s, user("hello "+s), ""), "server=a")
		b.route("opening", b.opencode(s, user("hello "+s), nil), "server=a")
	}
	b.choose("b")
	for i := range 3 {
		for _, s := range []string{"one", "two"} {
			more := user("hello "+s) + "," + assistant("hi") + "," + user(fmt.Sprint("turn ", i))
			b.route("continuation", b.claude(s, more), "pin=kept", "server=a")
			b.route("continuation", b.codex(s, more, ""), "pin=kept", "server=a")
			b.route("continuation", b.opencode(s, more, nil), "pin=kept", "server=a")
		}
	}
	b.route("third", b.claude("three", user("hello")), "pin=new", "server=b")
	b.route("third", b.codex("three", user("hello"), ""), "pin=new", "server=b")
	b.route("third", b.opencode("three", user("hello"), nil), "pin=new", "server=b")
}

func TestKF_A2_SignedThinkingGoesBackToWhereItWasMade(t *testing.T) {
	b := newBench(t, scripted(fakeserver.Behaviour{Thinking: "let me think"}))
	answer := read(t, b.claude("s1", user("hello")))
	signature := regexp.MustCompile(`"signature":"([^"]+)"`).FindStringSubmatch(answer)
	if signature == nil {
		t.Fatalf("no signature in %s", answer)
	}
	b.choose("b")
	block := `{"role":"assistant","content":[{"type":"thinking","thinking":"let me think","signature":"` + signature[1] + `"},{"type":"text","text":"hi"}]}`
	b.route("second turn", b.claude("s1", user("hello")+","+block+","+user("go on")), "pin=kept", "server=a")
	if !bytes.Contains(b.last("a").Body, []byte(block)) {
		t.Errorf("a got %s, want the block as it was", b.last("a").Body)
	}
	if n := b.servers["b"].Arrivals(); n != 0 {
		t.Errorf("b got %d requests", n)
	}
}

// again is another router on what the first one left: a restart.
func (b *bench) again() {
	p := b.router.Parts
	b.router = New(p)
	b.serve("127.0.0.1:0")
}

func TestKF_A3_EncryptedReasoningGoesToItsMaker(t *testing.T) {
	b := newBench(t, scripted(fakeserver.Behaviour{Thinking: "hidden"}))
	history := user("hello")
	for i := range 6 {
		switch i {
		case 2:
			b.choose("b")
		case 3: // a server more, and none of the agents' choice
			b.configure(fmt.Sprintf("servers:\n  a: {url: %s, key: none}\n  b: {url: %s, key: none}\n  c: {url: %s, key: none}\nagents:\n  codex: {server: c, upstream: %s}\n",
				b.servers["a"].URL(), b.servers["b"].URL(), b.servers["b"].URL(), b.servers["own"].URL()))
		case 4:
			b.again()
		case 5: // one less
			b.configure(fmt.Sprintf("servers:\n  a: {url: %s, key: none}\nagents:\n  codex: {server: \"\", upstream: %s}\n", b.servers["a"].URL(), b.servers["own"].URL()))
		}
		res := b.codex("s1", history, `"include":["reasoning.encrypted_content"],`)
		answer := read(t, res)
		if got := res.Header.Get(RouteHeader); !strings.Contains(got, "server=a") {
			t.Fatalf("turn %d: route %q", i, got)
		}
		secret := regexp.MustCompile(`"encrypted_content":"([^"]+)"`).FindStringSubmatch(answer)
		if secret == nil {
			t.Fatalf("no reasoning in %s", answer)
		}
		history += `,{"type":"reasoning","summary":[],"encrypted_content":"` + secret[1] + `"},` + assistant("hi") + "," + user("go on")
	}
	if n := b.servers["b"].Arrivals() + b.servers["own"].Arrivals(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// aging is a pin store whose pins lapse by a clock that the test sets.
type aging struct {
	mu     sync.Mutex
	at     time.Time
	values map[string]string
	ends   map[string]time.Time
	puts   int
}

func (a *aging) now() time.Time { a.mu.Lock(); defer a.mu.Unlock(); return a.at }
func (a *aging) pass(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = a.at.Add(d)
}

func (a *aging) Get(key string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.values[key]
	return v, ok && a.at.Before(a.ends[key])
}

func (a *aging) Put(_ context.Context, key, value string, ttl time.Duration, _ bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.puts++
	a.values[key], a.ends[key] = value, a.at.Add(ttl)
	return nil
}

func (a *aging) Delete(context.Context, string) error { return nil }

func TestKF_A4_UseRenewsAPin(t *testing.T) {
	b := newBench(t, nil)
	pins := &aging{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), values: map[string]string{}, ends: map[string]time.Time{}}
	b.router.Pins, b.router.Now = pins, pins.now
	b.route("opening", b.claude("s1", user("hello")), "server=a")
	b.choose("b")
	const uses = 300
	for range uses {
		pins.pass(6 * time.Hour) // 75 days in all, more than two lifetimes
		b.route("use", b.claude("s1", user("hello")+","+assistant("hi")+","+user("go on")), "pin=kept", "server=a")
	}
	if pins.puts > uses/4+2 {
		t.Errorf("%d writes for %d uses in %d days, want at most one a day", pins.puts, uses, uses/4)
	}
}

func TestKF_A5_AMovingCacheMarkerIsNoNewConversation(t *testing.T) {
	b := newBench(t, nil)
	marked := func(text string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}]}`, text)
	}
	for name, session := range map[string]string{"with an id": "ses_1", "without one": ""} {
		before := len(b.pins.values)
		history := ""
		b.choose("a")
		for i := range 10 {
			text := fmt.Sprintf("%s, turn %d", name, i)
			answer := read(t, b.opencode(session, history+marked(text), nil))
			history += user(text) + "," + assistant(textIn(answer)) + ","
			b.choose("b")
		}
		if n := len(b.pins.values) - before; n != 1 {
			t.Errorf("%s: %d pins for ten turns, want 1", name, n)
		}
	}
	if n := b.servers["b"].Arrivals(); n != 0 {
		t.Errorf("b got %d requests", n)
	}
}

// textIn is the text of a streamed chat completion.
func textIn(answer string) (text string) {
	for _, piece := range regexp.MustCompile(`"content":"([^"]*)"`).FindAllStringSubmatch(answer, -1) {
		text += piece[1]
	}
	return text
}

func TestKF_A6_EqualFirstTurnsAreTwoConversations(t *testing.T) {
	b := newBench(t, nil)
	same := user("<system-reminder>the same project file</system-reminder> fix the test")
	b.route("one", b.claude("one", same), "pin=new", "server=a")
	b.route("two", b.claude("two", same), "pin=new", "server=a")
	if err := b.router.Move(t.Context(), placement.Conversation{Agent: agents.ClaudeCode, Session: "one"}, "b"); err != nil {
		t.Fatal(err)
	}
	more := same + "," + assistant("done") + "," + user("go on")
	b.route("one", b.claude("one", more), "pin=kept", "server=b")
	b.route("two", b.claude("two", more), "pin=kept", "server=a")
}

func TestKF_A9_SessionHeadersPassUnchanged(t *testing.T) {
	b := newBench(t, nil)
	headers := http.Header{
		"X-Dynamo-Session-Id": {"d-1"}, "X-Claude-Code-Session-Id": {"c-1"}, "Thread-Id": {"t-1"}, "Session-Id": {"s-1"}, "X-Session-Id": {"o-1"},
		"X-Foo-Session": {"f-1", "f-2"}, "X-Codex-Parent-Thread-Id": {"p-1"}, "X-Parent-Session-Id": {"p-2"}, "Session_id": {"u-1"},
	}
	for _, f := range formats {
		sent := headers.Clone()
		sent.Set("Content-Type", "application/json")
		read(t, b.do("POST", f.path, strings.NewReader(f.body), sent))
		for name, want := range headers {
			if got := headersOf(b, name); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s came as %q, want %q", f.name, name, got, want)
			}
		}
	}
}

// headersOf are the values of a header in the newest request, wherever it went.
func headersOf(b *bench, name string) []string {
	var newest *fakeserver.Record
	for _, s := range b.servers {
		for _, rec := range s.Records() {
			if newest == nil || rec.Time.After(newest.Time) {
				newest = rec
			}
		}
	}
	return newest.Header[http.CanonicalHeaderKey(name)]
}

func TestKF_A10_SubagentsFollowTheirParent(t *testing.T) {
	b := newBench(t, nil)
	b.route("parent", b.claude("p1", user("hello")), "server=a")
	b.route("parent", b.codex("p2", user("hello"), ""), "server=a")
	b.route("parent", b.opencode("p3", user("hello"), nil), "server=a")
	b.choose("b")
	for i := range 2 {
		h := claudeHeader("p1")
		h.Set("X-Claude-Code-Request-Class", "subagent")
		b.route("claude's subagent", b.do("POST", "/claude-code/v1/messages", strings.NewReader(claudeBody(user(fmt.Sprint("search ", i)))), h), "turn=side", "server=a")
		child := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"codex_cli_rs/0.171.0"}, "Session-Id": {fmt.Sprint("child-", i)}, "X-Codex-Parent-Thread-Id": {"p2"}}
		b.route("codex's subagent", b.do("POST", "/codex/v1/responses", strings.NewReader(formats[1].body), child), "server=a")
		b.route("opencode's subagent", b.opencode(fmt.Sprint("child-", i), user("search"), http.Header{"X-Parent-Session-Id": {"p3"}}), "server=a")
	}
}

func TestKF_A11_AnExhaustedServerAnswersForItself(t *testing.T) {
	exhausted := false
	b := newBench(t, func(server string, rec *fakeserver.Record) fakeserver.Behaviour {
		if exhausted && server == "a" {
			return fakeserver.RetryAfter(rec, http.StatusTooManyRequests, "rate_limit_error", "come back later", 3600)
		}
		return fakeserver.Behaviour{}
	})
	read(t, b.claude("s1", user("hello")))
	exhausted = true
	b.choose("b")
	for i := range 3 {
		res := b.claude("s1", user("hello")+","+assistant("hi")+","+user("go on"))
		if body := read(t, res); res.StatusCode != 429 || res.Header.Get("Retry-After") != "3600" || !strings.Contains(body, "come back later") {
			t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
		}
		if a, other := b.servers["a"].Arrivals(), b.servers["b"].Arrivals(); a != i+2 || other != 0 {
			t.Errorf("after %d turns: %d at a, %d at b", i+2, a, other)
		}
	}
	s, ok := b.router.Session(placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"})
	if !ok || s.Status != 429 {
		t.Errorf("the row says %+v, want the status 429", s)
	}
}

func TestKF_A12_EveryRouteLooksForThePin(t *testing.T) {
	b := newBench(t, nil)
	b.route("opening", b.claude("s1", user("hello")), "pin=new")
	b.choose("b")
	turns := user("hello") + "," + assistant("hi") + "," + user("go on")
	for path, body := range map[string]string{
		"/claude-code/v1/messages":              claudeBody(turns),
		"/claude-code/v1/messages/count_tokens": claudeBody(turns),
		"/claude-code/v1/responses":             `{"model":"m","input":[` + turns + `]}`,
		"/claude-code/v1/chat/completions":      `{"model":"m","messages":[` + turns + `]}`,
		"/v1/messages":                          claudeBody(turns),
	} {
		pin := "pin=kept"
		if strings.HasSuffix(path, "count_tokens") {
			pin = "pin=none" // it goes where the pin says, and has none of its own
		}
		b.route(path, b.do("POST", path, strings.NewReader(body), claudeHeader("s1")), pin, "server=a")
	}
	if n := len(b.pins.values); n != 1 {
		t.Errorf("%d pins, want 1", n)
	}
	h := claudeHeader("s1")
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	if res := b.do("GET", "/claude-code/v1/responses", nil, h); res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("an upgrade got %d, want 426", res.StatusCode)
	}
	if n := b.servers["b"].Arrivals(); n != 0 {
		t.Errorf("b got %d requests", n)
	}
}

func TestKF_A13_WithoutAnIDTheContentTells(t *testing.T) {
	b := newBench(t, nil)
	anonymous := func(messages string) *http.Response { return b.opencode("", messages, nil) }
	var histories [2]string
	for i, choice := range []string{"a", "b"} {
		b.choose(choice)
		// The same system prompt, tools and first line; only then they differ.
		first := `{"role":"system","content":"You are a test."},` + user("fix the build")
		answer := read(t, anonymous(first))
		histories[i] = first + "," + assistant(textIn(answer))
	}
	if n := len(b.pins.values); n != 2 {
		t.Fatalf("%d pins for two conversations", n)
	}
	b.choose("")
	for turn := range 3 {
		for i, want := range []string{"a", "b"} {
			histories[i] += "," + user(fmt.Sprintf("turn %d of %s", turn, want))
			res := anonymous(histories[i])
			answer := read(t, res)
			if got := res.Header.Get(RouteHeader); !strings.Contains(got, "server="+want) {
				t.Errorf("turn %d: route %q, want %s", turn, got, want)
			}
			histories[i] += "," + assistant(textIn(answer))
		}
	}
	if n := len(b.pins.values); n != 2 {
		t.Errorf("%d pins, want 2", n)
	}
}
