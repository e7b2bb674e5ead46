package router

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/fakeserver"
	"agentop/router/placement"
	"agentop/router/reqlog"
)

// These tests hold rule 2 and rule 6 of placement through the whole router:
// what an answer and a request leave behind, and what is found by it again.

// longText is an answer that is long enough to have a mark.
const longText = "This answer has more than forty-eight bytes, so that it bears a mark."

// signedLong is the text that a fake server makes of longText as its nth reply.
func signedLong(server string, n int) string { return fmt.Sprintf("[%s#%d] %s", server, n, longText) }

// row finds the one row of an agent.
func (b *bench) rows(agent string) (list []string) {
	for _, s := range b.router.Sessions() {
		if s.Agent == agent {
			list = append(list, fmt.Sprintf("%s@%s %d turns", s.ID, s.Server, s.Turns))
		}
	}
	return list
}

func TestRule2b_PreviousResponseNamesTheConversation(t *testing.T) {
	b := newBench(t, nil)
	post := func(body string) *http.Response {
		return b.do("POST", "/opencode/openai/v1/responses", strings.NewReader(body), http.Header{"Content-Type": {"application/json"}, "User-Agent": {"opencode/1.2.20"}})
	}
	first := `{"model":"m","stream":true,"input":"hello"}`
	b.route("opening", post(first), "turn=opening", "pin=new", "server=a")
	b.choose("b")
	b.route("another opening", post(first), "turn=opening", "pin=new", "server=b")
	b.route("next turn", post(`{"model":"m","stream":true,"previous_response_id":"resp_a-1","input":"go on"}`), "turn=continuation", "pin=kept", "server=a")
	b.route("other's next turn", post(`{"model":"m","stream":true,"previous_response_id":"resp_b-1","input":"go on"}`), "turn=continuation", "pin=kept", "server=b")
	b.route("turn after next", post(`{"model":"m","stream":true,"previous_response_id":"resp_a-2","input":"go on"}`), "pin=kept", "server=a")
	b.route("unknown answer", post(`{"model":"m","stream":true,"previous_response_id":"resp_c-1","input":"go on"}`), "turn=continuation", "pin=new", "server=own")
	if got := b.rows("opencode"); len(got) != 3 {
		t.Errorf("rows %v, want three: a conversation stays one row", got)
	}
}

func TestRule2e_AForkFollowsTheParentThatItNames(t *testing.T) {
	b := newBench(t, nil)
	b.route("parent", b.codex("p", user("hello"), ""), "server=a")
	b.choose("b")
	fork := func(session, parent string) *http.Response {
		return b.do("POST", "/codex/v1/responses",
			strings.NewReader(`{"model":"gpt-6","stream":true,"instructions":"rewritten","input":[`+user("hi")+","+assistant("ok")+","+user("go on")+`]}`),
			http.Header{"Content-Type": {"application/json"}, "User-Agent": {"codex_cli_rs/0.171.0"}, "Session-Id": {session}, "Thread-Id": {session},
				"X-Codex-Turn-Metadata": {`{"request_kind":"turn","thread_source":"user","history_initialization":"cold_fork","forked_from_thread_id":"` + parent + `"}`}})
	}
	b.route("fork", fork("f1", "p"), "turn=continuation", "pin=followed", "server=a")
	b.route("fork of the fork", fork("f2", "f1"), "turn=continuation", "pin=followed", "server=a")
	b.route("fork of nobody known", fork("f3", "q"), "turn=continuation", "pin=new", "server=own")
}

// A conversation that states no session is one row over twenty turns and three
// switches, and at home all the time.
func TestHeaderlessClientStaysOneRowAtHome(t *testing.T) {
	b := newBench(t, nil)
	history := ""
	for turn := range 20 {
		switch turn {
		case 5, 15:
			b.choose("b")
		case 10:
			b.choose("")
		}
		res := b.opencode("", history+user(fmt.Sprint("turn ", turn)), nil)
		answer := read(t, res)
		want := "pin=kept; server=a"
		if turn == 0 {
			want = "pin=new; server=a"
		}
		if got := res.Header.Get(RouteHeader); !strings.Contains(got, want) {
			t.Errorf("turn %d: route %q, want %q", turn, got, want)
		}
		history += user(fmt.Sprint("turn ", turn)) + "," + assistant(textIn(answer)) + ","
	}
	if got := b.rows("opencode"); len(got) != 1 || !strings.HasSuffix(got[0], "@a 20 turns") {
		t.Errorf("rows %v, want one on a with 20 turns", got)
	}
	if len(b.pins.values) != 1 || b.pins.durable != 1 {
		t.Errorf("%d pins, %d durable writes, want one of each", len(b.pins.values), b.pins.durable)
	}
}

