package placement

import (
	"testing"

	"agentop/agents"
	"agentop/agents/outline"
)

const (
	opening      = agents.Opening
	continuation = agents.Continuation
	side         = agents.Side
	none         = agents.NotInference
)

// ruleCase is one question and its whole answer.
type ruleCase struct {
	name  string
	q     Question
	c     Choices
	known memory
	want  Decision
}

func runRules(t *testing.T, cases []ruleCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := Place(tc.q, tc.c, &tc.known)
			if got != tc.want {
				t.Errorf("Place(%+v)\n got %+v\nwant %+v", tc.q, got, tc.want)
			}
		})
	}
}

func pins(pairs ...string) map[Conversation]string {
	m := map[Conversation]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[claude(pairs[i])] = pairs[i+1]
	}
	return m
}

func claim(id uint64, owners ...Owner) map[uint64][]Owner { return map[uint64][]Owner{id: owners} }

func TestRule1APinIsKept(t *testing.T) {
	kept := Decision{Server: "lab", Pin: PinKept, Rule: Rule1Pin, Session: "S", Turn: continuation}
	refused := func(kind RefusalKind, server string, f outline.Format) Decision {
		return Decision{Rule: Rule1Pin, Pin: PinNone, Session: "S", Turn: continuation, Refusal: Refusal{
			Kind: kind, Agent: agents.ClaudeCode, Session: "S", Server: server, Format: f, Running: true}}
	}
	toOwn := kept
	toOwn.Server = Own
	runRules(t, []ruleCase{
		{"continuation", asks(continuation), three(), memory{pins: pins("S", "lab")}, kept},
		{"shaped like an opening", asks(opening), three(), memory{pins: pins("S", "lab")}, kept},
		{"not routed any more", asks(continuation), notRouted(), memory{pins: pins("S", "lab")}, kept},
		{"while the index loads", asks(continuation), three(), memory{pins: pins("S", "lab"), loading: true}, kept},
		{"pinned to own", asks(continuation), three(), memory{pins: pins("S", Own)}, toOwn},
		{"the log and history say otherwise", asks(continuation, keys(1, 2), marks(3), parent("P")), three(),
			memory{pins: pins("S", "lab", "P", "glm"), last: pins("S", "glm"), keys: claim(1, owner("T", "glm")), marks: claim(3, owner("T", "glm"))}, kept},
		{"another agent's equal id", asks(opening), three(),
			memory{pins: map[Conversation]string{{agents.Codex, "S"}: "lab"}},
			Decision{Server: "glm", Pin: PinNew, Rule: Rule4Opening, Session: "S", Turn: opening}},
		{"server removed", asks(continuation), three(), memory{pins: pins("S", "gone")}, refused(RefusedRemoved, "gone", outline.Messages)},
		{"format not spoken", asks(continuation), three(), memory{pins: pins("S", "llama")}, refused(RefusedFormat, "llama", outline.Messages)},
		{"own upstream switched off", asks(continuation), noUpstream(), memory{pins: pins("S", Own)}, refused(RefusedUpstreamOff, Own, outline.Messages)},
	})
}

