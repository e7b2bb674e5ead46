package filestore

import "time"

// merge takes in what another process wrote to the file. For each key the
// newer write stays, be it a value or a deletion. What the file lacks is
// written again, unless gone says that a key missing there was deleted so
// long ago that the deletion is no longer recorded: then what this process
// did not change itself goes too.
//
// It needs the lock for writing.
func (t *table) merge(file []*record, now time.Time, gone bool) {
	t.mark++
	t.victims = nil
	if len(t.recs) == 0 {
		t.index, t.recs = make(map[string]int, len(file)), make([]*record, 0, len(file))
	}
	for _, f := range file {
		t.stamp = max(t.stamp, f.stamp)
		mine := t.at(f.key)
		switch {
		case mine == f:
		case mine == nil || newer(f, mine):
			if mine != nil && t.dirty(mine) && f.stamp > now.UnixMicro() {
				// The file's write bears a time still to come: it was made
				// before the clock was put back, and mine since.
				c := mine.copy()
				c.line, c.stamp = "", f.stamp+1
				t.stamp = max(t.stamp, c.stamp)
				t.place(c)
				break
			}
			t.take(f, mine)
		case newer(mine, f) && !t.dirty(mine):
			t.rewrite(mine)
		}
		t.at(f.key).mark = t.mark
	}
	t.missing(now, gone)
}

// take puts the file's record in place of mine, which may be nil.
func (t *table) take(f, mine *record) {
	f.used.Store(f.stamp)
	if mine != nil {
		f.used.Store(max(f.stamp, mine.used.Load()))
	}
	t.place(f)
}

// missing sees to the records that the last merge did not find in the file.
func (t *table) missing(now time.Time, gone bool) {
	for i := 0; i < len(t.recs); i++ {
		r := t.recs[i]
		if r.mark == t.mark || t.dirty(r) || r.kind == kindDead || r.lapsed(now.UnixMilli()) {
			continue
		}
		if gone {
			t.drop(r.key)
			i-- // the last one has taken its place
			continue
		}
		t.rewrite(r)
	}
}

// newer tells whether a was written after b. Two writes of one instant are
// told apart by what they say, so that all processes choose alike.
func newer(a, b *record) bool {
	if a.stamp != b.stamp {
		return a.stamp > b.stamp
	}
	if sameValue(a, b) || a.kind == kindDead && b.kind == kindDead {
		return false
	}
	if a.kind == kindDead || b.kind == kindDead {
		return a.kind == kindDead // it lapsed there, as it will here
	}
	return a.encode() > b.encode()
}