// A subagent's replies are known by their server alone: it stays where they
// were made when its session gets another id, and pins nothing.
func TestRule6_ASideRequestStaysWhereItsRepliesWereMade(t *testing.T) {
	b := newBench(t, func(string, *fakeserver.Record) fakeserver.Behaviour { return fakeserver.Behaviour{Text: longText} })
	b.route("parent", b.claude("old", user("hello")), "server=a")
	sub := func(session, messages string) *http.Response {
		h := claudeHeader(session)
		h.Set("X-Claude-Code-Request-Class", "subagent")
		h.Set("X-Claude-Code-Agent-Id", "sub-1")
		return b.do("POST", "/claude-code/v1/messages", strings.NewReader(claudeBody(messages)), h)
	}
	b.route("subagent", sub("old", user("search")), "turn=side", "pin=none", "server=a")
	b.choose("b")
	b.route("after /clear", b.claude("new", user("something else")), "pin=new", "server=b")
	b.route("subagent under the new id", sub("new", user("search")+","+assistant(signedLong("a", 2))+","+user("go on")), "turn=side", "pin=none", "server=a")
	b.route("a replay goes with its session", sub("new", user("hello")+","+assistant(signedLong("a", 1))+","+user("sum up")), "turn=side", "server=b")
	if got := b.rows("claude-code"); len(got) != 2 || got[0] != "new@b 1 turns" || got[1] != "old@a 1 turns" {
		t.Errorf("rows %v, want each with its one main turn", got)
	}
}

func TestCountTokensGoesWithItsHistory(t *testing.T) {
	b := newBench(t, func(string, *fakeserver.Record) fakeserver.Behaviour { return fakeserver.Behaviour{Text: longText} })
	b.route("opening", b.claude("s1", user("hello")), "server=a")
	b.choose("b")
	count := func(session, messages string) *http.Response {
		h := claudeHeader(session)
		return b.do("POST", "/claude-code/v1/messages/count_tokens", strings.NewReader(claudeBody(messages)), h)
	}
	turns := user("hello") + "," + assistant(signedLong("a", 1)) + "," + user("go on")
	b.route("of the conversation", count("s1", turns), "turn=none", "pin=none", "server=a")
	b.route("of its fork", count("fork", turns), "turn=none", "pin=none", "server=a")
	b.route("of nobody's", count("stranger", user("what is this?")), "turn=none", "pin=none", "server=own")
	if n := len(b.pins.values); n != 1 {
		t.Errorf("%d pins, want 1: a count pins nothing", n)
	}
}

func TestCodexRemoteCompactionGoesWithItsConversation(t *testing.T) {
	b := newBench(t, nil)
	b.route("opening", b.codex("s1", user("hello"), ""), "server=a")
	b.choose("b")
	turns := user("hello") + "," + assistant("hi")
	b.route("by an item", b.codex("s1", turns+`,{"type":"compaction_trigger"}`, ""), "turn=side", "pin=none", "server=a")
	res := b.do("POST", "/codex/v1/responses/compact", strings.NewReader(`{"model":"gpt-6","input":[`+turns+`]}`),
		http.Header{"Content-Type": {"application/json"}, "User-Agent": {"codex_cli_rs/0.171.0"}, "Session-Id": {"s1"}})
	b.route("by a path", res, "turn=side", "pin=none", "server=a")
	compacted := `{"type":"compaction","encrypted_content":"AAAA"},` + user("go on")
	b.route("the turn after it", b.codex("s1", compacted, ""), "turn=continuation", "pin=kept", "server=a")
}