func TestRule2HistoryNamesAConversation(t *testing.T) {
	followed := func(rule Rule, from, server string) Decision {
		return Decision{Server: server, Pin: PinFollowed, Rule: rule, Session: "S", From: claude(from), Turn: continuation}
	}
	unseen := Decision{Server: Own, Pin: PinNew, Rule: Rule5Unseen, Session: "S", Turn: continuation}
	restored := Decision{Server: "lab", Pin: PinRestored, Rule: Rule2aLog, Session: "S", Turn: continuation}
	own2c := Decision{Server: "lab", Pin: PinRestored, Rule: Rule2cKey, Session: "S", Turn: continuation}
	sideReply := followed(Rule2dMark, "", "lab")
	sideReply.From = Conversation{}
	waits := func(turn agents.Turn) Decision {
		return Decision{Wait: WaitIndex, Pin: PinNone, Session: "S", Turn: turn}
	}
	resp := func(owners ...Owner) map[string][]Owner { return map[string][]Owner{"r1": owners} }
	codexOwn := Owner{Conversation{agents.Codex, "C"}, Own}
	runRules(t, []ruleCase{
		{"a: last main turn", asks(continuation), three(), memory{last: pins("S", "lab")}, restored},
		{"a: shaped like an opening", asks(opening), three(), memory{last: pins("S", "lab")}, restored},
		{"a: not routed any more", asks(opening), notRouted(), memory{last: pins("S", "lab")}, restored},
		{"a: found while the index loads", asks(continuation), three(), memory{last: pins("S", "lab"), loading: true}, restored},
		{"a before b", asks(continuation, response("r1")), three(), memory{last: pins("S", "lab"), responses: resp(owner("T", "glm"))}, restored},
		{"a: server removed", asks(continuation), three(), memory{last: pins("S", "gone")},
			Decision{Rule: Rule2aLog, Pin: PinNone, Session: "S", Turn: continuation, Refusal: Refusal{
				Kind: RefusedRemoved, Agent: agents.ClaudeCode, Session: "S", Server: "gone", Format: outline.Messages, Running: true}}},

		{"b: previous response", asks(continuation, response("r1")), three(), memory{responses: resp(owner("T", "lab"))}, followed(Rule2bResponse, "T", "lab")},
		{"b: in the shape of an opening", asks(opening, response("r1")), three(), memory{responses: resp(owner("T", "lab"))}, followed(Rule2bResponse, "T", "lab")},
		{"b before c", asks(continuation, response("r1"), keys(1, 2)), three(),
			memory{responses: resp(owner("T", "lab")), keys: claim(1, owner("U", "glm"))}, followed(Rule2bResponse, "T", "lab")},
		{"b: ambiguous, so c", asks(continuation, response("r1"), keys(1, 2)), three(),
			memory{responses: resp(owner("T", "lab"), owner("V", "glm")), keys: claim(1, owner("U", "lab"))}, followed(Rule2cKey, "U", "lab")},

		{"c: strict prefix", asks(continuation, keys(1, 2, 3)), three(), memory{keys: claim(2, owner("T", "lab"))}, followed(Rule2cKey, "T", "lab")},
		{"c: deepest first", asks(continuation, keys(1, 2, 3)), three(),
			memory{keys: map[uint64][]Owner{1: {owner("U", "glm")}, 2: {owner("T", "lab")}}}, followed(Rule2cKey, "T", "lab")},
		{"c: the full input is no strict prefix", asks(opening, keys(1, 2)), three(), memory{keys: claim(2, owner("T", "lab"))},
			Decision{Server: "glm", Pin: PinNew, Rule: Rule4Opening, Session: "S", Turn: opening}},
		{"c: equal first turns on two servers", asks(continuation, keys(1, 2)), three(),
			memory{keys: claim(1, owner("T", "lab"), owner("U", "glm"))}, unseen},
		{"c: the ambiguous key ends the search", asks(continuation, keys(1, 2, 3)), three(),
			memory{keys: map[uint64][]Owner{1: {owner("T", "lab")}, 2: {owner("T", "lab"), owner("U", "glm")}}}, unseen},
		{"c: two conversations that are on one server now", asks(continuation, keys(1, 2)), three(),
			memory{pins: pins("U", "lab"), keys: claim(1, owner("T", "lab"), owner("U", "glm"))}, followed(Rule2cKey, "T", "lab")},
		{"c: two that were on one server and are not now", asks(continuation, keys(1, 2)), three(),
			memory{pins: pins("U", "glm"), keys: claim(1, owner("T", "lab"), owner("U", "lab"))}, unseen},
		{"c: where the conversation is now, by pin", asks(continuation, keys(1, 2)), three(),
			memory{pins: pins("T", "lab"), last: pins("T", "glm"), keys: claim(1, owner("T", "glm"))}, followed(Rule2cKey, "T", "lab")},
		{"c: where the conversation is now, by log", asks(continuation, keys(1, 2)), three(),
			memory{last: pins("T", "lab"), keys: claim(1, owner("T", "glm"))}, followed(Rule2cKey, "T", "lab")},
		{"c: its own key, after pin and row were lost", asks(continuation, keys(1, 2)), three(), memory{keys: claim(1, owner("S", "lab"))}, own2c},
		{"c before d", asks(continuation, keys(1, 2), marks(9)), three(),
			memory{keys: claim(1, owner("T", "lab")), marks: claim(9, owner("U", "glm"))}, followed(Rule2cKey, "T", "lab")},
		{"c: an equal beginning is no history of its own", asks(continuation, keys(1, 2, 3), began(1), marks(9)), three(),
			memory{keys: claim(1, owner("T", "lab"))},
			Decision{Server: Own, Pin: PinNew, Rule: Rule5Unseen, Session: "S", Turn: continuation}},
		{"c: an equal beginning, and the answer tells", asks(continuation, keys(1, 2, 3), began(1), marks(9)), three(),
			memory{keys: claim(1, owner("T", "lab")), marks: claim(9, owner("U", "glm"))}, followed(Rule2dMark, "U", "glm")},
		{"c: an equal beginning where no answer has a mark", asks(continuation, keys(1, 2, 3), began(1)), three(),
			memory{keys: claim(1, owner("T", "lab"))}, followed(Rule2cKey, "T", "lab")},
		{"c: a prefix with an answer in it comes before marks", asks(continuation, keys(1, 2, 3), began(1), marks(9)), three(),
			memory{keys: claim(2, owner("T", "lab")), marks: claim(9, owner("U", "glm"))}, followed(Rule2cKey, "T", "lab")},
		{"c: ambiguous, so d", asks(continuation, keys(1, 2), marks(9)), three(),
			memory{keys: claim(1, owner("T", "lab"), owner("U", "glm")), marks: claim(9, owner("U", "glm"))}, followed(Rule2dMark, "U", "glm")},

		{"d: reply mark", asks(continuation, marks(9)), three(), memory{marks: claim(9, owner("T", "lab"))}, followed(Rule2dMark, "T", "lab")},
		{"d: newest first", asks(continuation, marks(9, 8)), three(),
			memory{marks: map[uint64][]Owner{8: {owner("U", "glm")}, 9: {owner("T", "lab")}}}, followed(Rule2dMark, "T", "lab")},
		{"d: two servers made it", asks(continuation, marks(9)), three(), memory{marks: claim(9, owner("T", "lab"), owner("U", "glm"))}, unseen},
		{"d: a stock phrase, then an older mark", asks(continuation, marks(9, 8)), three(),
			memory{marks: map[uint64][]Owner{8: {owner("T", "lab")}, 9: {owner("T", "lab"), owner("U", "glm")}}}, followed(Rule2dMark, "T", "lab")},
		{"d: a side request's reply", asks(continuation, marks(9)), three(), memory{marks: claim(9, Owner{Server: "lab"})}, sideReply},
		{"d: only another agent got it", asks(continuation, marks(9)), three(), memory{marks: claim(9, Owner{Conversation{agents.Codex, "C"}, "lab"})}, unseen},
		{"d: another agent's own upstream is another place", asks(continuation, marks(9)), three(), memory{marks: claim(9, owner("T", Own), codexOwn)}, unseen},
		{"d before e", asks(continuation, marks(9), parent("P")), three(),
			memory{pins: pins("P", "glm"), marks: claim(9, owner("T", "lab"))}, followed(Rule2dMark, "T", "lab")},

		{"e: parent's pin", asks(continuation, parent("P")), three(), memory{pins: pins("P", "lab")}, followed(Rule2eParent, "P", "lab")},
		{"e: parent's last turn", asks(continuation, parent("P")), three(), memory{last: pins("P", "lab")}, followed(Rule2eParent, "P", "lab")},
		{"e: parent not known", asks(continuation, parent("P")), three(), memory{}, unseen},
		{"e: not routed any more", asks(continuation, parent("P")), notRouted(), memory{pins: pins("P", "lab")}, followed(Rule2eParent, "P", "lab")},
		{"parent on own", asks(continuation, parent("P")), three(), memory{pins: pins("P", Own)}, followed(Rule2eParent, "P", Own)},

		{"waits for the index", asks(continuation, keys(1, 2)), three(), memory{loading: true, keys: claim(1, owner("T", "lab"))}, waits(continuation)},
		{"an opening waits too", asks(opening), three(), memory{loading: true}, waits(opening)},
		{"also when not routed", asks(opening), notRouted(), memory{loading: true}, waits(opening)},
	})
}

