package reqlog

import (
	"hash/maphash"
	"math"
	"strings"
)

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
	used := hourOf(f.at)
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

// hourOf is the coarse time of the tables.
func hourOf(at int64) hour { return hour(at / 3600e6) }

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
		if c := t.slots[i]; max(c.decided, c.turnAt) <= f.at {
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
	server := t.servers.number(f.server)
	if server == 0 {
		return 0, false, true
	}
	i := t.ensure(id)
	c := t.slots[i]
	if f.at >= c.decided {
		moved = c.server != 0 && c.server != server && placeOf(t.servers.list[c.server]) != placeOf(f.server)
		c.server, c.decided = server, f.at
	}
	c.take(f, &t.words)
	return c.owner(i), moved, true
}

// take enters everything but the server.
func (c *conv) take(f *fact, words *names) {
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
		c.pin, c.why, c.whyAt = words.number(f.pin), f.why, f.at
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
		c.takeTurn(f, words)
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
func (c *conv) takeTurn(f *fact, words *names) {
	if f.key != 0 && f.at >= c.keyAt {
		c.key, c.keyAt = f.key, f.at
	}
	if f.asked != "" && f.at >= c.askedAt {
		c.asked, c.sent, c.askedAt = words.number(f.asked), words.number(f.sent), f.at
	}
	if f.mark != 0 && f.at >= c.markAt {
		c.mark, c.markAt = f.mark, f.at
	}
	if n := len(f.resp); n > 0 && f.at >= c.respAt {
		c.resp, c.respAt = f.resp[n-1], f.at
	}
	if f.kind == KindTurn && f.in > 0 && f.at >= c.contextAt { // a keep line holds the sums
		c.context, c.cached, c.contextAt = f.in, f.cached, f.at
	}
	if f.kind == KindPin || f.at < c.turnAt {
		return
	}
	c.turnAt = f.at
	c.err, c.status = words.number(f.err), int32(f.status)
	c.firstMS, c.totalMS = int32(min(f.firstMS, math.MaxInt32)), f.totalMS
}
