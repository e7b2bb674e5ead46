package router

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"agentop/agents"
	"agentop/router/control"
	"agentop/router/placement"
	"agentop/router/stream"
)

// maxRows bounds the roster; the conversation idle longest goes first. It is
// the number of pins that the store keeps.
const maxRows = 65_536

// runningFor is how long after its last main turn a conversation counts as
// running.
const runningFor = 24 * time.Hour

// roster is what people are shown of each conversation: the TUI and the
// commands read it, no rule of placement does. Counts, model and last turn
// come from main turns and the pin, never from side requests.
type roster struct {
	mu      sync.Mutex
	rows    map[placement.Conversation]*row
	at      control.Session       // a row while it is changed; used again
	watched func() bool           // whether changed is worth a call
	changed func(control.Session) // told after each change, without the lock
}

func newRoster(watched func() bool, changed func(control.Session)) *roster {
	return &roster{rows: map[placement.Conversation]*row{}, watched: watched, changed: changed}
}

// update changes c's row, making it if need be, and tells of the change.
func (r *roster) update(c placement.Conversation, change func(*control.Session)) {
	r.mu.Lock()
	of, ok := r.rows[c]
	if !ok {
		if len(r.rows) >= maxRows {
			r.evict()
		}
		of = &row{pin: string(placement.PinNone)}
		r.rows[c] = of
	}
	r.at = of.session(c)
	change(&r.at)
	*of = rowOf(&r.at)
	s := r.at
	r.mu.Unlock()
	if r.watched() {
		r.changed(s)
	}
}

// evict drops the rows idle longest, and some more than the one that must go:
// looking for them goes over all rows. The caller holds the lock.
func (r *roster) evict() {
	idle := make([]placement.Conversation, 0, len(r.rows))
	for c, row := range r.rows {
		if row.streams == 0 {
			idle = append(idle, c)
		}
	}
	slices.SortFunc(idle, func(a, b placement.Conversation) int { return cmp.Compare(r.rows[a].lastTurn, r.rows[b].lastTurn) })
	for _, c := range idle[:min(len(idle), maxRows/64)] {
		delete(r.rows, c)
	}
}

// restore makes a row of what the log told, unless there is one.
func (r *roster) restore(c placement.Conversation, s control.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.rows[c]; !ok && len(r.rows) < maxRows {
		s.Streams = 0
		made := rowOf(&s)
		r.rows[c] = &made
	}
}

// restorePin adds what a stored pin tells to its conversation's row.
func (r *roster) restorePin(p *pinRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, ok := r.rows[p.conversation()]
	if !ok {
		if len(r.rows) >= maxRows {
			return
		}
		of = &row{lastTurn: nanos(p.Renewed)}
		r.rows[p.conversation()] = of
	}
	if of.streams == 0 {
		of.server, of.pin, of.why, of.opened = p.place(), p.Pin, p.Why, nanos(p.Opened)
		of.title, of.dir, of.saved = p.Title, p.Dir, true
	}
}

func (r *roster) forget(c placement.Conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rows, c)
}

// get returns c's row as it is now.
func (r *roster) get(c placement.Conversation, now time.Time) (control.Session, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, ok := r.rows[c]
	if !ok {
		return control.Session{}, false
	}
	return asOf(of.session(c), now), true
}

// list returns all rows, the newest main turn first.
func (r *roster) list(now time.Time) []control.Session {
	r.mu.Lock()
	list := make([]control.Session, 0, len(r.rows))
	for c, of := range r.rows {
		list = append(list, asOf(of.session(c), now))
	}
	r.mu.Unlock()
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if !a.LastTurn.Equal(b.LastTurn) {
			return a.LastTurn.After(b.LastTurn)
		}
		return a.Agent+a.ID < b.Agent+b.ID
	})
	return list
}

// streaming names at most n of the conversations with a request in flight.
func (r *roster) streaming(n int) []control.Streaming {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []control.Streaming
	for c, row := range r.rows {
		if row.streams > 0 && len(list) < n {
			list = append(list, control.Streaming{Agent: string(c.Agent), ID: placement.Plain(c.Session)})
		}
	}
	return list
}

func runs(streams int, last, now time.Time) bool {
	return streams > 0 || (!last.IsZero() && now.Sub(last) < runningFor)
}

// asOf is a row as it reads at a time: whether it runs, and of which day its
// reason tells.
func asOf(s control.Session, now time.Time) control.Session {
	s.Why = placement.Dated(s.Why, s.Opened, now)
	s.Running = runs(s.Streams, s.LastTurn, now)
	return s
}

// running counts an agent's running conversations by the server they are on.
func (r *roster) running(agent agents.Agent, now time.Time) map[string]int {
	counts := map[string]int{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, row := range r.rows {
		if (agent == "" || c.Agent == agent) && row.server != "" && row.runs(now) {
			counts[row.server]++
		}
	}
	return counts
}

// addUsage adds what one main turn cost to its row.
func addUsage(row *control.Session, u stream.Usage) {
	if u.Input > 0 {
		row.Context, row.Cached = u.Input, u.CacheRead
	}
	row.Input += u.Input
	row.Output += u.Output
	row.CacheRead += u.CacheRead
}