// A fork may be sent while the turn that it repeats is still being answered.
func TestKeysAreKnownAsSoonAsATurnIsSent(t *testing.T) {
	hold := make(chan struct{})
	arrived := make(chan struct{}, 8)
	b := newBench(t, func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
		arrived <- struct{}{}
		if len(rec.History) == 0 && rec.N == 2 {
			return fakeserver.Behaviour{Hold: hold, Text: longText}
		}
		return fakeserver.Behaviour{Text: longText}
	})
	b.route("opening", b.claude("s1", user("hello")), "server=a")
	<-arrived
	// The client tells the answer in words of its own, so that no mark helps.
	turns := user("hello") + "," + assistant("what was answered, in other words and long enough for a mark") + "," + user("second")
	done := make(chan *http.Response)
	go func() { done <- b.claude("s1", turns) }()
	<-arrived // the second turn is at its server and waits there
	b.choose("b")
	b.route("fork of a turn that is on its way", b.claude("fork", turns+","+assistant("stopped")+","+user("third")), "pin=followed", "server=a")
	close(hold)
	read(t, <-done)
}

// lateIndex is a recorder whose index has not been read back yet.
type lateIndex struct {
	Recorder
	loaded chan struct{}
	asked  chan struct{} // gets a value when somebody asks whether it is there
}

func (l lateIndex) Loaded() <-chan struct{} {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	return l.loaded
}

func TestWhatRulesCannotPlaceYetWaitsForTheIndex(t *testing.T) {
	b := newBench(t, nil)
	b.route("opening", b.claude("pinned", user("hello")), "server=a")
	late := lateIndex{b.router.Recorder, make(chan struct{}), make(chan struct{}, 1)}
	b.router.Recorder = late
	b.choose("b")
	b.route("a pinned conversation does not wait", b.claude("pinned", user("hello")+","+assistant("hi")+","+user("go on")), "pin=kept", "server=a")
	done := make(chan *http.Response, 1)
	go func() { done <- b.claude("unknown", user("hello")) }()
	select {
	case <-late.asked:
	case res := <-done:
		t.Fatalf("an unknown conversation did not wait for the index: %q", res.Header.Get(RouteHeader))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() { // another that gives up while it waits
		req, _ := http.NewRequestWithContext(ctx, "POST", b.url+"/claude-code/v1/messages", strings.NewReader(claudeBody(user("hi"))))
		req.Header = claudeHeader("impatient")
		_, err := http.DefaultTransport.RoundTrip(req)
		gone <- err
	}()
	select {
	case <-late.asked:
	case err := <-gone:
		t.Fatalf("another did not wait for the index: %v", err)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Error("a request that was given up while it waited was answered")
	}
	select {
	case res := <-done:
		t.Fatalf("an unknown conversation was placed without the index: %q", res.Header.Get(RouteHeader))
	default:
	}
	if n := b.servers["b"].Arrivals(); n != 0 {
		t.Errorf("b got %d requests before the index was there", n)
	}
	close(late.loaded)
	b.route("then it is placed", <-done, "pin=new", "server=b")
}

// A turn that was on its way when its conversation was moved is logged later
// than the move, but arrived before it: the move holds, also after the pins
// were lost.
func TestAMoveOutlivesATurnThatWasOnItsWay(t *testing.T) {
	hold, arrived := make(chan struct{}), make(chan struct{}, 4)
	b := newBench(t, func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
		arrived <- struct{}{}
		if rec.N == 1 {
			return fakeserver.Behaviour{Hold: hold}
		}
		return fakeserver.Behaviour{}
	})
	lines := recording{b.router.Recorder, make(chan reqlog.Line, 16)}
	b.router.Recorder = lines
	before := time.Now()
	done := make(chan *http.Response)
	go func() { done <- b.claude("s1", user("hello")) }()
	<-arrived
	c := placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"}
	if err := b.router.Move(t.Context(), c, "b"); err != nil {
		t.Fatal(err)
	}
	moved := time.Now()
	if line := <-lines.seen; line.Kind == reqlog.KindPin {
		line = <-lines.seen
		if line.Kind != reqlog.KindMove || line.Server != "b" || line.Pin != "moved" || !strings.HasPrefix(line.Why, "moved here by you on ") {
			t.Errorf("the move's line is %+v, want it to say where and why", line)
		}
	}
	close(hold)
	read(t, <-done)
	for line := range lines.seen {
		if line.Kind != reqlog.KindTurn {
			continue
		}
		if line.Time.Before(before) || line.Time.After(moved) {
			t.Errorf("the turn's time is %v, want its arrival, between %v and %v", line.Time, before, moved)
		}
		break
	}
	delete(b.pins.values, pinKey(c))
	b.route("after the loss", b.claude("s1", user("hello")+","+assistant("hi")+","+user("go on")), "pin=restored", "server=b")
}

