package reqlog

import (
	"hash/maphash"
	"math"
	"strings"
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
	return &t.slots[i]
}

// Conversations returns all conversations that were last used at or after
// since, in no order. It copies them under a lock that no look-up waits for.
func (x *Index) Conversations(since time.Time) []Conversation {
	x.convs.mu.RLock()
	defer x.convs.mu.RUnlock()
	from := micros(since)
	var out []Conversation
	for i := range x.convs.slots {
		c := &x.convs.slots[i]
		if c.live && c.server != 0 && c.last >= from {
			out = append(out, x.convs.view(c))
		}
	}
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
	of, n := t.owners(value, seconds(micros(x.now())))
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
			out = append(out, Owner{x.convs.agents[c.id.agent], c.id.session, x.convs.servers[c.server]})
		}
	}
	return out
}

// Placed is a main turn that was placed.
type Placed struct {
	Agent   string
	Session string
	Server  string
	Key     uint64 // full input's prefix key, zero for none
	At      time.Time
}

// Register notes where a main turn was placed, together with its key, at
// request time: nothing waits for its line. It counts no turn.
func (x *Index) Register(p Placed) {
	x.apply(&fact{
		at: micros(p.At), kind: KindPin, main: true,
		agent: p.Agent, session: p.Session, server: p.Server, key: p.Key,
	})
}

// Apply takes a line into the index without a log, as tests of its callers
// need. Log.Append and Log.Load do it for their lines.
func (x *Index) Apply(l *Line) { x.applyLine(l, 0) }

func (x *Index) applyLine(l *Line, file fileID) bool {
	f := factOf(l)
	f.file = file
	return x.apply(&f)
}

// fact is what the index needs of a line.
type fact struct {
	at            int64 // microseconds since 1970
	kind          Kind
	main, side    bool
	agent         string
	session       string
	server        string
	pin, why, err string
	asked, sent   string
	status        int64
	in, cached    int64
	out           int64
	firstMS       int64
	totalMS       int64
	key, mark     uint64
	resp          []string
	turns         int64
	opened        int64
	file          fileID
}

func factOf(l *Line) fact {
	return fact{
		at: micros(l.Time), kind: l.Kind, main: l.Main(), side: l.Kind == KindTurn && l.Turn == TurnSide,
		agent: l.Agent, session: l.Session, server: l.Server, pin: l.Pin, why: l.Why, err: l.Error,
		asked: l.ModelAsked, sent: l.ModelSent, status: int64(l.Status),
		in: l.Input, cached: l.CacheRead, out: l.Output, firstMS: l.FirstMS, totalMS: l.TotalMS,
		key: ParseHex(l.Key), mark: ParseHex(l.Mark), resp: l.Responses,
		turns: int64(l.Turns), opened: micros(l.Opened),
	}
}

// apply takes a fact in, and reports whether it counts: false for one that is
// older than the user's wish to forget its conversation.
func (x *Index) apply(f *fact) bool {
	x.lines.Add(1)
	if f.kind == KindForget {
		x.convs.forget(f)
		return true
	}
	if f.server == "" || f.server == Refused {
		return true
	}
	switch {
	case f.main && f.session != "":
		who, moved, ok := x.convs.take(f)
		if !ok {
			return false
		}
		if moved {
			x.keys.moved()
			x.marks.moved()
			x.responses.moved()
		}
		if who != 0 {
			x.own(f, who)
		}
	case f.side && (f.mark != 0 || len(f.resp) > 0):
		if who := x.convs.sideOwner(f.server); who != 0 {
			f.key = 0 // a side request claims no key
			x.own(f, who)
		}
	}
	return true
}

// own enters the fact's values as who's.
func (x *Index) own(f *fact, who owner) {
	used := seconds(f.at)
	if f.key != 0 {
		x.keys.add(f.key, who, used)
	}
	if f.mark != 0 {
		x.marks.add(f.mark, who, used)
	}
	for _, id := range f.resp {
		if id != "" {
			x.responses.add(maphash.String(x.seed, id), who, used)
		}
	}
}

