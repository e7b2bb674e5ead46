// Package placement holds the rules that say which server a turn goes to. It
// is pure: a question with everything the rules may know goes in, a decision
// with its reason comes out; no sockets, clocks, files or goroutines. Start
// reading at Place.
package placement

import (
	"agentop/agents"
	"agentop/agents/outline"
)

// Own stands where a server's name would: the agent's own upstream, where it
// would go without agentop. No server can be configured under this name.
const Own = "own"

// Conversation is identified by agent and session id together.
type Conversation struct {
	Agent   agents.Agent
	Session string
}

// Question is one request as the rules see it.
type Question struct {
	Agent    agents.Agent
	Session  string      // "" when the agent states none
	Parent   string      // "" when none is stated
	Turn     agents.Turn // for a session that is not known (Recognition.Unknown)
	Kind     agents.Kind
	Format   outline.Format
	Response string   // previous_response_id, "" when absent
	Keys     []uint64 // prefix keys of the input, shallowest first; the last is the full input's
	Marks    []uint64 // reply marks of the assistant's messages that count, newest first
	Began    int      // that many of Keys are of what came before the first answer

	// Unread says of a request that is not inference as far as agentop can
	// tell that its body may still be a turn, in a format that no parser
	// reads. Such a request is never sent to the agent's chosen server.
	Unread bool
	// Waited says that the wait for the opening (WaitOpening) is over; the
	// question is asked for the second time and will not wait for it again.
	Waited bool
}

// Choices is what the configuration says for the agent that asks. Place only
// reads it, so one value may serve many questions at once.
type Choices struct {
	Server   string // where the agent's new conversations go; "" = not routed
	Upstream bool   // the agent has an own upstream for this request
	Servers  map[string]ServerInfo
}

// ServerInfo is what the rules need to know of a configured server or pool.
type ServerInfo struct {
	Formats []outline.Format // what it speaks; empty = unknown, all are tried
}

// Place says where a request goes and why. It never fails: what cannot be
// placed is refused or waits, and the decision says so. Equal arguments give
// equal decisions.
//
// Main turns (opening, continuation):
//
//  1. The conversation is pinned: there.
//  2. It is known under another name, or from before a loss; the first of:
//     a. the request log has its last main turn,
//     b. previous_response_id names an answer that was passed on,
//     c. a strict prefix of its input was sent before (one that holds an
//     answer, or any where no answer has a mark),
//     d. an answer in its history was passed on,
//     e. its parent is known.
//     Each of b to e names a conversation: there, where that one is now.
//  3. The agent is not routed: own upstream.
//  4. An opening: the agent's server.
//  5. A continuation that nothing above knows: own upstream.
//
// Side requests, which never pin:
//
//  6. Where their own earlier replies were made (2b, 2d); else with their
//     session; else with their parent; else with the conversation that their
//     history names; else own upstream.
//
// For all of them:
//
//  7. Where a rule says own upstream and the agent has none: the agent's
//     server. Where it has no server either: refused.
//
// What is not inference goes with its session, else count_tokens by rule 2 or
// to the own upstream, Codex's model list and unread formats to the own
// upstream, the rest to the agent's server. It pins nothing.
//
// A place is where a conversation is: its pin, or, where the pin was lost, its
// last main turn in the log. A place that is gone, or does not speak the
// request's format, is refused and never replaced by another.
func Place(q Question, c Choices, k Known) Decision {
	p := placing{q: q, c: c, k: k}
	switch q.Turn {
	case agents.Opening, agents.Continuation:
		return p.mainTurn()
	case agents.Side:
		return p.sideRequest()
	}
	return p.notInference()
}

// placing is one question on its way through the rules.
type placing struct {
	q Question
	c Choices
	k Known
}

// mainTurn holds rules 1 and 2a; the others come when those know nothing.
func (p placing) mainTurn() Decision {
	if p.q.Session != "" {
		s := Conversation{p.q.Agent, p.q.Session}
		if pin, ok := p.k.Pin(s); ok { // 1
			return p.at(pin.Server, p.known(Rule1Pin, PinKept, s.Session))
		}
		if server, ok := p.k.Last(s); ok { // 2a
			return p.at(server, p.known(Rule2aLog, PinRestored, s.Session))
		}
	}
	// Half an index hides the second claimant of an ambiguous key, so b to e
	// wait for all of it, and no rule below may pin what they would place.
	if !p.k.Ready() {
		return p.wait(WaitIndex)
	}
	if f, ok := p.history(); ok { // 2b to 2e
		return p.follow(f)
	}
	return p.unknown()
}

// known is the decision for a main turn whose conversation was found.
func (p placing) known(rule Rule, pin PinOutcome, session string) Decision {
	return Decision{Rule: rule, Pin: pin, Session: session, Turn: agents.Continuation}
}

// follow pins the turn's session where the found conversation is. Without a
// stated session the turn is that conversation's own next one and keeps its
// name, so that a conversation stays one row however many turns it has.
func (p placing) follow(f found) Decision {
	if p.q.Session == "" {
		if row, ok := p.row(f); ok {
			outcome := PinKept
			if _, pinned := p.k.Pin(row); !pinned {
				outcome = PinRestored
			}
			return p.at(f.place, p.known(f.rule, outcome, row.Session))
		}
	}
	d := p.known(f.rule, PinFollowed, p.session())
	d.From = f.owners[0].Conversation
	if d.From.Session == "" { // a side request's reply: no conversation to name
		d.From = Conversation{}
	}
	if d.From == (Conversation{p.q.Agent, d.Session}) {
		d.From, d.Pin = Conversation{}, PinRestored
	}
	return p.at(f.place, d)
}

