package outline

import "math/bits"

// quotes knows where strings begin and end in a stretch of the body: words
// blocks of it at a time, each looked at once, from front to back.
type quotes struct {
	to       int           // what was looked at so far
	quote    [words]uint64 // of the last words blocks: quotes that no backslash escapes
	slash    [words]uint64 // backslashes
	escaped  uint64        // 1 if the byte at to is escaped
	inString uint64        // all ones if a string is open at to
	found    masks
	unread   int // bytes before it, if they come, are passed over
}

// restart goes on at i, outside of any string, without a look at what is
// before it.
func (q *quotes) restart(i int) {
	q.to = i &^ (words*64 - 1)
	q.unread = i
	q.escaped, q.inString = 0, 0
}

// advance looks at the next stretch of b. It returns false at its end, and
// where a string holds what JSON does not allow there: control bytes, unknown
// escapes.
//
// Text outside of strings is looked at as if it had no backslashes, which
// holds in valid JSON. If it has some, what advance finds after them means
// nothing, and the scanner refuses the body when it comes there.
func (q *quotes) advance(b []byte) bool {
	from := q.to
	if from >= len(b) {
		return false
	}
	q.to = min(len(b), from+words*64)
	m := &q.found
	n := min(m.fill(b[from:q.to]), words)
	if q.unread > from {
		m.clear(q.unread - from)
	}
	bad := uint64(0)
	for w := range n {
		var escaped uint64
		if slash := m.slash[w]; slash|q.escaped != 0 {
			escaped, q.escaped = escapes(slash, q.escaped)
			for e := escaped &^ m.letter[w]; e != 0; e &= e - 1 {
				at := from + w*64 + bits.TrailingZeros64(e)
				if at > len(b) || escapeLen(b[at-1:]) == 0 {
					bad = 1
				}
			}
		}
		quote := m.quote[w] &^ escaped
		q.quote[w], q.slash[w] = quote, m.slash[w]
		if m.control[w] != 0 {
			bad |= m.control[w] & (within(quote) ^ q.inString)
		}
		q.inString ^= -uint64(bits.OnesCount64(quote) & 1)
	}
	return bad == 0
}

// within has a bit for each byte that an odd number of quotes stand before or
// at.
func within(quote uint64) uint64 {
	for shift := 1; shift < 64; shift *= 2 {
		quote ^= quote << shift
	}
	return quote
}