// seconds is the coarse time of the tables.
func seconds(at int64) uint32 {
	return uint32(min(max(at/1e6, 0), math.MaxUint32))
}

// forget takes the conversation out, unless it has begun anew since, and keeps
// its older lines from bringing it back.
func (t *conversations) forget(f *fact) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.agent(f.agent, true)
	if a < 0 {
		return
	}
	id := convID{uint16(a), strings.Clone(f.session)}
	if len(t.forgot) < t.limit {
		t.forgot[id] = max(t.forgot[id], f.at)
	}
	if i, ok := t.byID[id]; ok {
		if c := &t.slots[i]; max(c.decided, c.turnAt) <= f.at {
			t.clear(int(i))
		}
	}
}

// take enters a main fact into its conversation. moved says that the
// conversation changed its place; ok is false if the fact is void.
func (t *conversations) take(f *fact) (who owner, moved, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.agent(f.agent, true)
	if a < 0 {
		return 0, false, true
	}
	id := convID{uint16(a), f.session}
	if at, was := t.forgot[id]; was && f.at <= at {
		return 0, false, false
	}
	server := t.number(f.server)
	if server == 0 {
		return 0, false, true
	}
	i := t.ensure(id)
	c := &t.slots[i]
	if f.at >= c.decided {
		moved = c.server != 0 && c.server != server && placeOf(t.servers[c.server]) != placeOf(f.server)
		c.server, c.decided = server, f.at
	}
	c.take(f)
	return c.owner(i), moved, true
}

// take enters everything but the server.
func (c *conv) take(f *fact) {
	c.last = max(c.last, f.at+f.totalMS*1000)
	c.file = max(c.file, f.file)
	if f.kind != KindMove {
		first := f.at
		if f.opened != 0 {
			first = f.opened
		}
		if c.opened == 0 || first < c.opened {
			c.opened = first
		}
	}
	if f.pin != "" && f.pin != PinKept && f.pin != PinNone && f.at >= c.whyAt {
		c.pin, c.why, c.whyAt = f.pin, f.why, f.at
	}
	switch f.kind {
	case KindTurn:
		if f.at > c.keptAt {
			c.count(f)
			c.turns++
			if c.counted == 0 || f.at < c.counted {
				c.counted = f.at
			}
		}
	case KindKeep:
		c.keep(f)
	}
	if f.kind != KindMove {
		c.takeTurn(f)
	}
}

func (c *conv) count(f *fact) {
	c.in += f.in
	c.read += f.cached
	c.out += f.out
}

// keep adds the counts of a line that rotation carried over, unless turns that
// are in it were counted already. They may still be read later, from a file
// that a crash kept from being removed: then keptAt tells.
func (c *conv) keep(f *fact) {
	if f.at <= c.keptAt || c.counted != 0 && c.counted <= f.at {
		return
	}
	c.keptAt = f.at
	c.turns += uint32(f.turns)
	c.count(f)
}

// takeTurn makes the fact the conversation's last main turn, where it is.
func (c *conv) takeTurn(f *fact) {
	if f.key != 0 && f.at >= c.keyAt {
		c.key, c.keyAt = f.key, f.at
	}
	if f.asked != "" && f.at >= c.askedAt {
		c.asked, c.sent, c.askedAt = f.asked, f.sent, f.at
	}
	if f.mark != 0 && f.at >= c.markAt {
		c.mark, c.markAt = f.mark, f.at
	}
	if n := len(f.resp); n > 0 && f.at >= c.respAt {
		c.resp, c.respAt = f.resp[n-1], f.at
	}
	if f.kind == KindPin || f.at < c.turnAt {
		return
	}
	c.turnAt = f.at
	c.err, c.status = f.err, int32(f.status)
	if f.kind == KindTurn { // a keep line holds the sums
		c.context, c.cached = f.in, f.cached
	}
	c.firstMS, c.totalMS = int32(min(f.firstMS, math.MaxInt32)), f.totalMS
}
