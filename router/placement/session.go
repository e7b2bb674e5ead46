package placement

import (
	"fmt"
	"strings"
)

// derivedPrefix begins the names that agentop gives to conversations whose
// agent states no session. No header can carry its control character, so no
// agent can state such a name.
const derivedPrefix = "\x01px:"

// isDerived says whether agentop named the session after its content.
func isDerived(session string) bool { return strings.HasPrefix(session, derivedPrefix) }

// Plain is the session as it may be shown or sent: without the control
// character of a derived name.
func Plain(session string) string {
	if isDerived(session) {
		return session[1:]
	}
	return session
}

// session is the name to pin a conversation under that was not known: as
// stated, else derived. It is "" when nothing was stated and nothing read.
func (p placing) session() string {
	if p.q.Session != "" || len(p.q.Keys) == 0 {
		return p.q.Session
	}
	base := fmt.Sprintf("%s%016x", derivedPrefix, p.q.Keys[len(p.q.Keys)-1])
	if !p.taken(base) {
		return base
	}
	numbered := func(n int) string { return fmt.Sprintf("%s-%d", base, n) }
	// A script may open the same conversation thousands of times: doubling,
	// then halving finds a free number in few look-ups. Gaps do no harm.
	used, free := 1, 2
	for p.taken(numbered(free)) {
		used, free = free, free*2
	}
	for free-used > 1 {
		if middle := used + (free-used)/2; p.taken(numbered(middle)) {
			used = middle
		} else {
			free = middle
		}
	}
	return numbered(free)
}

func (p placing) taken(session string) bool {
	_, ok := p.home(session)
	return ok
}

// row is the conversation whose next turn this is, for a request that states
// no session: the found one, of this agent, whether it has a stated name or a
// derived one. Equal openings share a key, so where several conversations
// claim it, the newest answer in the history tells which one got it.
func (p placing) row(f found) (Conversation, bool) {
	var rows []Conversation
	for _, o := range f.owners {
		if o.Conversation.Session != "" {
			rows = append(rows, o.Conversation)
		}
	}
	if len(rows) == 0 {
		return Conversation{}, false
	}
	if f.rule != Rule2cKey || len(rows) == 1 {
		return rows[0], true
	}
	m, ok := p.byMark()
	if !ok || m.place != f.place {
		return rows[0], true
	}
	answered := Conversation{}
	for _, o := range m.owners {
		for _, r := range rows {
			if r == o.Conversation {
				return r, true
			}
		}
		if answered.Session == "" {
			answered = o.Conversation
		}
	}
	if answered.Session == "" {
		return rows[0], true
	}
	return answered, true
}