func TestRules3To5And7WhereNothingIsKnown(t *testing.T) {
	at := func(rule Rule, turn agents.Turn, server string) Decision {
		return Decision{Server: server, Pin: PinNew, Rule: rule, Session: "S", Turn: turn}
	}
	refused := func(turn agents.Turn, rule Rule, kind RefusalKind, server string) Decision {
		return Decision{Rule: rule, Pin: PinNone, Session: "S", Turn: turn, Refusal: Refusal{
			Kind: kind, Agent: agents.ClaudeCode, Session: "S", Server: server, Format: outline.Messages}}
	}
	llama, gone := three(), three()
	llama.Server, gone.Server = "llama", "gone"
	runRules(t, []ruleCase{
		{"3: opening", asks(opening), notRouted(), memory{}, at(Rule3NotRouted, opening, Own)},
		{"3: continuation", asks(continuation), notRouted(), memory{}, at(Rule3NotRouted, continuation, Own)},
		{"4: opening", asks(opening), three(), memory{}, at(Rule4Opening, opening, "glm")},
		{"4: without own upstream", asks(opening), noUpstream(), memory{}, at(Rule4Opening, opening, "glm")},
		{"4: a server that speaks another format", asks(opening), llama, memory{}, refused(opening, Rule4Opening, RefusedFormat, "llama")},
		{"4: a server that is not there", asks(opening), gone, memory{}, refused(opening, Rule4Opening, RefusedRemoved, "gone")},
		{"5: continuation", asks(continuation), three(), memory{}, at(Rule5Unseen, continuation, Own)},
		{"5: of OpenCode", asks(continuation, agent(agents.OpenCode)), three(), memory{}, at(Rule5Unseen, continuation, Own)},
		{"7: continuation", asks(continuation), noUpstream(), memory{}, at(Rule7NoUpstream, continuation, "glm")},
		{"7: opening, no server", asks(opening), nowhere(), memory{}, refused(opening, Rule7NoUpstream, RefusedNoServer, "")},
		{"7: continuation, no server", asks(continuation), nowhere(), memory{}, refused(continuation, Rule7NoUpstream, RefusedNoServer, "")},
	})
}

