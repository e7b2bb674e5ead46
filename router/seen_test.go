package router

import (
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/control"
)

// TestAnAgentSeenBeforeAStartIsSeenAfterIt holds that a restart does not make
// agents look as if none of their requests had ever arrived.
func TestAnAgentSeenBeforeAStartIsSeenAfterIt(t *testing.T) {
	b := newBench(t, nil)
	early, late := time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	b.router.Restore(nil, []control.Session{
		{Agent: "claude-code", ID: "s2", LastTurn: late}, {Agent: "claude-code", ID: "s1", LastTurn: early},
	})
	if at, _ := b.router.Seen(agents.ClaudeCode); !at.Equal(late) {
		t.Errorf("seen at %v, want its last turn at %v", at, late)
	}
	if at, _ := b.router.Seen(agents.Codex); !at.IsZero() {
		t.Errorf("codex, which never came, was seen at %v", at)
	}
	read(t, b.claude("s3", user("hello")))
	b.router.Restore(nil, []control.Session{{Agent: "claude-code", ID: "s1", LastTurn: late}})
	if at, version := b.router.Seen(agents.ClaudeCode); !at.After(late) || version == "" {
		t.Errorf("seen at %v, version %q, want the request since the start", at, version)
	}
}
