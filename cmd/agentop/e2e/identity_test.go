package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentop/cmd/testkit"
)

// These tests have the real agents go on with a conversation under another
// name, or with another history, after new ones were sent elsewhere.

func TestClaudeCodeIsAtHomeAfterACompaction(t *testing.T) {
	s := newStage(t)
	p := claudePlayer(t, s)
	first := p.open("hello one")
	p.resume(first, "go on with one")

	s.use(p.agent, "b")
	s.mark()
	p.resume(first, "/compact")
	s.expectAll("the compaction after the switch", "a")
	s.expectText("the compaction", "a", "CRITICAL: Respond with TEXT ONLY")
	s.mark()
	p.resume(first, "after the compaction")
	s.expectAll("resumed after the compaction", "a")
	s.expectText("resumed after the compaction", "a", "This session is being continued")
	s.mark()
	p.fork(first, "a fork of what was compacted")
	s.expectAll("forked after the compaction", "a")
	s.mark()
	p.resume(first, "/compact")
	s.losePins()
	p.resume(first, "after a compaction, without the pins")
	s.expectAll("resumed after a compaction with pins.json deleted", "a")
	s.expectText("resumed after a compaction with pins.json deleted", "a", "after a compaction, without the pins")
}

// TestClaudeCodeIsAtHomeAfterGoingBack rewinds to an earlier message and to
// the first. What comes then looks like an opening.
func TestClaudeCodeIsAtHomeAfterGoingBack(t *testing.T) {
	testkit.Need(t, "tmux")
	s := newStage(t)
	home, dir := agentDir(t), agentDir(t)
	term := newTerminal(t)
	prepareClaude(t, home, dir)
	term.run(dir, claudeEnv(s, home), claude.install(t))
	term.await("? for shortcuts", "auto mode", "bypass permissions")
	for _, prompt := range []string{"hello one", "hello two", "hello three"} {
		s.mark()
		term.say(prompt)
		s.awaitTurn("a", prompt)
	}
	s.use("claude-code", "b")

	s.mark()
	term.rewind(1)
	term.say("instead of three")
	s.awaitTurn("a", "instead of three")
	s.expectAll("back by one message", "a")
	s.expectNoText("back by one message", "a", "hello three")

	s.mark()
	term.rewind(3)
	term.say("instead of one")
	s.awaitTurn("a", "instead of one")
	s.expectAll("back to the first message", "a")
	s.expectNoText("back to the first message", "a", "hello one")
}

// rewind has Claude Code go back by some messages. It puts what was said
// there into the prompt, which is cleared.
func (term *terminal) rewind(messages int) {
	term.t.Helper()
	term.tmux("send-keys", "Escape", "Escape")
	term.await("Rewind")
	for range messages {
		term.tmux("send-keys", "Up")
	}
	term.tmux("send-keys", "Enter")
	term.await("1. Restore conversation")
	term.tmux("send-keys", "Enter")
	until(term.t, func() bool { return !strings.Contains(term.screen(), "Restore conversation") }, "the conversation is back")
	term.tmux("send-keys", "C-u")
}

// expectText asserts that a server got a text since the mark: what was meant
// to happen did happen.
func (s *stage) expectText(what, server, text string) {
	s.t.Helper()
	for _, rec := range s.since(server) {
		if bytes.Contains(rec.Plain, []byte(text)) {
			return
		}
	}
	s.t.Errorf("%s: %s got no request with %q", what, server, text)
}

// expectNoText is its opposite, of all requests since the mark.
func (s *stage) expectNoText(what, server, text string) {
	s.t.Helper()
	for _, rec := range s.since(server) {
		if bytes.Contains(rec.Plain, []byte(text)) {
			s.t.Errorf("%s: request %d of %s holds %q", what, rec.N, server, text)
		}
	}
}

// TestNamelessClientIsAtHome is a client that states no session: twenty turns,
// three switches, and a loss of the pins on the way.
func TestNamelessClientIsAtHome(t *testing.T) {
	s := newStage(t)
	history := ""
	for turn := range 20 {
		switch turn {
		case 4, 16:
			s.use("script", "b")
		case 10:
			s.use("script", "a")
		case 13:
			s.losePins()
		}
		history += fmt.Sprintf(`{"role":"user","content":"turn %d"},`, turn)
		s.mark()
		answer := s.curl("/script/v1/chat/completions", `{"model":"test-large","messages":[`+strings.TrimSuffix(history, ",")+`]}`)
		s.expectAll(fmt.Sprintf("turn %d", turn), "a")
		s.expectHistory(fmt.Sprintf("turn %d", turn), "a", turn)
		history += fmt.Sprintf(`{"role":"assistant","content":%s},`, answer)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(s.agentop("sessions", "list", "--json")), &rows); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, want one: %v, %v", len(rows), rows, err)
	}
}

// curl asks as a script would, and returns the reply's text, quoted.
func (s *stage) curl(path, body string) string {
	s.t.Helper()
	res, err := http.Post(s.base(path), "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Choices []struct {
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Choices) != 1 {
		s.t.Fatalf("status %d, %d choices, %v", res.StatusCode, len(answer.Choices), err)
	}
	return string(answer.Choices[0].Message.Content)
}