func TestRule6SideRequestsFollowAndNeverPin(t *testing.T) {
	at := func(rule Rule, server string) Decision {
		return Decision{Server: server, Rule: rule, Pin: PinNone, Session: "S", Turn: side}
	}
	from := func(d Decision, c Conversation) Decision { d.From = c; return d }
	resp := func(owners ...Owner) map[string][]Owner { return map[string][]Owner{"r1": owners} }
	title := asks(side, kind(agents.KindTitle))
	waitsOpening := Decision{Wait: WaitOpening, Pin: PinNone, Session: "S", Turn: side}
	waitsIndex := Decision{Wait: WaitIndex, Pin: PinNone, Session: "S", Turn: side}
	anonymous := at(Rule6Own, Own)
	anonymous.Session = ""
	codexTitle := asks(side, agent(agents.Codex), kind(agents.KindTitle))
	runRules(t, []ruleCase{
		{"own reply before its session", asks(side, marks(9)), three(),
			memory{pins: pins("S", "glm"), marks: claim(9, owner("", "lab"))}, at(Rule6Reply, "lab")},
		{"own previous response before its session", asks(side, response("r1")), three(),
			memory{pins: pins("S", "glm"), responses: resp(owner("", "lab"))}, at(Rule6Reply, "lab")},
		{"a replay of the conversation is no own reply", asks(side, marks(9)), three(),
			memory{pins: pins("S", "glm", "T", "lab"), marks: claim(9, owner("T", "lab"))}, at(Rule6Session, "glm")},
		{"session's pin", asks(side), three(), memory{pins: pins("S", "lab")}, at(Rule6Session, "lab")},
		{"session's pin before the parent's", asks(side, parent("P")), three(), memory{pins: pins("S", "lab", "P", "glm")}, at(Rule6Session, "lab")},
		{"session's last turn, its pin lost", asks(side), three(), memory{last: pins("S", "lab")}, at(Rule6Session, "lab")},
		{"parent's pin", asks(side, parent("P")), three(), memory{pins: pins("P", "lab")}, from(at(Rule6Parent, "lab"), claude("P"))},
		{"parent's last turn", asks(side, parent("P")), three(), memory{last: pins("P", "lab")}, from(at(Rule6Parent, "lab"), claude("P"))},
		{"history of a conversation", asks(side, marks(9)), three(), memory{marks: claim(9, owner("T", "lab"))}, from(at(Rule6History, "lab"), claude("T"))},
		{"nothing known", asks(side), three(), memory{}, at(Rule6Own, Own)},
		{"nothing known, no session", asks(side, session("")), three(), memory{}, anonymous},
		{"7: no own upstream", asks(side), noUpstream(), memory{}, at(Rule7NoUpstream, "glm")},
		{"7: nowhere", asks(side), nowhere(), memory{}, Decision{Rule: Rule7NoUpstream, Pin: PinNone, Session: "S", Turn: side, Refusal: Refusal{
			Kind: RefusedNoServer, Agent: agents.ClaudeCode, Session: "S", Format: outline.Messages}}},
		{"session on a removed server", asks(side), three(), memory{pins: pins("S", "gone")},
			Decision{Rule: Rule6Session, Pin: PinNone, Session: "S", Turn: side, Refusal: Refusal{
				Kind: RefusedRemoved, Agent: agents.ClaudeCode, Session: "S", Server: "gone", Format: outline.Messages}}},

		{"a title waits for its opening", title, three(), memory{}, waitsOpening},
		{"a title of OpenCode too", asks(side, agent(agents.OpenCode), kind(agents.KindTitle)), three(), memory{}, waitsOpening},
		{"a title that has waited", asks(side, kind(agents.KindTitle), waited), three(), memory{}, at(Rule6Own, Own)},
		{"a title that has waited and found", asks(side, kind(agents.KindTitle), waited), three(), memory{pins: pins("S", "lab")}, at(Rule6Session, "lab")},
		{"a title of a pinned session", title, three(), memory{pins: pins("S", "lab")}, at(Rule6Session, "lab")},
		{"a title of Codex has its own session", codexTitle, three(), memory{}, at(Rule6Own, Own)},
		{"a title without session", asks(side, kind(agents.KindTitle), session("")), three(), memory{}, anonymous},
		{"a compaction does not wait", asks(side, kind(agents.KindCompaction)), three(), memory{}, at(Rule6Own, Own)},

		{"index: own replies cannot be told", asks(side, marks(9)), three(), memory{loading: true, pins: pins("S", "lab")}, waitsIndex},
		{"index: session's pin is enough", asks(side), three(), memory{loading: true, pins: pins("S", "lab")}, at(Rule6Session, "lab")},
		{"index: session not pinned", asks(side), three(), memory{loading: true}, waitsIndex},
		{"index: before the wait for the opening", title, three(), memory{loading: true}, waitsIndex},
		{"index: nothing to look up", asks(side, session("")), three(), memory{loading: true}, anonymous},
	})
}

