package e2e

import (
	"bytes"
	"testing"

	"agentop/router/fakeserver"
)

// TestSubagentsGoWithTheirConversation has the real Claude Code start a
// subagent after the switch: its requests go where its conversation is.
func TestSubagentsGoWithTheirConversation(t *testing.T) {
	s := newStage(t)
	a := fakeserver.New(fakeserver.Options{Name: "a", Script: func(rec *fakeserver.Record) fakeserver.Behaviour {
		main := rec.Header.Get("X-Claude-Code-Agent-Id") == ""
		if main && bytes.Contains(rec.Plain, []byte("send somebody")) && !bytes.Contains(rec.Plain, []byte("tool_result")) {
			return fakeserver.Behaviour{Tools: []fakeserver.ToolCall{{
				Name: "Agent", Input: `{"description":"look around","prompt":"report what you see","subagent_type":"general-purpose"}`,
			}}}
		}
		return fakeserver.Behaviour{}
	}})
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	s.servers["a"] = a
	s.configure("a")
	s.restart()

	p := claudePlayer(t, s)
	first := p.open("hello one")
	s.use(p.agent, "b")
	s.mark()
	p.resume(first, "send somebody")
	s.expectAll("a subagent after the switch", "a")
	subagents := 0
	for _, rec := range s.since("a") {
		if rec.Header.Get("X-Claude-Code-Agent-Id") != "" {
			subagents++
		}
	}
	if subagents == 0 {
		t.Error("no subagent was started: is the tool called otherwise?")
	}
}
