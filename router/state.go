package router

import (
	"slices"
	"sync"
	"time"

	"agentop/agents"
	"agentop/agents/outline"
	"agentop/router/control"
)

// load counts requests in flight by server, or pool/member.
type load struct {
	mu        sync.Mutex
	n         map[string]int
	elsewhere map[string]int // in other processes that serve the same home
}

func newLoad() *load { return &load{n: map[string]int{}} }

// add counts one more request at place until the returned function is called.
func (l *load) add(place string) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n[place]++
	var once sync.Once
	return func() {
		once.Do(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.n[place]--; l.n[place] == 0 {
				delete(l.n, place)
			}
		})
	}
}

// at is what is in flight at place, in other processes too.
func (l *load) at(place string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n[place] + l.elsewhere[place]
}

func (l *load) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for _, n := range l.n {
		sum += n
	}
	return sum
}

// The states of a server as the control API tells them.
const (
	healthOK      = "ok"
	healthDown    = "down"    // it could not be reached
	healthFailing = "failing" // it answered with an error, or broke an answer off
	healthUnknown = "unknown"
)

// downFor is how long a pool's member that could not be reached is passed over.
const downFor = 10 * time.Second

// firstKept is how many times to the first byte the median is taken of.
const firstKept = 32

// health is what the last requests said of each server, or pool/member.
type health struct {
	mu    sync.Mutex
	state map[string]*condition
}

type condition struct {
	control.Health
	first []time.Duration // a ring of the last times to first byte
	next  int
}

func newHealth() *health { return &health{state: map[string]*condition{}} }

func (h *health) note(place, state, reason string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.of(place)
	c.Health = control.Health{State: state, At: at, Error: reason}
}

func (h *health) firstByte(place string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.of(place)
	if len(c.first) < firstKept {
		c.first = append(c.first, d)
		return
	}
	c.first[c.next] = d
	c.next = (c.next + 1) % firstKept
}

// of is the condition of place; the caller holds the lock.
func (h *health) of(place string) *condition {
	c, ok := h.state[place]
	if !ok {
		c = &condition{Health: control.Health{State: healthUnknown}}
		h.state[place] = c
	}
	return c
}

// get returns the last condition and the median time to the first byte in ms.
func (h *health) get(place string) (control.Health, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.of(place)
	if len(c.first) == 0 {
		return c.Health, 0
	}
	sorted := slices.Clone(c.first)
	slices.Sort(sorted)
	return c.Health, sorted[len(sorted)/2].Milliseconds()
}

// down reports whether place could not be reached a moment ago.
func (h *health) down(place string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.state[place]
	return ok && c.State != healthOK && c.State != healthUnknown && now.Sub(c.At) < downFor
}

// seen remembers when each agent's last request came and which version it was.
type seen struct {
	mu     sync.Mutex
	agents map[agents.Agent]sighting
}

type sighting struct {
	at      time.Time
	version string
}

// maxSeen bounds the table: agents' names come from clients' paths.
const maxSeen = 256

func newSeen() *seen { return &seen{agents: map[agents.Agent]sighting{}} }

func (s *seen) note(a agents.Agent, version string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.agents[a]; !ok && len(s.agents) >= maxSeen {
		return
	}
	s.agents[a] = sighting{at, version}
}

// restore adds what the request log tells of the time before this start. The
// log has no versions.
func (s *seen) restore(a agents.Agent, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.agents[a]; known.at.Before(at) && (ok || len(s.agents) < maxSeen) {
		s.agents[a] = sighting{at: at}
	}
}

func (s *seen) get(a agents.Agent) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agents[a]
}

// scratch is the memory that reading a body needs; it is used again.
type scratch struct {
	outline outline.Outline
	keys    []uint64
	marks   []uint64
}

var scratches = sync.Pool{New: func() any {
	s := new(scratch)
	s.outline.Scan(outline.NoFormat, nil, nil)
	return s
}}

func takeScratch() *scratch { return scratches.Get().(*scratch) }

// release gives s back and lets go of the body that it points into.
func (s *scratch) release() {
	s.outline.Scan(outline.NoFormat, nil, nil)
	s.keys, s.marks = s.keys[:0], s.marks[:0]
	scratches.Put(s)
}