func TestWhatIsNotInferencePinsNothing(t *testing.T) {
	at := func(rule Rule, server string) Decision {
		return Decision{Server: server, Rule: rule, Pin: PinNone, Session: "S", Turn: none}
	}
	history := at(NotInferenceHistory, "lab")
	history.From = claude("T")
	count := asks(none, kind(agents.KindCount), keys(1, 2))
	claimed := claim(1, owner("T", "lab"))
	waits := Decision{Wait: WaitIndex, Pin: PinNone, Turn: none}
	plain := asks(none, kind(agents.KindModels), session(""), format(outline.NoFormat))
	plainAt := func(rule Rule, server string) Decision {
		d := at(rule, server)
		d.Session = ""
		return d
	}
	runRules(t, []ruleCase{
		{"count: session's pin", count, three(), memory{pins: pins("S", "lab"), keys: claim(1, owner("T", "glm"))}, at(NotInferenceSession, "lab")},
		{"count: session's last turn", count, three(), memory{last: pins("S", "lab")}, at(NotInferenceSession, "lab")},
		{"count: history", count, three(), memory{keys: claimed}, history},
		{"count: own", count, three(), memory{}, at(NotInferenceOwn, Own)},
		{"count: 7", count, noUpstream(), memory{}, at(Rule7NoUpstream, "glm")},
		{"count: waits for the index", asks(none, kind(agents.KindCount), session(""), keys(1, 2)), three(), memory{loading: true, keys: claimed}, waits},
		{"models", plain, three(), memory{}, plainAt(NotInferenceServer, "glm")},
		{"models: no wait for the index", plain, three(), memory{loading: true}, plainAt(NotInferenceServer, "glm")},
		{"models: session's pin", asks(none, kind(agents.KindModels)), three(), memory{pins: pins("S", "lab")}, at(NotInferenceSession, "lab")},
		{"models: not routed", plain, notRouted(), memory{}, plainAt(NotInferenceOwn, Own)},
		{"models: of Codex", asks(none, agent(agents.Codex), kind(agents.KindModels)), three(), memory{}, at(NotInferenceOwn, Own)},
		{"models: of Codex, no own upstream", asks(none, agent(agents.Codex), kind(agents.KindModels)), noUpstream(), memory{}, at(Rule7NoUpstream, "glm")},
		{"models: nowhere", plain, nowhere(), memory{}, Decision{Rule: Rule7NoUpstream, Pin: PinNone, Turn: none,
			Refusal: Refusal{Kind: RefusedNoServer, Agent: agents.ClaudeCode}}},
		{"files", asks(none), three(), memory{}, at(NotInferenceServer, "glm")},
		{"files: session's pin", asks(none), three(), memory{pins: pins("S", Own)}, at(NotInferenceSession, Own)},
	})
}

