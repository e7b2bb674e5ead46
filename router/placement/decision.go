package placement

import "agentop/agents"

// Decision is what the rules say of one request. Exactly one of Wait, Refusal
// and Server is set. Decisions are comparable.
type Decision struct {
	Wait    Wait    // ask again when this is over; no rule has decided yet
	Refusal Refusal // Kind is RefusedNot unless agentop must answer with an error
	Server  string  // a server's name (a pool's, not a member's) or Own
	Pin     PinOutcome
	Rule    Rule
	// Session is the conversation of the asking agent that the request belongs
	// to: as stated, else as found by content or derived (see Plain). It is
	// what a pin and the log's row are kept under; "" when there is none.
	Session string
	// From is the other conversation that was followed; zero when none was.
	From Conversation
	Turn agents.Turn // given what is known, as it goes into headers and the log
}

// PinOutcome is what a decision does to the conversation's pin.
type PinOutcome string

// The outcomes, as headers and the log show them. New, followed and restored
// ask for a pin to be made before the turn is sent.
const (
	PinNone     PinOutcome = "none"
	PinNew      PinOutcome = "new"
	PinKept     PinOutcome = "kept"
	PinFollowed PinOutcome = "followed"
	PinRestored PinOutcome = "restored"
)

// Makes says whether the decision's pin has to be written.
func (o PinOutcome) Makes() bool {
	return o == PinNew || o == PinFollowed || o == PinRestored
}

// Rule is the rule that decided, numbered as at Place.
type Rule string

// The rules. Rule 7 takes the place of the rule that said own upstream.
const (
	Rule1Pin            Rule = "1"
	Rule2aLog           Rule = "2a"
	Rule2bResponse      Rule = "2b"
	Rule2cKey           Rule = "2c"
	Rule2dMark          Rule = "2d"
	Rule2eParent        Rule = "2e"
	Rule3NotRouted      Rule = "3"
	Rule4Opening        Rule = "4"
	Rule5Unseen         Rule = "5"
	Rule6Reply          Rule = "6-reply"
	Rule6Session        Rule = "6-session"
	Rule6Parent         Rule = "6-parent"
	Rule6History        Rule = "6-history"
	Rule6Own            Rule = "6-own"
	Rule7NoUpstream     Rule = "7"
	NotInferenceSession Rule = "none-session"
	NotInferenceHistory Rule = "none-history"
	NotInferenceOwn     Rule = "none-own"
	NotInferenceServer  Rule = "none-server"
)

// Wait is what a request has to wait for before it can be placed.
type Wait string

// The waits.
const (
	WaitNone Wait = ""
	// WaitIndex: ask again when Known is ready.
	WaitIndex Wait = "index"
	// WaitOpening: ask again when the decision's session has been pinned, or
	// after 2 s, with Question.Waited set.
	WaitOpening Wait = "opening"
)
