package filestore

import (
	"slices"
	"strings"
	"sync/atomic"
)

type kind uint8

const (
	kindString kind = iota
	kindHash
	kindDead // a deletion, remembered so that no other process undoes it
)

// record is what is known of one key. A change makes a new record: all but
// the fields at the end never change, so that a save may encode it while the
// store goes on.
type record struct {
	key     string
	val     string  // of a string; moved into line when that is made
	hash    []field // of a hash: sorted, at least one
	kind    kind
	mark    uint32 // the last merge that saw it in the file; under table's lock
	expires int64  // Unix ms; 0 is never; of a dead one, when it may be forgotten
	stamp   int64  // when it was written, Unix µs, no two writes of a process alike
	gen     uint64 // the write of this process that made it; 0 if read from the file

	line string       // its line in the file, "" until made; under table's lock
	used atomic.Int64 // when it was last used, Unix µs
}

type field struct{ name, val string }

// perRecord is what a record costs in memory besides key and value, roughly.
const perRecord = 128

func (r *record) size() int64 { return int64(len(r.key)) + int64(r.valueLen()) + perRecord }

func (r *record) valueLen() int {
	n := len(r.val)
	for _, f := range r.hash {
		n += len(f.name) + len(f.val)
	}
	return n
}

// lapsed tells whether the time to live has run out at now, Unix ms. Redis
// lets a key go at the very millisecond.
func (r *record) lapsed(now int64) bool { return r.expires != 0 && r.expires <= now }

func (r *record) field(name string) (string, bool) {
	i, found := findField(r.hash, name)
	if !found {
		return "", false
	}
	return r.hash[i].val, true
}

func findField(hash []field, name string) (int, bool) {
	return slices.BinarySearchFunc(hash, name, func(f field, name string) int {
		return strings.Compare(f.name, name)
	})
}

// sameValue tells whether two records say the same of their key, whenever
// they were written.
func sameValue(a, b *record) bool {
	return a.kind == b.kind && a.expires == b.expires && a.val == b.val && slices.Equal(a.hash, b.hash)
}
