package filestore

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// sweep removes what has lapsed among n records from number from on, and
// returns where to go on. A key that lapsed leaves a deletion of its own
// stamp until end, so that an older value which another process has, and
// which lives longer, does not come back. Needs the lock for writing.
func (t *table) sweep(from, n int, now time.Time, end int64) (next int) {
	ms := now.UnixMilli()
	for i := from; n > 0 && i < len(t.recs); n-- {
		switch r := t.recs[i]; {
		case !r.lapsed(ms):
			i++
		case r.kind == kindDead:
			t.drop(r.key)
		default:
			d := &record{key: r.key, kind: kindDead, expires: end, stamp: r.stamp, mark: r.mark}
			t.gen++
			t.unsaved++
			d.gen = t.gen
			t.place(d)
			i++
		}
		from = i
	}
	return from
}

// victimBatch is how many candidates for eviction are looked out at a time.
// A search goes over all records; between two, each eviction is a step.
const victimBatch = 1024

// overFull tells whether the limits are exceeded.
func (t *table) overFull(l Limits) bool { return t.live > l.Keys || t.bytes > l.Bytes }

// evict deletes the least recently used keys until the limits are kept, and
// returns how many. recency may be nil. Needs the lock for writing.
func (t *table) evict(l Limits, recency func(string) time.Time, now time.Time, end int64) int {
	n := 0
	for t.overFull(l) {
		r := t.victim(recency)
		if r == nil {
			break
		}
		t.bury(r.key, now, end)
		n++
	}
	t.evicted += uint64(n)
	return n
}

// forget drops the older half of the deletions that are remembered if there
// are more than limit. A process that has not seen one of them may bring that
// key back; a table that grows for ever would be worse. Needs the lock.
func (t *table) forget(limit int) {
	if len(t.recs)-t.live <= limit {
		return
	}
	var dead []*record
	for _, r := range t.recs {
		if r.kind == kindDead {
			dead = append(dead, r)
		}
	}
	slices.SortFunc(dead, func(a, b *record) int { return cmp.Compare(a.stamp, b.stamp) })
	for _, r := range dead[:len(dead)/2] {
		t.drop(r.key)
	}
}

// victim returns the least recently used record. Uses only make records
// younger and new ones are young, so the oldest of an earlier search are
// still the oldest, but for those used since.
func (t *table) victim(recency func(string) time.Time) *record {
	for range 2 {
		for len(t.victims) > 0 {
			v := t.victims[0]
			t.victims = t.victims[1:]
			if r := t.at(v.rec.key); r == v.rec && lastUse(r, recency) == v.used {
				return r
			}
		}
		t.lookForVictims(recency)
	}
	return nil
}

type victim struct {
	rec  *record
	used int64
}

// lookForVictims keeps the oldest it has met, twice a batch of them, and sorts
// when these are full; what is younger than the batch is then passed by.
func (t *table) lookForVictims(recency func(string) time.Time) {
	oldest := make([]victim, 0, 2*victimBatch)
	byUse := func(a, b victim) int { return cmp.Compare(a.used, b.used) }
	limit := int64(math.MaxInt64)
	for _, r := range t.recs {
		if r.kind == kindDead {
			continue
		}
		v := victim{r, lastUse(r, recency)}
		if v.used >= limit {
			continue
		}
		if oldest = append(oldest, v); len(oldest) == cap(oldest) {
			slices.SortFunc(oldest, byUse)
			oldest = oldest[:victimBatch]
			limit = oldest[victimBatch-1].used
		}
	}
	slices.SortFunc(oldest, byUse)
	t.victims = oldest[:min(len(oldest), victimBatch)]
}

// lastUse is when r was last used, Unix µs, by what store and caller know.
func lastUse(r *record, recency func(string) time.Time) int64 {
	used := r.used.Load()
	if recency != nil {
		if t := recency(r.key); !t.IsZero() {
			used = max(used, t.UnixMicro())
		}
	}
	return used
}

// putForward gives every key that is to lapse and was written before after,
// Unix µs, by more of the wall clock's time. Stamps never go back: one that is
// still to come, of a clock that was ahead, does not tell when its key was
// written, and the key would rather live too long. Needs the lock.
func (t *table) putForward(by time.Duration, after int64, now time.Time) {
	for _, r := range t.recs {
		written := r.stamp >= after && (r.stamp <= now.UnixMicro() || !r.lapsed(now.UnixMilli()))
		if r.expires == 0 || written {
			continue
		}
		c := r.copy()
		c.line = ""
		c.expires += by.Milliseconds()
		used := r.used.Load()
		t.write(c, now)
		c.used.Store(used)
	}
}
