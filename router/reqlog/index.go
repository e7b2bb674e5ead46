package reqlog

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Lifetime is how long a conversation, a key, a mark or a response id is known
// after its last use.
const Lifetime = 31 * 24 * time.Hour

// Limits of the index. Zero means the default.
type Limits struct {
	Conversations int // at most and by default 131,072: the least recently used goes
	Keys          int // 1,048,576: new ones are dropped
	Marks         int // 1,048,576
	Responses     int // 1,048,576
}

func (l Limits) orDefault() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Conversations, maxSlots)
	def(&l.Keys, 1<<20)
	def(&l.Marks, 1<<20)
	def(&l.Responses, 1<<20)
	return l
}

// Index is the memory of the log: where each conversation is, and whose each
// prefix key, reply mark and response id is. All tables are bounded. Look-ups
// touch no disk and hold no lock for longer than a few table accesses; all
// methods may run at once.
//
// Lines may come in any order: of two that disagree, the one with the later
// Time holds. So old lines that are read back while requests are served never
// undo what happened since. (What was forgotten comes first, though: a turn
// that ended after it belongs to nobody, and could not be told from the turns
// of the same session's new life.)
type Index struct {
	convs     *conversations
	keys      table
	marks     table
	responses table
	now       func() time.Time
	seed      maphash.Seed
	lines     atomic.Uint64
	sweeper   sweeper
}

// NewIndex returns an empty index that tells the time by now.
func NewIndex(limits Limits, now func() time.Time) *Index {
	limits = limits.orDefault()
	if now == nil {
		now = time.Now
	}
	x := &Index{convs: newConversations(limits.Conversations), now: now, seed: maphash.MakeSeed()}
	x.keys.limit, x.marks.limit, x.responses.limit = int64(limits.Keys), int64(limits.Marks), int64(limits.Responses)
	x.keys.convs, x.marks.convs, x.responses.convs = x.convs, x.convs, x.convs
	return x
}

// Owner is somebody whom a key, mark or response id belongs to: a conversation
// and the server at which the log saw it last, or, when Session is empty, the
// server that answered a side request.
type Owner struct {
	Agent   string
	Session string
	Server  string
}

// Side reports whether the owner is a side request's server alone.
func (o Owner) Side() bool { return o.Session == "" }

// Last returns what is known of a conversation.
func (x *Index) Last(agent, session string) (Conversation, bool) {
	x.convs.mu.RLock()
	defer x.convs.mu.RUnlock()
	c := x.convs.lookup(agent, session)
	if c == nil || c.server == 0 {
		return Conversation{}, false
	}
	return x.convs.view(c), true
}

func (t *conversations) lookup(agent, session string) *conv {
	a := t.agent(agent, false)
	if a < 0 {
		return nil
	}
	i, ok := t.byID[convID{uint16(a), session}]
	if !ok {
		return nil
	}
	return t.slots[i]
}

// Conversations returns all conversations that were last used at or after
// since, in no order. Look-ups wait for a small part of it at most.
func (x *Index) Conversations(since time.Time) []Conversation {
	from := micros(since)
	var out []Conversation
	x.convs.each(func(c *conv) {
		if c.server != 0 && c.last >= from {
			out = append(out, x.convs.view(c))
		}
	})
	return out
}

// ByKey returns the conversations that registered the key: none, one, or up to
// four that between them are at every place where it was claimed. When they
// are at different servers, the key is ambiguous and must match nobody.
func (x *Index) ByKey(key uint64) []Owner { return x.owners(&x.keys, key) }

// ByMark is ByKey for a reply mark.
func (x *Index) ByMark(mark uint64) []Owner { return x.owners(&x.marks, mark) }

// ByResponse is ByKey for a response id.
func (x *Index) ByResponse(id string) []Owner {
	if id == "" {
		return nil
	}
	return x.owners(&x.responses, maphash.String(x.seed, id))
}

func (x *Index) owners(t *table, value uint64) []Owner {
	if value == 0 {
		return nil
	}
	of, n := t.owners(value, hourOf(micros(x.now())))
	if n == 0 {
		return nil
	}
	x.convs.mu.RLock()
	defer x.convs.mu.RUnlock()
	var out []Owner
	for _, o := range of[:n] {
		if o&ownerSide != 0 {
			out = append(out, Owner{Server: x.convs.serverOf(o)})
		} else if c := x.convs.slot(o); c != nil && c.server != 0 {
			out = append(out, Owner{x.convs.agents[c.id.agent], c.id.session, x.convs.servers.list[c.server]})
		}
	}
	return out
}

// Placed is a turn that was placed or answered. Without a session it is a side
// request, which claims its answer for the server alone.
type Placed struct {
	Agent    string
	Session  string
	Server   string
	Key      uint64    // full input's prefix key, zero for none
	Mark     uint64    // reply mark, zero for none
	Response string    // id of the answer, "" for none
	At       time.Time // when the turn arrived
}

// Register notes where a turn was placed, with its key, or how it was answered,
// while it is on its way: nothing waits for its line. It counts no turn.
func (x *Index) Register(p Placed) {
	f := fact{
		at: micros(p.At), kind: KindPin, main: p.Session != "", side: p.Session == "",
		agent: p.Agent, session: p.Session, server: p.Server, key: p.Key, mark: p.Mark,
	}
	if p.Response != "" {
		f.resp = []string{p.Response}
	}
	x.apply(&f)
}

// Apply takes a line into the index without a log, as tests of its callers
// need. Log.Append and Log.Load do it for their lines.
func (x *Index) Apply(l *Line) { x.applyLine(l, 0) }

func (x *Index) applyLine(l *Line, file fileID) bool {
	f := factOf(l)
	f.file = file
	return x.apply(&f)
}