// unknown holds rules 3 to 5, for a conversation that was never seen.
func (p placing) unknown() Decision {
	d := Decision{Pin: PinNew, Session: p.session(), Turn: p.q.Turn}
	switch {
	case p.c.Server == "": // 3
		d.Rule = Rule3NotRouted
		return p.own(d)
	case p.q.Turn == agents.Opening: // 4
		d.Rule = Rule4Opening
		return p.at(p.c.Server, d)
	}
	d.Rule = Rule5Unseen // 5
	return p.own(d)
}

// sideRequest holds rule 6. A side request belongs to its stated session, if
// any, and leaves every pin as it is.
func (p placing) sideRequest() Decision {
	side := func(rule Rule) Decision {
		return Decision{Rule: rule, Pin: PinNone, Session: p.q.Session, Turn: agents.Side}
	}
	if !p.k.Ready() && (p.q.Response != "" || len(p.q.Marks) > 0) {
		return p.wait(WaitIndex)
	}
	replies, replied := p.replies()
	if replied && replies.bySide() { // 6, own replies
		return p.at(replies.place, side(Rule6Reply))
	}
	if server, ok := p.home(p.q.Session); ok { // 6, session
		return p.at(server, side(Rule6Session))
	}
	if !p.k.Ready() && (p.q.Session != "" || p.q.Parent != "") {
		return p.wait(WaitIndex)
	}
	if p.beforeOpening() {
		return p.wait(WaitOpening)
	}
	if server, ok := p.home(p.q.Parent); ok { // 6, parent
		d := side(Rule6Parent)
		d.From = Conversation{p.q.Agent, p.q.Parent}
		return p.at(server, d)
	}
	if replied { // 6, a conversation's replies
		d := side(Rule6History)
		d.From = replies.owners[0].Conversation
		return p.at(replies.place, d)
	}
	return p.own(side(Rule6Own))
}

// beforeOpening says whether the request is a title or topic check that comes
// a few milliseconds before the opening of its session, and has not waited.
func (p placing) beforeOpening() bool {
	early := p.q.Agent == agents.ClaudeCode || p.q.Agent == agents.OpenCode
	return early && p.q.Kind == agents.KindTitle && p.q.Session != "" && !p.q.Waited
}

// notInference places model lists, token counts, files and what nobody reads.
func (p placing) notInference() Decision {
	d := Decision{Pin: PinNone, Session: p.q.Session, Turn: agents.NotInference}
	if server, ok := p.home(p.q.Session); ok {
		d.Rule = NotInferenceSession
		return p.at(server, d)
	}
	counts := p.q.Kind == agents.KindCount
	if !p.k.Ready() && (p.q.Session != "" || counts && p.hasHistory()) {
		return p.wait(WaitIndex)
	}
	if counts {
		if f, ok := p.history(); ok {
			d.Rule, d.From = NotInferenceHistory, f.owners[0].Conversation
			return p.at(f.place, d)
		}
	}
	d.Rule = NotInferenceOwn
	codexModels := p.q.Kind == agents.KindModels && p.q.Agent == agents.Codex
	if counts || codexModels || p.q.Unread || p.c.Server == "" {
		return p.own(d)
	}
	d.Rule = NotInferenceServer
	return p.at(p.c.Server, d)
}

func (p placing) wait(w Wait) Decision {
	return Decision{Wait: w, Pin: PinNone, Session: p.q.Session, Turn: p.q.Turn}
}

// own sends the request to the agent's own upstream, or by rule 7.
func (p placing) own(d Decision) Decision {
	if p.c.Upstream {
		return p.at(Own, d)
	}
	d.Rule = Rule7NoUpstream // 7
	if p.c.Server == "" {
		return p.refuse(RefusedNoServer, "", d)
	}
	return p.at(p.c.Server, d)
}

// at completes d with the place, or refuses when nobody is there who could
// serve it. It never looks for another place.
func (p placing) at(server string, d Decision) Decision {
	if server == Own {
		if !p.c.Upstream {
			return p.refuse(RefusedUpstreamOff, server, d)
		}
	} else {
		info, ok := p.c.Servers[server]
		if !ok {
			return p.refuse(RefusedRemoved, server, d)
		}
		if !info.speaks(p.q.Format) {
			return p.refuse(RefusedFormat, server, d)
		}
	}
	d.Server = server
	if d.Session == "" { // no name to pin under
		d.Pin = PinNone
	}
	return d
}

func (p placing) refuse(kind RefusalKind, server string, d Decision) Decision {
	d.Refusal = Refusal{
		Kind: kind, Agent: p.q.Agent, Session: d.Session, Server: server, Format: p.q.Format,
		Running: d.Turn == agents.Continuation && d.Rule != Rule5Unseen && d.Rule != Rule7NoUpstream,
	}
	d.Server, d.Pin = "", PinNone
	return d
}

func (s ServerInfo) speaks(f outline.Format) bool {
	if len(s.Formats) == 0 || f == outline.NoFormat {
		return true
	}
	for _, have := range s.Formats {
		if have == f {
			return true
		}
	}
	return false
}
