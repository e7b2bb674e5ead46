package router

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/fakeserver"
	"agentop/router/placement"
)

// These tests hold what a person's own word does to what is known of a
// conversation: moving it, and having it forgotten.

// A request beside a conversation that was moved repeats replies of its old
// place. It goes where the conversation is now; a subagent that runs there
// stays, since its own replies were made there.
func TestRule6_ASideRequestAfterAMoveGoesAlong(t *testing.T) {
	b := newBench(t, func(string, *fakeserver.Record) fakeserver.Behaviour { return fakeserver.Behaviour{Text: longText} })
	beside := func(class, messages string) map[string]string {
		h := claudeHeader("s1")
		h.Set("X-Claude-Code-Request-Class", class)
		if class == "subagent" {
			h.Set("X-Claude-Code-Agent-Id", "sub-1")
		}
		res := b.do("POST", "/claude-code/v1/messages", strings.NewReader(claudeBody(messages)), h)
		read(t, res)
		return routeOf(t, res.Header.Get(RouteHeader))
	}
	turns := user("hello") + "," + assistant(signedLong("a", 1)) + "," + user("go on")
	b.route("opening", b.claude("s1", user("hello")), "server=a")
	if got := beside("subagent", user("search")); got["server"] != "a" {
		t.Errorf("subagent: %v, want a", got)
	}
	if err := b.router.Move(t.Context(), placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"}, "b"); err != nil {
		t.Fatal(err)
	}
	for _, again := range []string{"", "after a restart", "without the pins"} {
		switch again {
		case "after a restart":
			b.again()
		case "without the pins":
			clear(b.pins.values)
			b.again()
		}
		for _, class := range []string{"compaction", "auxiliary"} {
			if got := beside(class, turns); got["server"] != "b" || got["pin"] != "none" {
				t.Errorf("%s %s: %v, want b and no pin", class, again, got)
			}
		}
		if got := beside("subagent", user("search")+","+assistant(signedLong("a", 2))+","+user("go on")); got["server"] != "a" {
			t.Errorf("running subagent %s: %v, want a", again, got)
		}
	}
	b.route("next turn", b.claude("s1", turns), "server=b")
}

// routeOf takes a route header apart.
func routeOf(t *testing.T, header string) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for field := range strings.SplitSeq(header, "; ") {
		name, value, ok := strings.Cut(field, "=")
		if !ok {
			t.Fatalf("route %q", header)
		}
		fields[name] = value
	}
	return fields
}

// Two scripts began with equal words, one on each server, and one of them is
// forgotten: the other stays. The forgotten one does not become it, if its
// answers bear marks.
func TestForgettingOneOfTwoTwinsLeavesTheOther(t *testing.T) {
	for name, text := range map[string]string{"answers with marks": longText, "short answers": "ok"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(string, *fakeserver.Record) fakeserver.Behaviour { return fakeserver.Behaviour{Text: text} })
			open := func() (history, session string) {
				res := b.opencode("", user("hello"), nil)
				session = routeOf(t, res.Header.Get(RouteHeader))["session"]
				return user("hello") + "," + assistant(textIn(read(t, res))) + ",", session
			}
			first, forgotten := open()
			b.choose("b")
			second, kept := open()
			if forgotten == kept || !strings.HasPrefix(forgotten, "px:") {
				t.Fatalf("sessions %q and %q, want two derived ones", forgotten, kept)
			}
			c := b.router.Conversation("opencode", forgotten)
			if err := b.router.Forget(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"at once", "after a restart"} {
				res := b.opencode("", second+user("go on "+when), nil)
				answer := textIn(read(t, res))
				if got := routeOf(t, res.Header.Get(RouteHeader)); got["session"] != kept || got["server"] != "b" || got["pin"] != "kept" {
					t.Errorf("%s, the other: %v, want %s kept on b", when, got, kept)
				}
				second += user("go on "+when) + "," + assistant(answer) + ","
				b.again()
			}
			if text != longText {
				return // nothing but its beginning is left to tell it by, and that is the other's too
			}
			res := b.opencode("", first+user("and I?"), nil)
			read(t, res)
			if got := routeOf(t, res.Header.Get(RouteHeader)); got["server"] != "own" || got["session"] == kept {
				t.Errorf("the forgotten one: %v, want its own upstream under a name of its own", got)
			}
		})
	}
}

// A conversation's reason is written once and read for a month.
func TestWhyHereTellsOfWhichDay(t *testing.T) {
	b := newBench(t, nil)
	at := time.Date(2026, 11, 29, 14, 2, 0, 0, time.UTC)
	var days atomic.Int64
	b.router.Now = func() time.Time { return at.AddDate(0, 0, int(days.Load())) }
	b.route("opening", b.claude("s1", user("hello")), "server=a")
	for day, want := range []string{"opened 14:02 when claude-code was set to a", "opened 29 Nov 14:02 when claude-code was set to a"} {
		days.Store(int64(day))
		if s, ok := b.router.Session(placement.Conversation{Agent: agents.ClaudeCode, Session: "s1"}); !ok || s.Why != want {
			t.Errorf("%d days later: %q, want %q", day, s.Why, want)
		}
	}
}

// The part of an answer that a client kept when it broke off tells of nobody:
// where an earlier answer is known that is enough, else it is the own upstream,
// and never the server that is chosen by now.
func TestABrokenOffAnswerIsNoGuess(t *testing.T) {
	for name, whole := range map[string]int{"the first": 0, "the second": 1} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
				if int(rec.N) > whole {
					return fakeserver.Behaviour{Text: longText + longText, Cut: fakeserver.CutClose, CutAfter: 3}
				}
				return fakeserver.Behaviour{Text: longText}
			})
			history, want := "", "own"
			for range whole {
				res := b.opencode("", history+user("hello"), nil)
				history, want = user("hello")+","+assistant(textIn(read(t, res)))+",", "a"
			}
			res := b.opencode("", history+user("more"), nil)
			_, _ = io.Copy(io.Discard, res.Body) // it is cut
			b.choose("b")
			next := b.opencode("", history+user("more")+","+assistant(signedLong("a", 1)[:60])+","+user("go on"), nil)
			_, _ = io.Copy(io.Discard, next.Body)
			if got := routeOf(t, next.Header.Get(RouteHeader))["server"]; got != want {
				t.Errorf("after %s answer was broken off: %q, want %q", name, got, want)
			}
		})
	}
}
