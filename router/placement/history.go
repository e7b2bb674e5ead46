package placement

import "agentop/agents"

// MaxLookups bounds the keys, and separately the marks, that are looked up
// for one question.
const MaxLookups = 16

// found is where history says a request belongs.
type found struct {
	rule   Rule
	place  string
	owners []Owner // of the asking agent, all at place, newest first; never empty
}

// home is where the agent's own session is: its pin, or its last main turn
// when the pin was lost.
func (p placing) home(session string) (string, bool) {
	if session == "" {
		return "", false
	}
	s := Conversation{p.q.Agent, session}
	if pin, ok := p.k.Pin(s); ok {
		return pin.Server, true
	}
	return p.k.Last(s)
}

// now is the owner's place at this moment. A side request's reply stays where
// it was made.
func (p placing) now(o Owner) string {
	if o.Conversation.Session == "" {
		return o.Server
	}
	if pin, ok := p.k.Pin(o.Conversation); ok {
		return pin.Server
	}
	if server, ok := p.k.Last(o.Conversation); ok {
		return server
	}
	return o.Server
}

// claimed resolves claims. Claims from two places match nobody, and so do
// those of another agent's conversations: that agent's own upstream is another
// place under the same word.
func (p placing) claimed(rule Rule, owners []Owner) (found, bool) {
	type place struct {
		agent  agents.Agent // of an own upstream; "" for a server
		server string
	}
	var (
		at   place
		f    = found{rule: rule}
		seen bool
	)
	for _, o := range owners {
		here := place{server: p.now(o)}
		if here.server == "" {
			continue
		}
		if here.server == Own {
			here.agent = o.Conversation.Agent
		}
		if seen && here != at {
			return found{}, false
		}
		at, seen = here, true
		if a := o.Conversation.Agent; a == p.q.Agent || a == "" {
			f.place = here.server
			f.owners = append(f.owners, o)
		}
	}
	return f, len(f.owners) > 0
}

// history holds rules 2b to 2e: the first that holds.
func (p placing) history() (found, bool) {
	if f, ok := p.byResponse(); ok {
		return f, true
	}
	if f, ok := p.byKey(); ok {
		return f, true
	}
	if f, ok := p.byMark(); ok {
		return f, true
	}
	return p.byParent()
}

// hasHistory says whether history has anything to look up.
func (p placing) hasHistory() bool {
	return p.q.Response != "" || len(p.q.Keys) > 1 || len(p.q.Marks) > 0 || p.q.Parent != ""
}

// replies is what a side request may use of history.
func (p placing) replies() (found, bool) {
	if f, ok := p.byResponse(); ok {
		return f, true
	}
	return p.byMark()
}

// bySide says whether a side request got the reply, which makes it the asking
// side request's own. What it replays of a conversation is not its own: that
// conversation may have moved or have been left behind, and the place of the
// session comes first.
func (f found) bySide() bool {
	for _, o := range f.owners {
		if o.Conversation.Session == "" {
			return true
		}
	}
	return false
}

func (p placing) byResponse() (found, bool) { // 2b
	if p.q.Response == "" {
		return found{}, false
	}
	return p.claimed(Rule2bResponse, p.k.Response(p.q.Response))
}

// byKey probes strict prefixes only: an equal full input may be another
// conversation's equal opening. The deepest key that anybody claims decides;
// if it is ambiguous, all its claimants share the shallower ones, and those
// can tell them apart no better.
//
// A prefix without an answer in it tells no more than that two conversations
// began with the same words. What was answered tells them apart, so such a key
// counts only where no answer in the history is long enough to have a mark:
// a conversation that began elsewhere must not join one that began alike here.
func (p placing) byKey() (found, bool) { // 2c
	for i, n := len(p.q.Keys)-2, 0; i >= 0 && n < MaxLookups; i, n = i-1, n+1 {
		if i < p.q.Began && len(p.q.Marks) > 0 {
			break
		}
		if owners := p.k.Key(p.q.Keys[i]); len(owners) > 0 {
			return p.claimed(Rule2cKey, owners)
		}
	}
	return found{}, false
}

// byMark goes on after an ambiguous mark: a stock phrase says nothing about
// the answers before it.
func (p placing) byMark() (found, bool) { // 2d
	for i, mark := range p.q.Marks {
		if i == MaxLookups {
			break
		}
		if f, ok := p.claimed(Rule2dMark, p.k.Mark(mark)); ok {
			return f, true
		}
	}
	return found{}, false
}

func (p placing) byParent() (found, bool) { // 2e
	server, ok := p.home(p.q.Parent)
	if !ok {
		return found{}, false
	}
	parent := Conversation{p.q.Agent, p.q.Parent}
	return found{Rule2eParent, server, []Owner{{parent, server}}}, true
}
