package router

import (
	"net/http"
	"strings"
	"testing"

	"agentop/agents"
	"agentop/router/fakeserver"
	"agentop/router/placement"
)

// The rows of the predecessor's faults that concern one turn on its way
// through the router. Others are tests of the packages below it.

func TestPredecessor_01_ALongConversationIdleOverARestart(t *testing.T) {
	b := newBench(t, nil)
	history := user("hello")
	for range 30 {
		read(t, b.claude("long", history))
		history += "," + assistant("an answer that is long enough to bear a mark of its own") + "," + user("go on")
	}
	for name, lose := range map[string]func(){
		"its pin":       func() {},
		"no pin":        func() { clear(b.pins.values) },
		"an emptied id": func() { b.pins.values[pinKey(placement.Conversation{Agent: agents.ClaudeCode, Session: "long"})] = "" },
	} {
		lose()
		b.choose("b")
		b.again()
		b.route(name, b.claude("long", history), "turn=continuation", "server=a")
	}
}

func TestPredecessor_02_ARetryAfterARestartMeetsItsServer(t *testing.T) {
	hold, arrived := make(chan struct{}), make(chan struct{}, 4)
	b := newBench(t, func(server string, _ *fakeserver.Record) fakeserver.Behaviour {
		arrived <- struct{}{}
		return fakeserver.Behaviour{Hold: hold}
	})
	first := make(chan *http.Response, 1)
	go func() { first <- b.claude("s1", user("hello")) }()
	<-arrived
	b.choose("b")
	b.again() // nothing was answered or logged when the first router was left
	retry := make(chan *http.Response, 1)
	go func() { retry <- b.claude("s1", user("hello")) }()
	<-arrived
	close(hold)
	b.route("retry", <-retry, "pin=kept", "server=a")
	read(t, <-first)
}

// countingPins counts how often each record is read.
type countingPins struct {
	*memoryPins
	reads map[string]int
}

func (c countingPins) Get(key string) (string, bool) {
	c.mu.Lock()
	c.reads[key]++
	c.mu.Unlock()
	return c.memoryPins.Get(key)
}

func TestPredecessor_08_APinIsReadOnceForATurn(t *testing.T) {
	b := newBench(t, nil)
	read(t, b.claude("s1", user("hello")))
	counting := countingPins{b.pins, map[string]int{}}
	b.router.Pins = counting
	read(t, b.claude("s1", user("hello")+","+assistant("hi")+","+user("go on")))
	key := pinKey(placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"})
	if n := counting.reads[key]; n != 1 || len(counting.reads) != 1 {
		t.Errorf("the pin was read %d times, keys read: %v; want it alone, once", n, counting.reads)
	}
}

func TestPredecessor_09_HalfARecordIsNoPin(t *testing.T) {
	for name, record := range map[string]string{
		"an empty object": `{}`, "null": `null`, "nothing": ``, "no JSON": `{"agent":`, "a list": `[]`,
		"no place":       `{"agent":"claude-code","session":"s1"}`,
		"no session":     `{"agent":"claude-code","server":"b"}`,
		"no agent":       `{"session":"s1","server":"b"}`,
		"another's":      `{"agent":"codex","session":"s1","server":"b"}`,
		"another's name": `{"agent":"claude-code","session":"s2","server":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			log := b.watchLog()
			b.route("opening", b.claude("s1", user("hello")), "pin=new", "server=a")
			b.choose("b")
			c := placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"}
			b.pins.values[pinKey(c)] = record
			b.route("history decides", b.claude("s1", user("hello")+","+assistant("hi")+","+user("go on")), "pin=restored", "server=a")
			if got := log.String(); !strings.Contains(got, "stored pin is no pin") {
				t.Errorf("nothing was logged of it: %s", got)
			}
			b.pins.values[pinKey(placement.Conversation{Agent: agents.ClaudeCode, Session: "new"})] = record
			b.route("it blocks nobody", b.claude("new", user("hello")), "pin=new", "server=b")
		})
	}
}

func TestPredecessor_18_CountsAndServerAreOfMainTurns(t *testing.T) {
	b := newBench(t, func(server string, _ *fakeserver.Record) fakeserver.Behaviour {
		return fakeserver.Behaviour{Text: longText}
	})
	b.route("opening", b.claude("s1", user("hello")), "server=a")
	h := claudeHeader("s1")
	h.Set("X-Claude-Code-Request-Class", "title")
	for range 3 {
		b.route("title", b.do("POST", "/claude-code/v1/messages", strings.NewReader(strings.Replace(claudeBody(user("hello")), "claude-opus-5-5", "claude-haiku", 1)), h), "turn=side")
	}
	s, ok := b.router.Session(placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"})
	if !ok || s.Turns != 1 || s.Server != "a" || s.ModelAsked != "claude-opus-5-5" {
		t.Errorf("row %+v, want one turn on a with the main turn's model", s)
	}
	if got := b.router.Running(agents.ClaudeCode); len(got) != 1 || got["a"] != 1 {
		t.Errorf("running %v, want one on a", got)
	}
}

func TestPredecessor_27_AnIDOverTheLimitIsA400ThatSaysSo(t *testing.T) {
	b := newBench(t, nil)
	b.route("256 bytes", b.claude(strings.Repeat("x", agents.MaxSessionID), user("hello")), "server=a")
	res := b.claude(strings.Repeat("x", agents.MaxSessionID+1), user("hello"))
	body := read(t, res)
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "256") || !strings.Contains(body, "agentop: ") {
		t.Errorf("%d %s, want 400 that names the limit", res.StatusCode, body)
	}
	if n := b.servers["a"].Arrivals(); n != 1 {
		t.Errorf("%d requests reached a server, want the first alone", n)
	}
}
