package stream

import (
	"strconv"
	"sync"
)

const (
	maxPath    = 10      // containers between the root and the deepest node
	arenaBytes = 1 << 20 // most that one event's captured values may take
	arenaKept  = 64 << 10
	headBytes  = 512
)

// span is a captured value: arena[from:to].
type span struct {
	from, to int32
	set      bool
}

func spanOf(from, to int, set bool) span { return span{int32(from), int32(to), set} }

// walker follows one JSON value through the nodes: it keeps the few values
// that decide, in an arena that is emptied with each event, and hashes those
// that may be long as they pass. What it found is looked at when an element
// closes (closed) or when the value is whole.
type walker struct {
	tok    tokens
	closed func(node) // called at the end of each object or array at a node
	root   node
	at     node // node of the next value
	path   [maxPath]node
	depth  int
	skip   int // containers open that mean nothing to us
	inside int // containers open of a value whose strings are summed

	arena []byte
	from  int // where the string that is being captured began
	spans [nodeCount]span
	lost  bool // that string is too long to be captured
	over  bool // the arena did not suffice; sticky
	words words
	shape shape

	current  running // the string that is being hashed
	args     arguments
	text     tally
	id       tally
	name     tally
	input    tally               // of arguments, however they are written
	head     [headBytes + 4]byte // so that a character cut at headBytes can be seen
	headLen  int
	headFrom int // where the text of the part that is open begins in head
}

// walkers are those that no answer needs: one takes over two kilobytes.
var walkers = sync.Pool{New: func() any { return new(walker) }}

// newWalker returns a walker; release takes it back.
func newWalker(root node, newHash func() Hash, closed func(node)) *walker {
	w := walkers.Get().(*walker)
	w.root, w.at, w.closed = root, root, closed
	w.current.newHash, w.args.whole.newHash, w.args.value.newHash = newHash, newHash, newHash
	return w
}

// release gives the walker to the next answer.
func (w *walker) release() {
	stack, arena, event := w.tok.stack[:0], w.arena[:0], w.shape.event[:0]
	if cap(arena) > arenaKept {
		arena = nil
	}
	*w = walker{arena: arena}
	w.shape.event = event
	w.tok.stack = stack
	walkers.Put(w)
}

// restart forgets the value that was read.
func (w *walker) restart() {
	w.current.drop()
	if w.args.whole.bytes > 0 {
		w.args.take()
	}
	w.tok.reset()
	w.at, w.depth, w.skip, w.inside = w.root, 0, 0, 0
	if cap(w.arena) > arenaKept {
		w.arena = nil
	}
	w.arena, w.from, w.lost = w.arena[:0], 0, false
	clear(w.spans[:])
	w.words, w.shape.known = words{}, false
	w.forget()
}

// forget drops what was hashed of the element that closed.
func (w *walker) forget() {
	w.text, w.id, w.name, w.input, w.headLen = tally{}, tally{}, tally{}, tally{}, 0
	w.headFrom = 0
}

func (w *walker) write(p []byte) { w.tok.write(p, w) }
func (w *walker) whole() bool    { return w.tok.whole(w) }

func (w *walker) open(isObject bool) {
	switch {
	case w.skip > 0:
		w.skip++
		return
	case w.inside > 0:
		w.inside++
		return
	case uses[w.at] == hashJSON || uses[w.at] == hashValue:
		w.input = tally{}
		w.inside = 1
		return
	}
	known := elements[w.at] != nowhere
	if isObject {
		known = members[w.at] != nil
	}
	if !known || w.depth == maxPath {
		w.skip = 1
		return
	}
	n := w.at
	w.spans[n] = spanOf(len(w.arena), len(w.arena), true)
	w.path[w.depth] = n
	w.depth++
	w.at = nowhere
	if !isObject {
		w.at = elements[n]
	}
}

func (w *walker) close() {
	switch {
	case w.skip > 0:
		w.skip--
		return
	case w.inside > 0:
		w.inside--
		return
	}
	w.depth--
	n := w.path[w.depth]
	if w.depth > 0 {
		w.at = elements[w.path[w.depth-1]] // in an object, the next key decides
	}
	w.closed(n)
}

func (w *walker) key(name []byte) {
	if w.skip == 0 && w.inside == 0 {
		w.at = memberOf(w.path[w.depth-1], name)
	}
}

func (w *walker) piece(p []byte) {
	if w.skip > 0 {
		return
	}
	if w.inside > 0 {
		w.current.write(p)
		return
	}
	switch uses[w.at] {
	case capture:
		if len(w.arena)+len(p) > arenaBytes {
			w.over, w.lost = true, true
			w.arena = w.arena[:w.from] // the values that come after it are short
		}
		if !w.lost {
			w.arena = append(w.arena, p...)
		}
	case hashText:
		w.headLen += copy(w.head[w.headLen:], p)
		w.current.write(p)
	case hashID, hashName, hashValue:
		w.current.write(p)
	case hashJSON:
		w.args.write(p)
	}
}

func (w *walker) endString() {
	if w.skip > 0 {
		return
	}
	if w.inside > 0 {
		w.input.add(w.current.take())
		return
	}
	switch uses[w.at] {
	case capture:
		w.spans[w.at] = spanOf(w.from, len(w.arena), len(w.arena) > w.from)
		w.from, w.lost = len(w.arena), false
		w.mayVary()
	case pass:
		w.mayVary()
	case hashText:
		if w.text = (tally{}); w.current.bytes > 0 {
			w.text = w.current.take()
		}
	case hashID:
		w.id = w.current.take()
	case hashName:
		w.name = w.current.take()
	case hashValue:
		w.input = w.current.take()
	case hashJSON:
		w.input = w.args.take()
	}
}

// mayVary takes down where the string is that has just ended.
func (w *walker) mayVary() {
	if varies[w.at] {
		w.words = words{w.at, w.tok.from, w.tok.to, w.spans[w.at]}
	}
}

func (w *walker) literal(p []byte) {
	if len(p) > 0 && w.skip == 0 && w.inside == 0 && uses[w.at] == capture && (p[0] == '-' || p[0] <= '9') {
		w.piece(p)
		w.endString()
	}
}

// drop forgets the captured values at nodes, which belong to the element n
// that closed, and gives back what the arena holds since n opened.
func (w *walker) drop(n node, nodes ...node) {
	w.unset(nodes...)
	w.arena = w.arena[:w.spans[n].from]
	w.from = len(w.arena)
}

func (w *walker) unset(nodes ...node) {
	for _, n := range nodes {
		w.spans[n] = span{}
	}
}

func (w *walker) bytes(n node) []byte { return w.arena[w.spans[n].from:w.spans[n].to] }
func (w *walker) has(n node) bool     { return w.spans[n].set }

// number is the whole number captured at n; ok is false when there is none,
// or one that no token count or index can be.
func (w *walker) number(n node) (v int64, ok bool) {
	if !w.has(n) {
		return 0, false
	}
	return parseNumber(w.bytes(n))
}

func parseNumber(p []byte) (int64, bool) {
	if len(p) == 0 || len(p) > 15 {
		return 0, false
	}
	v, err := strconv.ParseInt(string(p), 10, 64)
	return v, err == nil && v >= 0
}
