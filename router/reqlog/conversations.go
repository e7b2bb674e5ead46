package reqlog

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Conversation is what the log tells of one conversation. Everything but
// Server, Pin and Why comes from its main turns alone.
type Conversation struct {
	Agent   string
	Session string
	Server  string // where it is, as the newest line has it
	Pin     string // how its pin came about: new, followed, restored, or "" if no line tells
	Why     string // the rule that decided, of the line that Pin is from

	Opened   time.Time // arrival of its first turn
	LastTurn time.Time // end of its last turn so far, or when its pin was made
	Turns    int       // main turns that ended, as far as the log still tells

	// Of the last main turn that ended.
	Status  int
	Error   string
	FirstMS int64
	TotalMS int64

	// Of the last main turn that has one; one that fails has no context.
	Context    int64 // input tokens
	Cached     int64 // of Context
	ModelAsked string
	ModelSent  string
	Key        uint64 // zero: none
	Mark       uint64

	// Sums over these turns.
	Input, CacheRead, Output int64
}

// conversations is the table of all conversations, by agent and session.
type conversations struct {
	mu      sync.RWMutex
	byID    map[convID]uint32
	slots   []*conv  // a table of their own places would be copied whole as it grows
	free    []uint32 // slots without a conversation
	limit   int
	hand    int              // where the search for the least recently used goes on
	forgot  map[convID]int64 // when the user had it forgotten: older lines are void
	servers names
	words   names // models, classes of errors, and how pins came about
	agents  []string

	stale   atomic.Bool   // owners in the tables may be gone
	evicted atomic.Uint64 // conversations that made room for others
}

type convID struct {
	agent   uint16
	session string
}

// conv is a conversation's slot. Times are microseconds since 1970; pin, err,
// asked and sent are numbers of words.
type conv struct {
	id  convID
	gen uint32 // counts the conversations that had this slot; part of an owner

	server                uint16
	pin, err, asked, sent uint16
	live                  bool
	decided               int64 // when server became true
	why                   string
	whyAt                 int64

	opened  int64
	last    int64 // last use
	keptAt  int64 // turns and sums up to here are in a keep line's
	counted int64 // arrival of the first turn that was counted one by one
	file    fileID
	turns   uint32

	turnAt        int64 // arrival of the turn that err and the next three are from
	status        int32
	firstMS       int32
	totalMS       int64
	context       int64
	cached        int64
	contextAt     int64
	askedAt       int64
	key, mark     uint64
	keyAt, markAt int64
	resp          string // its last response id
	respAt        int64
	in, read, out int64 // sums
}

func newConversations(limit int) *conversations {
	return &conversations{
		byID:    map[convID]uint32{},
		forgot:  map[convID]int64{},
		servers: newNames(),
		words:   newNames(),
		agents:  []string{},
		limit:   min(max(limit, 1), maxSlots),
	}
}

// agent returns an agent's number, -1 if it has none and grow is not set.
func (t *conversations) agent(name string, grow bool) int {
	for i, a := range t.agents {
		if a == name {
			return i
		}
	}
	// A handful of agents are known; `other` ones are named by the path.
	if !grow || len(t.agents) == 1024 {
		return -1
	}
	t.agents = append(t.agents, strings.Clone(name))
	return len(t.agents) - 1
}

// sideOwner is the owner that stands for a side request's server.
func (t *conversations) sideOwner(server string) owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.servers.number(server)
	if n == 0 {
		return 0
	}
	return ownerSide | owner(n)
}

// ensure returns the slot of a conversation, making one if need be; -1 if
// there is no room for its names. Called with the lock held.
func (t *conversations) ensure(id convID) int {
	if i, ok := t.byID[id]; ok {
		return int(i)
	}
	var i int
	switch {
	case len(t.free) > 0:
		i = int(t.free[len(t.free)-1])
		t.free = t.free[:len(t.free)-1]
	case len(t.slots) < t.limit:
		t.slots = append(t.slots, new(conv))
		i = len(t.slots) - 1
	default:
		i = t.leastRecent()
		t.clear(i)
		t.free = t.free[:len(t.free)-1]
		t.evicted.Add(1)
	}
	c := t.slots[i]
	gen := c.gen + 1
	if gen&genMask == 0 {
		gen++ // an owner of zero stands for none
	}
	id.session = strings.Clone(id.session)
	*c = conv{id: id, gen: gen, live: true}
	t.byID[id] = uint32(i)
	return i
}

// leastRecent looks at the next few slots in turn and returns the one that was
// used the longest ago: near enough to the least recently used of all, at a
// bounded cost.
func (t *conversations) leastRecent() int {
	best := -1
	for range 64 {
		t.hand = (t.hand + 1) % len(t.slots)
		if best < 0 || t.slots[t.hand].last < t.slots[best].last {
			best = t.hand
		}
	}
	return best
}

// clear takes a slot's conversation out; its values in the tables match nobody
// from here on, and are swept later.
func (t *conversations) clear(i int) {
	c := t.slots[i]
	delete(t.byID, c.id)
	*c = conv{gen: c.gen}
	t.free = append(t.free, uint32(i))
	t.stale.Store(true)
}

func (c *conv) owner(slot int) owner {
	return owner(c.gen&genMask)<<slotBits | owner(slot)
}

// current reports whether an owner still stands for somebody.
func (t *conversations) current(o owner) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.currentLocked(o)
}

func (t *conversations) currentLocked(o owner) bool {
	return o&ownerSide != 0 || t.slot(o) != nil
}

// slot returns the conversation that an owner stands for, nil if it is gone.
func (t *conversations) slot(o owner) *conv {
	i := int(o & (maxSlots - 1))
	if i >= len(t.slots) {
		return nil
	}
	c := t.slots[i]
	if !c.live || c.owner(i) != o {
		return nil
	}
	return c
}

// eachPart is how many slots are visited under one hold of the lock.
const eachPart = 1024

// each calls fn with every conversation, under the lock for reading, which is
// let go again and again.
func (t *conversations) each(fn func(*conv)) {
	for from, n := 0, 1; from < n; from += eachPart {
		t.mu.RLock()
		n = len(t.slots)
		for i := from; i < min(from+eachPart, n); i++ {
			if c := t.slots[i]; c.live {
				fn(c)
			}
		}
		t.mu.RUnlock()
	}
}

// place returns the server (the pool, for a pool's member) at which an owner is.
func (t *conversations) place(o owner) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return placeOf(t.serverOf(o))
}

func (t *conversations) serverOf(o owner) string {
	if o&ownerSide != 0 {
		return t.servers.list[o&^ownerSide]
	}
	if c := t.slot(o); c != nil {
		return t.servers.list[c.server]
	}
	return ""
}

// placeOf cuts a pool's member off: only the pool holds a conversation.
func placeOf(server string) string {
	pool, _, _ := strings.Cut(server, "/")
	return pool
}

func (t *conversations) view(c *conv) Conversation {
	return Conversation{
		Agent: t.agents[c.id.agent], Session: c.id.session,
		Server: t.servers.list[c.server], Pin: t.words.list[c.pin], Why: c.why,
		Opened: fromMicros(c.opened), LastTurn: fromMicros(c.last), Turns: int(c.turns),
		ModelAsked: t.words.list[c.asked], ModelSent: t.words.list[c.sent], Status: int(c.status), Error: t.words.list[c.err],
		Context: c.context, Cached: c.cached, FirstMS: int64(c.firstMS), TotalMS: c.totalMS,
		Key: c.key, Mark: c.mark,
		Input: c.in, CacheRead: c.read, Output: c.out,
	}
}
