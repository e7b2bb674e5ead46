package reqlog

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A table remembers who owns a 64-bit value: a prefix key, a reply mark or the
// hash of a response id. It is cut into shards so that a request never waits
// for the whole of it, holds no pointers (the collector does not walk it), and
// costs 16 bytes an entry at 72 to 90 per cent filling.
//
// Lock order: a shard's lock, then the conversations' lock for reading; never
// the other way round.
type table struct {
	shards [tableShards]shard
	limit  int64
	count  atomic.Int64 // entries in all shards
	lost   atomic.Uint64
	convs  *conversations
}

const (
	tableShards = 256
	maxOwners   = 4 // conversations remembered for one value
)

type shard struct {
	mu      sync.Mutex
	entries []entry
	n       int
	oldest  uint32 // no entry was used before this second
	lists   []ownerList
	free    []uint32 // indexes of lists that are not in use
}

// entry is one value. An owner of zero is an empty place.
type entry struct {
	value uint64
	owner owner
	used  uint32 // second of its last use, since 1970
}

// An owner is a conversation (slot and generation), the server of a side
// request, or a list of several owners.
type owner uint32

const (
	ownerMany owner = 1 << 31 // the rest is an index into shard.lists
	ownerSide owner = 1 << 30 // the rest is a server's number
	slotBits        = 17
	maxSlots        = 1 << slotBits
	genMask         = 1<<(30-slotBits) - 1
)

type ownerList struct {
	n    uint8
	more bool // an owner at the same place as one of these was left out
	dead bool // one of those left out may be elsewhere by now: matches nobody
	of   [maxOwners]owner
}

func mix(v uint64) uint64 {
	v ^= v >> 32
	v *= 0x9e3779b97f4a7c15
	return v ^ v>>29
}

func (t *table) shard(h uint64) *shard { return &t.shards[h%tableShards] }

// find returns the place of the value, or the empty one where it belongs.
func (s *shard) find(h, value uint64) *entry {
	n := uint64(len(s.entries))
	if n == 0 {
		return nil
	}
	i, _ := bits.Mul64(h, n)
	for {
		e := &s.entries[i]
		if e.owner == 0 || e.value == value {
			return e
		}
		if i++; i == n {
			i = 0
		}
	}
}

// add makes who an owner of the value, and reports whether there was room.
func (t *table) add(value uint64, who owner, used uint32) bool {
	h := mix(value)
	s := t.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(h, value)
	if e != nil && e.owner != 0 {
		t.join(s, e, who)
		e.used = max(e.used, used)
		return true
	}
	if t.count.Load() >= t.limit {
		t.lost.Add(1)
		return false
	}
	if 10*(s.n+1) > 9*len(s.entries) {
		s.resize(len(s.entries) + len(s.entries)/4 + 8)
		e = s.find(h, value)
	}
	*e = entry{value: value, owner: who, used: used}
	if s.n == 0 || used < s.oldest {
		s.oldest = used
	}
	s.n++
	t.count.Add(1)
	return true
}

// resize moves all entries to a new slice.
func (s *shard) resize(n int) {
	old := s.entries
	s.entries = make([]entry, n)
	for _, e := range old {
		if e.owner != 0 {
			*s.find(mix(e.value), e.value) = e
		}
	}
}

// join adds who to an entry that has an owner. Owners that are no longer
// anybody's are replaced first.
func (t *table) join(s *shard, e *entry, who owner) {
	if e.owner == who {
		return
	}
	if e.owner&ownerMany == 0 {
		if !t.convs.current(e.owner) {
			e.owner = who
			return
		}
		e.owner = ownerMany | owner(s.newList(ownerList{n: 2, of: [maxOwners]owner{e.owner, who}}))
		return
	}
	l := &s.lists[e.owner&^ownerMany]
	for i := range l.n {
		if l.of[i] == who {
			return
		}
	}
	for i := range l.n {
		if !t.convs.current(l.of[i]) {
			l.of[i] = who
			return
		}
	}
	if l.n < maxOwners {
		l.of[l.n] = who
		l.n++
		return
	}
	t.crowd(l, who)
}