// recording tells of each line that is logged.
type recording struct {
	Recorder
	seen chan reqlog.Line
}

func (r recording) Append(l reqlog.Line) {
	r.Recorder.Append(l)
	r.seen <- l
}

// Who forgets a conversation wants it placed anew: a turn that was on its way
// then does not bring it back.
func TestAForgottenConversationIsNotBroughtBack(t *testing.T) {
	hold, arrived := make(chan struct{}), make(chan struct{}, 4)
	b := newBench(t, func(server string, _ *fakeserver.Record) fakeserver.Behaviour {
		arrived <- struct{}{}
		if server == "a" {
			return fakeserver.Behaviour{Hold: hold, Text: longText}
		}
		return fakeserver.Behaviour{}
	})
	done := make(chan *http.Response)
	go func() { done <- b.claude("s1", user("hello")) }()
	<-arrived
	if err := b.router.Forget(t.Context(), placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	close(hold)
	read(t, <-done)
	b.choose("b")
	b.route("placed anew", b.claude("s1", user("hello")), "turn=opening", "pin=new", "server=b")
}

// A title comes a moment before its opening. It waits, and goes on as soon as
// the opening has its pin.
func TestWhatWaitsForAnOpeningIsWokenByItsPin(t *testing.T) {
	b := newBench(t, nil)
	c := placement.Conversation{Agent: "claude-code", Session: "s1"}
	waits := func() bool {
		b.router.gates.mu.Lock()
		defer b.router.gates.mu.Unlock()
		return b.router.gates.waits[c] != nil
	}
	header := claudeHeader("s1")
	header.Del("X-Claude-Code-Request-Class")
	title := make(chan *http.Response)
	go func() {
		title <- b.post("/claude-code/v1/messages", `{"model":"m","max_tokens":64,"stream":true,"system":[{"type":"text","text":"You are a test."}],"messages":[`+user("<session>hello</session>")+`]}`, header)
	}()
	for !waits() {
		runtime.Gosched()
	}
	b.route("opening", b.claude("s1", user("hello")), "turn=opening; pin=new; server=a")
	if waits() {
		t.Error("the title was not told that its conversation has a pin")
	}
	b.route("title", <-title, "turn=side", "server=a")
}

// Two conversations may well both have been answered "ok".
func TestAnswersTooShortForAMarkTellNothing(t *testing.T) {
	short := strings.Repeat("x", 47)
	b := newBench(t, func(string, *fakeserver.Record) fakeserver.Behaviour {
		return fakeserver.Behaviour{Text: short, Unsigned: true}
	})
	b.route("opening", b.claude("s1", user("hello")), "server=a")
	b.choose("b")
	b.route("another that began elsewhere", b.claude("s2", user("good day")+","+assistant(short)+","+user("go on")), "turn=continuation; pin=new; server=own")
}

// keptLines keeps what is registered and logged.
type keptLines struct {
	Recorder
	mu    sync.Mutex
	keys  map[string]bool
	lines []reqlog.Line
}

func (k *keptLines) Register(c placement.Conversation, server string, key uint64, arrived time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[string(appendHex(nil, key))] = true
	k.Recorder.Register(c, server, key, arrived)
}

func (k *keptLines) Append(l reqlog.Line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, l)
	k.Recorder.Append(l)
}

func (k *keptLines) logged() []reqlog.Line {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lines)
}

// What a turn registers is in its line, too: after a restart the log tells it.
func TestKeysAreInTheLog(t *testing.T) {
	b := newBench(t, nil)
	kept := &keptLines{Recorder: b.router.Recorder, keys: map[string]bool{}}
	b.router.Recorder = kept
	b.route("opening", b.claude("s1", user("hello")), "turn=opening")
	b.route("next turn", b.claude("s1", user("hello")+","+assistant("hi")+","+user("go on")), "turn=continuation")
	for len(kept.logged()) < 3 { // the pin's line and each turn's, which comes when the answer has gone
		runtime.Gosched()
	}
	if len(kept.keys) != 2 {
		t.Errorf("%d keys were registered, want one for each turn", len(kept.keys))
	}
	for _, l := range kept.logged() {
		if !kept.keys[l.Key] {
			t.Errorf("the line of kind %q, turn %s, has the key %q, want one of %v", l.Kind, l.Turn, l.Key, kept.keys)
		}
	}
}
