package reqlog

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A table remembers who owns a 64-bit value: a prefix key, a reply mark or the
// hash of a response id. It is cut into shards so that a request never waits
// for the whole of it, holds no pointers (the collector does not walk it), and
// costs 12 bytes an entry at 80 to 90 per cent filling.
//
// Of a value's 64 bits it compares 56: with a million entries, a look-up of a
// value that is not there finds another's in one of 10^10 cases.
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
	mu     sync.Mutex
	tags   []tag   // one for each place
	owners []owner // likewise; zero is an empty place
	n      int
	oldest hour // no entry was used before
	lists  []ownerList
	free   []uint32 // indexes of lists that are not in use
}

// tag is what is compared of a value, and the hour of its last use.
type tag uint64

func tagOf(h uint64, used hour) tag { return tag(h&^(1<<hourBits-1)) | tag(used) }

func (t tag) used() hour { return hour(t) }

// hour counts hours since 1970, the lowest bits: moments that are within three
// years of each other can be told apart.
type hour uint16

const hourBits = 16

func (h hour) before(other hour) bool { return int16(h-other) < 0 }

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

// find returns the place of the value with the hash h, or the empty one where
// it belongs; -1 if there are no places.
func (s *shard) find(h uint64) int {
	n := uint64(len(s.tags))
	if n == 0 {
		return -1
	}
	h >>= hourBits
	i, _ := bits.Mul64(h<<hourBits, n)
	for s.owners[i] != 0 && uint64(s.tags[i])>>hourBits != h {
		if i++; i == n {
			i = 0
		}
	}
	return int(i)
}

// touch notes that the entry at place i was used.
func (s *shard) touch(i int, used hour) {
	if s.tags[i].used().before(used) {
		s.tags[i] = tagOf(uint64(s.tags[i]), used)
	}
}

// add makes who an owner of the value, and reports whether there was room.
func (t *table) add(value uint64, who owner, used hour) bool {
	h := mix(value)
	s := t.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(h)
	if i >= 0 && s.owners[i] != 0 {
		t.join(s, &s.owners[i], who)
		s.touch(i, used)
		return true
	}
	if t.count.Load() >= t.limit {
		t.lost.Add(1)
		return false
	}
	if 10*(s.n+1) > 9*len(s.tags) {
		s.resize(len(s.tags) + len(s.tags)/8 + 8)
		i = s.find(h)
	}
	s.tags[i], s.owners[i] = tagOf(h, used), who
	if s.n == 0 || used.before(s.oldest) {
		s.oldest = used
	}
	s.n++
	t.count.Add(1)
	return true
}

// resize moves all entries to n new places.
func (s *shard) resize(n int) {
	tags, owners := s.tags, s.owners
	s.tags, s.owners = make([]tag, n), make([]owner, n)
	for i, who := range owners {
		if who != 0 {
			to := s.find(uint64(tags[i]))
			s.tags[to], s.owners[to] = tags[i], who
		}
	}
}

// join adds who to an entry that has an owner. Owners that are no longer
// anybody's are replaced first.
func (t *table) join(s *shard, has *owner, who owner) {
	if *has == who {
		return
	}
	if *has&ownerMany == 0 {
		if !t.convs.current(*has) {
			*has = who
			return
		}
		*has = ownerMany | owner(s.newList(ownerList{n: 2, of: [maxOwners]owner{*has, who}}))
		return
	}
	l := &s.lists[*has&^ownerMany]
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
func (t *table) owners(value uint64, used hour) (of [maxOwners]owner, n int) {
	h := mix(value)
	s := t.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(h)
	if i < 0 || s.owners[i] == 0 {
		return of, 0
	}
	s.touch(i, used)
	if who := s.owners[i]; who&ownerMany == 0 {
		of[0] = who
		return of, 1
	}
	l := &s.lists[s.owners[i]&^ownerMany]
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

// sweep drops entries that were last used before the given hour and, if stale
// is set, those whose owners are gone. One shard is locked at a time.
func (t *table) sweep(before hour, stale bool) (dropped int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		if s.n > 0 && (stale || s.oldest.before(before)) {
			dropped += t.sweepShard(s, before)
		}
		s.mu.Unlock()
	}
	t.count.Add(-int64(dropped))
	return dropped
}

func (t *table) sweepShard(s *shard, before hour) int {
	t.convs.mu.RLock()
	defer t.convs.mu.RUnlock()
	var oldest hour
	keep := 0
	for i, who := range s.owners {
		if who == 0 {
			continue
		}
		used := s.tags[i].used()
		if used.before(before) || !t.trim(s, who) {
			s.drop(i)
			continue
		}
		if keep == 0 || used.before(oldest) {
			oldest = used
		}
		keep++
	}
	dropped := s.n - keep
	s.n, s.oldest = keep, oldest
	switch {
	case keep == 0:
		s.tags, s.owners, s.lists, s.free = nil, nil, nil, nil
	case dropped > 0:
		// Emptied places would break the chains of the others.
		s.resize(keep + keep/8 + 8)
	}
	return dropped
}

// pack lets go of what room is not needed at the moment.
func (t *table) pack() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		if n := s.n + s.n/8 + 1; s.n > 0 && n < len(s.tags) {
			s.resize(n)
		}
		s.mu.Unlock()
	}
}

// drop empties a place. The shard is resized by the caller.
func (s *shard) drop(i int) {
	if s.owners[i]&ownerMany != 0 {
		list := uint32(s.owners[i] &^ ownerMany)
		s.lists[list] = ownerList{}
		s.free = append(s.free, list)
	}
	s.owners[i] = 0
}

// trim removes owners that are gone and reports whether any is left. Called
// with the conversations' lock held.
func (t *table) trim(s *shard, who owner) bool {
	if who&ownerMany == 0 {
		return t.convs.currentLocked(who)
	}
	l := &s.lists[who&^ownerMany]
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