// crowd adds who to a full list so that the places of the list stay all the
// places at which the value was claimed: somebody at the same place as another
// goes.
func (t *table) crowd(l *ownerList, who owner) {
	var places [maxOwners + 1]string
	for i, o := range l.of {
		places[i] = t.convs.place(o)
	}
	places[maxOwners] = t.convs.place(who)
	for i := range l.of {
		for j := i + 1; j <= maxOwners; j++ {
			if places[i] == places[j] {
				copy(l.of[i:], l.of[i+1:])
				l.of[maxOwners-1] = who
				l.more = true
				return
			}
		}
	}
	// Five owners at five places: ambiguous with or without the fifth.
	l.more = true
}

func (s *shard) newList(l ownerList) uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.lists[i] = l
		return i
	}
	s.lists = append(s.lists, l)
	return uint32(len(s.lists) - 1)
}

// owners returns who owns the value and notes its use. A value that may have
// owners at places no longer known has none.
func (t *table) owners(value uint64, used uint32) (of [maxOwners]owner, n int) {
	h := mix(value)
	s := t.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(h, value)
	if e == nil || e.owner == 0 {
		return of, 0
	}
	e.used = max(e.used, used)
	if e.owner&ownerMany == 0 {
		of[0] = e.owner
		return of, 1
	}
	l := &s.lists[e.owner&^ownerMany]
	if l.dead {
		return of, 0
	}
	return l.of, int(l.n)
}

// moved makes the values whose list left an owner out match nobody, since the
// one that changed its place may be among those left out.
func (t *table) moved() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for j := range s.lists {
			if s.lists[j].more {
				s.lists[j].dead = true
			}
		}
		s.mu.Unlock()
	}
}

// sweep drops entries that were last used before the given second and, if
// stale is set, those whose owners are gone. One shard is locked at a time.
func (t *table) sweep(before uint32, stale bool) (dropped int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		if s.n > 0 && (stale || s.oldest < before) {
			dropped += t.sweepShard(s, before)
		}
		s.mu.Unlock()
	}
	t.count.Add(-int64(dropped))
	return dropped
}

func (t *table) sweepShard(s *shard, before uint32) int {
	t.convs.mu.RLock()
	defer t.convs.mu.RUnlock()
	oldest, keep := ^uint32(0), 0
	for i := range s.entries {
		e := &s.entries[i]
		if e.owner == 0 {
			continue
		}
		if e.used < before || !t.trim(s, e) {
			s.drop(e)
			continue
		}
		keep++
		oldest = min(oldest, e.used)
	}
	dropped := s.n - keep
	s.n, s.oldest = keep, oldest
	switch {
	case keep == 0:
		s.entries, s.lists, s.free = nil, nil, nil
	case dropped > 0:
		// Emptied places would break the chains of the others.
		s.resize(keep + keep/4 + 8)
	}
	return dropped
}

// drop empties an entry. The shard is resized by the caller.
func (s *shard) drop(e *entry) {
	if e.owner&ownerMany != 0 {
		i := uint32(e.owner &^ ownerMany)
		s.lists[i] = ownerList{}
		s.free = append(s.free, i)
	}
	*e = entry{}
}

// trim removes owners that are gone and reports whether any is left. Called
// with the conversations' lock held.
func (t *table) trim(s *shard, e *entry) bool {
	if e.owner&ownerMany == 0 {
		return t.convs.currentLocked(e.owner)
	}
	l := &s.lists[e.owner&^ownerMany]
	n := uint8(0)
	for i := range l.n {
		if t.convs.currentLocked(l.of[i]) {
			l.of[n] = l.of[i]
			n++
		}
	}
	l.n = n
	return n > 0
}