func TestSessionLessTurnsKeepOneRow(t *testing.T) {
	name := px("0000000000000003")
	kept := func(rule Rule, row, server string) Decision {
		return Decision{Server: server, Pin: PinKept, Rule: rule, Session: row, Turn: continuation}
	}
	fresh := func(rule Rule, turn agents.Turn, session, server string) Decision {
		return Decision{Server: server, Pin: PinNew, Rule: rule, Session: session, Turn: turn}
	}
	restored := kept(Rule2cKey, "named", "lab")
	restored.Pin = PinRestored
	follows := Decision{Server: "lab", Pin: PinFollowed, Rule: Rule2dMark, Session: name, Turn: continuation}
	unnamed := Decision{Server: "glm", Pin: PinNone, Rule: Rule4Opening, Turn: opening}
	x, y := px("1"), px("1-2")
	bare := func(turn agents.Turn, edits ...func(*Question)) Question {
		return asks(turn, append([]func(*Question){session("")}, edits...)...)
	}
	both := claim(2, owner(y, "lab"), owner(x, "lab"))
	runRules(t, []ruleCase{
		{"an opening is named by its key", bare(opening, keys(1, 2, 3)), three(), memory{}, fresh(Rule4Opening, opening, name, "glm")},
		{"an equal opening is another conversation", bare(opening, keys(1, 2, 3)), three(),
			memory{pins: pins(name, "lab"), keys: claim(3, owner(name, "lab"))}, fresh(Rule4Opening, opening, name+"-2", "glm")},
		{"a name in the log is taken too", bare(opening, keys(1, 2, 3)), three(),
			memory{last: pins(name, "lab"), pins: pins(name+"-2", "lab")}, fresh(Rule4Opening, opening, name+"-3", "glm")},
		{"a continuation nobody knows", bare(continuation, keys(1, 2, 3)), three(), memory{}, fresh(Rule5Unseen, continuation, name, Own)},
		{"the next turn is the same row", bare(continuation, keys(1, 2, 3)), three(),
			memory{pins: pins(x, "lab"), keys: claim(2, owner(x, "lab"))}, kept(Rule2cKey, x, "lab")},
		{"by reply mark", bare(continuation, keys(1, 2, 3), marks(9)), three(),
			memory{pins: pins(x, "lab"), marks: claim(9, owner(x, "lab"))}, kept(Rule2dMark, x, "lab")},
		{"by previous response, without any key", bare(opening, response("r1")), three(),
			memory{pins: pins(x, "lab"), responses: map[string][]Owner{"r1": {owner(x, "lab")}}}, kept(Rule2bResponse, x, "lab")},
		{"a named conversation whose id is no longer sent", bare(continuation, keys(1, 2, 3)), three(),
			memory{keys: claim(2, owner("named", "lab"))}, restored},
		{"equal openings on one server: the answer tells", bare(continuation, keys(1, 2, 3), marks(9)), three(),
			memory{pins: pins(x, "lab", y, "lab"), keys: both, marks: claim(9, owner(x, "lab"))}, kept(Rule2cKey, x, "lab")},
		{"equal openings and equal answers: the newest", bare(continuation, keys(1, 2, 3), marks(9)), three(),
			memory{pins: pins(x, "lab", y, "lab"), keys: both, marks: claim(9, owner(y, "lab"), owner(x, "lab"))}, kept(Rule2cKey, y, "lab")},
		{"equal openings, no answer that counts: the newest", bare(continuation, keys(1, 2, 3)), three(),
			memory{pins: pins(x, "lab", y, "lab"), keys: both}, kept(Rule2cKey, y, "lab")},
		{"more equal openings than the index names", bare(continuation, keys(1, 2, 3), marks(9)), three(),
			memory{pins: pins(x, "lab", y, "lab", "z", "lab"), keys: both, marks: claim(9, owner("z", "lab"))}, kept(Rule2cKey, "z", "lab")},
		{"equal openings on two servers: the answer places it", bare(continuation, keys(1, 2, 3), marks(9)), three(),
			memory{pins: pins(x, "lab", y, "glm"), keys: both, marks: claim(9, owner(x, "lab"))}, kept(Rule2dMark, x, "lab")},
		{"a side request's reply names no row", bare(continuation, keys(1, 2, 3), marks(9)), three(),
			memory{marks: claim(9, owner("", "lab"))}, follows},
		{"nothing to name it by: no pin", bare(opening), three(), memory{}, unnamed},
	})
}

func TestAFreeNameIsFoundInFewLookups(t *testing.T) {
	known := memory{pins: map[Conversation]string{}}
	const openings = 5000
	for range openings {
		known.lookups = 0
		d := Place(asks(opening, session(""), keys(7)), three(), &known)
		if _, taken := known.pins[claude(d.Session)]; taken || !isDerived(d.Session) {
			t.Fatalf("got name %q (taken: %t), want a free derived one", d.Session, taken)
		}
		known.pins[claude(d.Session)] = d.Server
		if known.lookups > 64 {
			t.Fatalf("naming took %d look-ups, want at most 64", known.lookups)
		}
	}
}

func TestDerivedNamesAreShownPlain(t *testing.T) {
	for in, want := range map[string]string{px("ab-2"): "px:ab-2", "4e96": "4e96", "px:ab": "px:ab", "": ""} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
	if isDerived("px:ab") {
		t.Error("isDerived says yes to a name that a header could state")
	}
}
