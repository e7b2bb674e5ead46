package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentop/tui/view"
)

// How long after its last main turn a conversation counts as running, and as
// one in use, which stands at the top.
const (
	runsFor  = 24 * time.Hour
	inUseFor = 5 * time.Minute
)

// known are all conversations that the proxy told of.
type known struct {
	all map[view.Key]*view.Session
}

// apply takes over what a batch says.
func (k *known) apply(b *batch) {
	if b.snapshot || k.all == nil {
		k.all = make(map[view.Key]*view.Session, len(b.sessions))
	}
	for key, s := range b.sessions {
		k.all[key] = &s
	}
	for key := range b.gone {
		delete(k.all, key)
	}
}

// runs reports whether a conversation is running now: what the proxy said of
// an idle one goes out of date without an event.
func runs(s *view.Session, now time.Time) bool {
	return s.Streams > 0 || s.Running && now.Sub(s.LastTurn) < runsFor
}

// rows lists conversations in the order of the screen: those in use first, the
// one opened last at the top, so that rows do not change places with every
// turn; then the others, the one used last first.
func (k *known) rows(all bool, filter string, now time.Time) []*view.Session {
	words := strings.Fields(strings.ToLower(filter))
	rows := make([]*view.Session, 0, len(k.all))
	for _, s := range k.all {
		if (all || runs(s, now) || len(words) > 0) && matches(s, words) {
			rows = append(rows, s)
		}
	}
	inUse := func(s *view.Session) int {
		if s.Streams > 0 || now.Sub(s.LastTurn) < inUseFor {
			return 0
		}
		return 1
	}
	slices.SortFunc(rows, func(a, b *view.Session) int {
		ua, ub := inUse(a), inUse(b)
		if ua != ub {
			return ua - ub
		}
		if ua == 0 {
			return cmp.Or(b.Opened.Compare(a.Opened), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(b.LastTurn.Compare(a.LastTurn), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

// matches reports whether every word is somewhere in what is known of s.
func matches(s *view.Session, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{s.Agent, head(s.Title), s.Server, s.ModelSent, s.ModelAsked, head(s.Dir), s.ID, stateWord(s)}, "\x00"))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// head is the part of a long text that is searched.
func head(s string) string {
	if len(s) > 512 {
		return s[:512]
	}
	return s
}

func stateWord(s *view.Session) string {
	if s.Streams > 0 {
		return "streaming"
	}
	if failed := view.Failure(s); failed != "" {
		return "failed cut " + strconv.Itoa(s.Status) + " " + head(failed)
	}
	return "idle"
}

// loads counts running conversations and streams by server, a pool's members
// together, and puts them into the status: rows and counts always agree.
func (k *known) loads(st *view.Status, now time.Time) map[string]view.Load {
	loads := map[string]view.Load{}
	byAgent := map[string]int{}
	st.Running, st.Streams = 0, 0
	for _, s := range k.all {
		name, _, _ := strings.Cut(s.Server, "/")
		load := loads[name]
		if runs(s, now) {
			load.Running++
			st.Running++
			byAgent[s.Agent]++
		}
		load.Streams += s.Streams
		st.Streams += s.Streams
		loads[name] = load
	}
	for i := range st.Servers {
		load := loads[st.Servers[i].Name]
		st.Servers[i].Running, st.Servers[i].Streams = load.Running, load.Streams
	}
	for i := range st.Agents {
		st.Agents[i].Running = byAgent[st.Agents[i].Agent]
	}
	return loads
}

// stay counts an agent's running conversations by where they are.
func (k *known) stay(agent string, now time.Time) map[string]int {
	stay := map[string]int{}
	for _, s := range k.all {
		if s.Agent == agent && runs(s, now) {
			name, _, _ := strings.Cut(s.Server, "/")
			stay[name]++
		}
	}
	return stay
}
