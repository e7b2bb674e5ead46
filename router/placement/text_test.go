package placement

import (
	"strings"
	"testing"
	"time"

	"agentop/agents"
	"agentop/agents/outline"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestWhyIsOneLine(t *testing.T) {
	at := time.Date(2026, 11, 29, 14, 2, 0, 0, time.UTC)
	from := claude("4e96aa01-7c3b-4a51-9f00-1b2c3d4e5f60")
	cases := []struct {
		name string
		d    Decision
		now  time.Time
		want string
	}{
		{"opened", Decision{Rule: Rule4Opening, Server: "glm", Turn: opening}, noon, "opened 14:02 when claude-code was set to glm"},
		{"opened, another day", Decision{Rule: Rule4Opening, Server: "glm", Turn: opening}, noon.AddDate(0, 0, 1), "opened 29 Nov 14:02 when claude-code was set to glm"},
		{"not routed", Decision{Rule: Rule3NotRouted, Server: Own, Turn: opening}, noon, "opened 14:02 when claude-code was not routed"},
		{"fork by key", Decision{Rule: Rule2cKey, Pin: PinFollowed, From: from}, noon, "follows 4e96aa01... (fork)"},
		{"fork by mark", Decision{Rule: Rule2dMark, Pin: PinFollowed, From: from}, noon, "follows 4e96aa01... (fork)"},
		{"fork by parent", Decision{Rule: Rule2eParent, Pin: PinFollowed, From: from}, noon, "follows 4e96aa01... (fork)"},
		{"response", Decision{Rule: Rule2bResponse, Pin: PinFollowed, From: from}, noon, "follows 4e96aa01... (previous response)"},
		{"side request's reply", Decision{Rule: Rule2dMark, Pin: PinFollowed}, noon, "follows a side request's reply"},
		{"restored", Decision{Rule: Rule2aLog, Pin: PinRestored}, noon, "restored from the request log"},
		{"restored by key", Decision{Rule: Rule2cKey, Pin: PinRestored}, noon, "restored from the request log"},
		{"unseen", Decision{Rule: Rule5Unseen, Server: Own, Turn: continuation}, noon, "began before agentop saw it"},
		{"unseen, no own upstream", Decision{Rule: Rule7NoUpstream, Server: "glm", Turn: continuation}, noon,
			"began before agentop saw it, and claude-code has no upstream of its own: on glm since 14:02"},
		{"with a derived parent", Decision{Rule: Rule6Parent, From: claude(px("00ff00ff00ff00ff"))}, noon, "with its parent px:00ff0..."},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := Why(agents.ClaudeCode, tc.d, at, tc.now); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestEveryRuleHasAWhy(t *testing.T) {
	rules := []Rule{Rule1Pin, Rule2aLog, Rule2bResponse, Rule2cKey, Rule2dMark, Rule2eParent, Rule3NotRouted, Rule4Opening,
		Rule5Unseen, Rule6Reply, Rule6Session, Rule6Parent, Rule6History, Rule6Own, Rule7NoUpstream,
		NotInferenceSession, NotInferenceHistory, NotInferenceOwn, NotInferenceServer}
	for _, rule := range rules {
		got := Why(agents.Codex, Decision{Rule: rule, Server: "glm"}, noon, noon)
		if got == "" || strings.ContainsAny(got, "\n\r") {
			t.Errorf("rule %s: got %q, want one line", rule, got)
		}
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	cases := []struct {
		name string
		r    Refusal
		want []string
	}{
		{"removed", Refusal{Kind: RefusedRemoved, Agent: agents.ClaudeCode, Session: "S", Server: "gone", Running: true},
			[]string{`"gone"`, "no longer configured", "`agentop server add gone URL`", "a new one works", "kept", "`agentop sessions move S SERVER`"}},
		{"removed, not a conversation's turn", Refusal{Kind: RefusedRemoved, Agent: agents.ClaudeCode, Session: "S", Server: "gone"},
			[]string{`"gone"`, "`agentop server add gone URL`", "`agentop server use NAME --agent claude-code`"}},
		{"format", Refusal{Kind: RefusedFormat, Agent: agents.Codex, Session: px("ab"), Server: "llama", Format: outline.Responses, Running: true},
			[]string{`"llama"`, "OpenAI Responses", "codex", "try again in a moment", "sessions move px:ab SERVER", "`agentop server use NAME --agent codex`"}},
		{"own upstream off", Refusal{Kind: RefusedUpstreamOff, Agent: agents.Codex, Session: "S", Server: Own, Running: true},
			[]string{"codex's own upstream", "`upstream: none`", "a new one works"}},
		{"nowhere", Refusal{Kind: RefusedNoServer, Agent: "aider"}, []string{"aider has no server", "`agentop server use NAME --agent aider`"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.r.Text()
			if !strings.HasPrefix(got, "agentop: ") || strings.ContainsAny(got, "\x01\n") {
				t.Errorf("got %q, want one line that begins with agentop:", got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want it to say %q", got, want)
				}
			}
		})
	}
	if got := (Refusal{}).Text(); got != "" {
		t.Errorf("no refusal says %q, want nothing", got)
	}
}
