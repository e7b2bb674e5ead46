package filestore

import (
	"strings"
	"sync/atomic"
	"time"
)

// table is what the store holds in memory. It does no I/O and reads no clock.
// Its methods want the owner's lock: for writing where they change anything
// but a record's time of use.
type table struct {
	index map[string]int // where in recs a key is
	recs  []*record      // in no order, deletions among them
	live  int            // records that are no deletions
	shape uint64         // counts the changes of recs that are no additions at its end
	bytes int64          // the sum of the live ones' sizes

	gen     uint64 // counts the writes of this process
	saved   uint64 // the writes up to this one are in the file
	unsaved int    // writes since saved, for State
	stamp   int64  // the newest stamp given or seen, Unix µs

	useClock atomic.Int64 // the last time of use given, Unix µs; never stands still
	victims  []victim     // least recently used ones, the oldest first, when known
	evicted  uint64
	mark     uint32 // the number of the last merge
}

func newTable() *table { return &table{index: map[string]int{}} }

// at returns the record of key, dead or lapsed as it may be, or nil.
func (t *table) at(key string) *record {
	if i, ok := t.index[key]; ok {
		return t.recs[i]
	}
	return nil
}

// find returns the record of a key that exists at now, else nil.
func (t *table) find(key string, now int64) *record {
	if r := t.at(key); r != nil && r.kind != kindDead && !r.lapsed(now) {
		return r
	}
	return nil
}

// touch notes that r is being used. The times are all different, so that the
// order of use is known however fast uses follow.
func (t *table) touch(r *record) { r.used.Store(t.useClock.Add(1)) }

// write puts a record of this process in place, stamped as the newest.
func (t *table) write(r *record, now time.Time) {
	t.stamp = max(now.UnixMicro(), t.stamp+1)
	t.gen++
	t.unsaved++
	r.stamp, r.gen = t.stamp, t.gen
	if use := now.UnixMicro(); use > t.useClock.Load() {
		t.useClock.Store(use)
	}
	t.touch(r)
	t.place(r)
}

// place puts r where its key's record is, or adds it.
func (t *table) place(r *record) {
	i, ok := t.index[r.key]
	if !ok {
		t.index[r.key] = len(t.recs)
		t.recs = append(t.recs, r)
		t.count(r, 1)
		return
	}
	t.count(t.recs[i], -1)
	t.count(r, 1)
	t.recs[i] = r
	t.shape++
}

// drop forgets a key altogether.
func (t *table) drop(key string) {
	i, ok := t.index[key]
	if !ok {
		return
	}
	t.count(t.recs[i], -1)
	last := len(t.recs) - 1
	t.recs[i] = t.recs[last]
	t.index[t.recs[i].key] = i
	t.recs[last] = nil
	t.recs = t.recs[:last]
	t.shape++
	delete(t.index, key)
}

func (t *table) count(r *record, by int) {
	if r.kind != kindDead {
		t.live += by
		t.bytes += int64(by) * r.size()
	}
}

// bury deletes key, leaving a record of that until end, Unix ms.
func (t *table) bury(key string, now time.Time, end int64) {
	t.write(&record{key: strings.Clone(key), kind: kindDead, expires: end}, now)
}

// snapshot returns the records from number from on, with the lines that are
// there, and the number of the last write among them.
func (t *table) snapshot(from int) (recs []*record, lines []string, gen uint64) {
	recs = append(make([]*record, 0, len(t.recs)-from), t.recs[from:]...)
	lines = make([]string, len(recs))
	for i, r := range recs {
		lines[i] = r.line
	}
	return recs, lines, t.gen
}

// setSaved notes that the writes up to gen are in the file.
func (t *table) setSaved(gen uint64) {
	t.saved = gen
	t.unsaved = int(t.gen - gen)
}

// dirty tells whether r is a write of this process that is not in the file.
func (t *table) dirty(r *record) bool { return r.gen > t.saved }

// rewrite has r saved again though it is no new write.
func (t *table) rewrite(r *record) {
	c := r.copy()
	t.gen++
	t.unsaved++
	c.gen = t.gen
	t.place(c)
}

// copy returns a record that may be changed before it is put in place.
func (r *record) copy() *record {
	c := &record{key: r.key, val: r.val, hash: r.hash, kind: r.kind, expires: r.expires, stamp: r.stamp, gen: r.gen, mark: r.mark, line: r.line}
	c.used.Store(r.used.Load())
	return c
}
