package reqlog

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A table remembers who owns a 64-bit value: a prefix key, a reply mark or the
// hash of a response id. It is cut into shards so that a request never waits
// for the whole of it, gives the collector nothing to walk but lists of chunks,
// and costs 12 bytes an entry and half a chunk a shard: a shard's entries are in
// order and without gaps. As hashes are spread evenly, each is near the place
// that its size tells, and to make room for one more moves some kilobytes.
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
	chunks []*chunk // of entries by hash; all but the last are full
	n      int      // entries
	oldest hour     // no entry was used before
	lists  []ownerList
	free   []uint32 // indexes of lists that are not in use
}

// chunk is a part of a shard's entries: memory of one size is used to the last
// byte where parts of all sizes would leave holes behind as they grow.
type chunk [perChunk]entry

// perChunk is the entries that a kilobyte holds: with less, the lists of chunks
// grow; with more, what a small table's shards leave empty does.
const perChunk = 85

// entry is a value by the highest 48 bits of its hash, the hour of its last use
// and its owner.
type entry struct {
	high uint32
	low  uint16
	used hour
	who  owner
}

func (e *entry) hash() uint64 { return uint64(e.high)<<16 | uint64(e.low) }

// hour counts hours since 1970, the lowest bits: moments that are within three
// years of each other can be told apart.
type hour uint16

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

// find returns the place of the value with the hash h, and whether it is there
// or would belong there.
func (s *shard) find(h uint64) (i int, ok bool) {
	near, _ := bits.Mul64(h, uint64(s.n))
	h >>= 16
	i = int(near)
	for i < s.n && s.at(i).hash() < h {
		i++
	}
	for i > 0 && s.at(i-1).hash() >= h {
		i--
	}
	return i, i < s.n && s.at(i).hash() == h
}

func (s *shard) at(i int) *entry { return &s.chunks[i/perChunk][i%perChunk] }

// touch notes that an entry was used.
func (e *entry) touch(used hour) {
	if e.used.before(used) {
		e.used = used
	}
}

// add makes who an owner of the value, and reports whether there was room.
func (t *table) add(value uint64, who owner, used hour) bool {
	h := mix(value)
	s := t.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.find(h)
	if ok {
		e := s.at(i)
		t.join(s, &e.who, who)
		e.touch(used)
		return true
	}
	if t.count.Load() >= t.limit {
		t.lost.Add(1)
		return false
	}
	if s.n == 0 || used.before(s.oldest) {
		s.oldest = used
	}
	s.insert(i, entry{high: uint32(h >> 32), low: uint16(h >> 16), used: used, who: who})
	t.count.Add(1)
	return true
}

// insert makes room for an entry: the last of each chunk becomes the next
// one's first.
func (s *shard) insert(i int, e entry) {
	if s.n == len(s.chunks)*perChunk {
		s.chunks = append(s.chunks, new(chunk))
	}
	b := s.n / perChunk
	for ; b > i/perChunk; b-- {
		into := s.chunks[b]
		copy(into[1:], into[:])
		into[0] = s.chunks[b-1][perChunk-1]
	}
	after := s.chunks[b][i%perChunk:]
	copy(after[1:], after)
	after[0] = e
	s.n++
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
	i, ok := s.find(h)
	if !ok {
		return of, 0
	}
	e := s.at(i)
	e.touch(used)
	if e.who&ownerMany == 0 {
		of[0] = e.who
		return of, 1
	}
	l := &s.lists[e.who&^ownerMany]
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
	was, kept := s.n, 0
	for i := range was {
		e := *s.at(i)
		if e.used.before(before) || !t.trim(s, e.who) {
			s.drop(e.who)
			continue
		}
		if kept == 0 || e.used.before(s.oldest) {
			s.oldest = e.used
		}
		*s.at(kept) = e
		kept++
	}
	s.n = kept
	used := (kept + perChunk - 1) / perChunk
	clear(s.chunks[used:])
	s.chunks = s.chunks[:used]
	if kept == 0 {
		s.chunks, s.lists, s.free = nil, nil, nil
	}
	return was - kept
}

// drop gives back the list of an entry that goes, if it has one.
func (s *shard) drop(who owner) {
	if who&ownerMany != 0 {
		list := uint32(who &^ ownerMany)
		s.lists[list] = ownerList{}
		s.free = append(s.free, list)
	}
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
