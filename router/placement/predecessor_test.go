package placement

import (
	"testing"

	"agentop/agents"
)

func TestPredecessor_01_AnIdleConversationIsNotTakenForNew(t *testing.T) {
	lab := func(rule Rule, pin PinOutcome) Decision {
		return Decision{Server: "lab", Pin: pin, Rule: rule, Session: "S", Turn: continuation}
	}
	followed := lab(Rule2cKey, PinFollowed)
	followed.From = claude("T")
	runRules(t, []ruleCase{
		{"its pin", asks(continuation, keys(1, 2)), three(), memory{pins: pins("S", "lab")}, lab(Rule1Pin, PinKept)},
		{"without one, the log", asks(continuation, keys(1, 2)), three(), memory{last: pins("S", "lab")}, lab(Rule2aLog, PinRestored)},
		{"without that, history", asks(continuation, keys(1, 2)), three(), memory{keys: claim(1, owner("T", "lab"))}, followed},
		{"without that, own upstream", asks(continuation, keys(1, 2)), three(), memory{},
			Decision{Server: Own, Pin: PinNew, Rule: Rule5Unseen, Session: "S", Turn: continuation}},
	})
}

// A record without agent, session or place never reaches Place: Known.Pin
// answers no, and rule 2 decides.
func TestPredecessor_09_ABrokenPinIsNoPin(t *testing.T) {
	runRules(t, []ruleCase{
		{"rule 2 decides", asks(continuation), three(), memory{last: pins("S", "lab")},
			Decision{Server: "lab", Pin: PinRestored, Rule: Rule2aLog, Session: "S", Turn: continuation}},
		{"another agent's pin blocks nothing", asks(opening), three(),
			memory{pins: map[Conversation]string{{agents.OpenCode, "S"}: "lab", {"", "S"}: "lab", {agents.ClaudeCode, ""}: "lab"}},
			Decision{Server: "glm", Pin: PinNew, Rule: Rule4Opening, Session: "S", Turn: opening}},
		{"a pin without session is nobody's", asks(opening, session("")), three(), memory{pins: pins("", "lab")},
			Decision{Server: "glm", Pin: PinNone, Rule: Rule4Opening, Turn: opening}},
	})
}

func TestPredecessor_10_ACountOfAnUnknownConversationStaysOffTheCurrentServer(t *testing.T) {
	runRules(t, []ruleCase{
		{"count_tokens", asks(none, kind(agents.KindCount), keys(1, 2)), three(), memory{},
			Decision{Server: Own, Pin: PinNone, Rule: NotInferenceOwn, Session: "S", Turn: none}},
		{"a body no parser reads", asks(none, unread), three(), memory{},
			Decision{Server: Own, Pin: PinNone, Rule: NotInferenceOwn, Session: "S", Turn: none}},
	})
}

func TestPredecessor_14_AnUnreadFormatFollowsItsSessionElseOwnUpstream(t *testing.T) {
	runRules(t, []ruleCase{
		{"session pinned", asks(none, unread), three(), memory{pins: pins("S", "lab")},
			Decision{Server: "lab", Pin: PinNone, Rule: NotInferenceSession, Session: "S", Turn: none}},
		{"no session", asks(none, unread, session("")), three(), memory{},
			Decision{Server: Own, Pin: PinNone, Rule: NotInferenceOwn, Turn: none}},
		{"no own upstream", asks(none, unread, session("")), noUpstream(), memory{},
			Decision{Server: "glm", Pin: PinNone, Rule: Rule7NoUpstream, Turn: none}},
	})
}

func TestPredecessor_18_ASideRequestSaysNothingOfItsConversation(t *testing.T) {
	d := Place(asks(side, marks(9)), three(), &memory{pins: pins("S", "glm"), marks: claim(9, owner("", "lab"))})
	if d.Server != "lab" || d.Pin != PinNone || d.Turn != side {
		t.Errorf("got %+v, want a side turn on lab that pins nothing", d)
	}
}

func TestPredecessor_21_OneSentenceForWhatAgentopDidNotSee(t *testing.T) {
	for _, rule := range []Rule{Rule3NotRouted, Rule5Unseen} {
		d := Decision{Rule: rule, Pin: PinNew, Server: Own, Turn: continuation}
		if got := Why(agents.ClaudeCode, d, noon, noon); got != beganBefore {
			t.Errorf("rule %s: got %q, want %q", rule, got, beganBefore)
		}
	}
}
