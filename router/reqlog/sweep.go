package reqlog

import (
	"fmt"
	"sync"
	"time"
)

// Stats are counts of the index.
type Stats struct {
	Lines         uint64 // taken in since the start
	Conversations int
	Keys          int
	Marks         int
	Responses     int

	// Since the start.
	DroppedKeys          uint64 // not entered, as the table was full
	DroppedMarks         uint64
	DroppedResponses     uint64
	EvictedConversations uint64 // made room for newer ones
}

// Stats counts now. It waits for no look-up and none waits for it.
func (x *Index) Stats() Stats {
	x.convs.mu.RLock()
	n := len(x.convs.byID)
	x.convs.mu.RUnlock()
	return Stats{
		Lines: x.lines.Load(), Conversations: n,
		Keys: int(x.keys.count.Load()), Marks: int(x.marks.count.Load()), Responses: int(x.responses.count.Load()),
		DroppedKeys: x.keys.lost.Load(), DroppedMarks: x.marks.lost.Load(), DroppedResponses: x.responses.lost.Load(),
		EvictedConversations: x.convs.evicted.Load(),
	}
}

// sweeper holds the clock by which things expire. It trails the system's
// clock: it starts at the newest line that was read back and catches up by at
// most catchUp a sweep more than the time that truly went by. So a system clock
// that jumps ahead by a year expires nothing, and what was in use before a long
// holiday is still there after it.
type sweeper struct {
	mu   sync.Mutex
	ref  time.Time // zero before the first sweep
	last time.Time
}

const catchUp = time.Hour

// begin sets the clock to the newest line that was read back.
func (s *sweeper) begin(newest, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest.After(now) {
		newest = now
	}
	s.ref, s.last = newest, now
}

// tick moves the clock; passed is the true time since the last sweep.
func (s *sweeper) tick(now time.Time, passed time.Duration) time.Time {
	if s.ref.IsZero() {
		s.ref = now
	}
	s.ref = s.ref.Add(max(passed, 0) + catchUp)
	if s.ref.After(now) {
		s.ref = now
	}
	return s.ref
}

// clock is the time by which things expire.
func (x *Index) clock() time.Time {
	s := &x.sweeper
	s.mu.Lock()
	defer s.mu.Unlock()
	now := x.now()
	var passed time.Duration
	if !s.last.IsZero() {
		passed = now.Sub(s.last) // monotonic where now is time.Now
	}
	s.last = now
	return s.tick(now, passed)
}

// Sweep drops what was not used for Lifetime. It locks one shard at a time,
// and walks only those that hold something to drop.
func (x *Index) Sweep() { x.sweepAt(x.clock()) }

func (x *Index) sweepAt(clock time.Time) {
	before := clock.Add(-Lifetime)
	x.convs.sweep(micros(before))
	stale := x.convs.stale.Swap(false)
	for _, t := range []*table{&x.keys, &x.marks, &x.responses} {
		t.sweep(hourOf(micros(before)), stale)
	}
}

func (t *conversations) sweep(before int64) {
	for from, n := 0, 1; from < n; from += eachPart {
		t.mu.Lock()
		n = len(t.slots)
		for i := from; i < min(from+eachPart, n); i++ {
			if t.slots[i].live && t.slots[i].last < before {
				t.clear(i)
			}
		}
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, at := range t.forgot {
		if at < before {
			delete(t.forgot, id)
		}
	}
}

// stamp gives the line a time, and sees to it that what settles where a
// conversation is comes after all that is known of it, also when the clock was
// set back meanwhile.
func (x *Index) stamp(l *Line) {
	if l.Time.IsZero() {
		l.Time = x.now()
	}
	if l.Kind != KindPin && l.Kind != KindMove && l.Kind != KindForget {
		return
	}
	x.convs.mu.RLock()
	defer x.convs.mu.RUnlock()
	a := x.convs.agent(l.Agent, false)
	if a < 0 {
		return
	}
	id := convID{uint16(a), l.Session}
	known := x.convs.forgot[id]
	if i, ok := x.convs.byID[id]; ok {
		c := x.convs.slots[i]
		known = max(known, c.decided, c.turnAt)
	}
	if micros(l.Time) <= known {
		l.Time = fromMicros(known + 1)
	}
}

// warnFull tells of tables that had no room since the last time.
func (l *Log) warnFull() {
	s := l.index.Stats()
	limits := l.o.Limits.orDefault()
	for _, t := range []struct {
		what    string
		dropped uint64
		have    int
		limit   int
	}{
		{"prefix keys", s.DroppedKeys, s.Keys, limits.Keys},
		{"reply marks", s.DroppedMarks, s.Marks, limits.Marks},
		{"response ids", s.DroppedResponses, s.Responses, limits.Responses},
	} {
		if l.warnings.grew(t.what, t.dropped) {
			l.warn(t.what, fmt.Sprintf("%d of at most %d %s are known: new ones are not remembered (%d so far)",
				t.have, t.limit, t.what, t.dropped))
		}
	}
	if l.warnings.grew("conversations", s.EvictedConversations) {
		l.warn("conversations", fmt.Sprintf("%d of at most %d conversations are known: the least recently used go (%d so far)",
			s.Conversations, limits.Conversations, s.EvictedConversations))
	}
}
