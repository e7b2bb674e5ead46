package reqlog

import "sync"

// ownSpans remembers which bytes of the files this process wrote, so that
// following another process's lines skips them. Adjacent ones become one: a
// process that writes alone needs one span a file.
type ownSpans struct {
	mu   sync.Mutex
	of   map[fileID][]span
	size int
}

type span struct{ from, to int64 }

// maxSpans bounds the spans that wait for a follower; beyond, lines are taken
// twice, which counts some turns twice and does nothing else.
const maxSpans = 1 << 14

// add is called with the lock held, which is taken before the bytes are
// written.
func (o *ownSpans) add(id fileID, from, to int64) {
	if s := o.of[id]; len(s) > 0 && s[len(s)-1].to == from {
		s[len(s)-1].to = to
		return
	}
	if o.size == maxSpans {
		o.of, o.size = nil, 0
	}
	if o.of == nil {
		o.of = map[fileID][]span{}
	}
	o.of[id] = append(o.of[id], span{from, to})
	o.size++
}

// has reports whether the byte at off is this process's, and forgets spans
// that end before it: a follower only goes forward.
func (o *ownSpans) has(id fileID, off int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.of[id]
	for len(s) > 0 && s[0].to <= off {
		s = s[1:]
		o.size--
	}
	if o.of != nil {
		o.of[id] = s
	}
	return len(s) > 0 && s[0].from <= off
}
