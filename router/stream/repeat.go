package stream

import (
	"bytes"

	"agentop/agents/outline"
)

// maxShape is how long an event may be, without its words, to be known again.
const maxShape = 1 << 10

// shape is an event that was read and of which the walker still holds what it
// found: most events of a stream are the one before with other words in one
// string. Such a one is not read again but for its words.
type shape struct {
	known bool
	event []byte // as it came, without the words
	cut   int    // where these stood
	line  int    // bytes between them and the end of their line
	arena int    // what the event took of the arena
	at    node   // that the words are at
	span  span   // where they are in the arena
}

// words is the last string of an event that may be another in the next one.
// Its place is told by the bytes from there to the end of what the tokens were
// given.
type words struct {
	at       node
	from, to int
	span     span
}

// varies has the nodes of such strings.
var varies = [nodeCount]bool{deltaContent: true, partialJSON: true, deltaArguments: true, deltaInput: true, aside: true}

// pass deals with the event that p begins with, if one look tells what it is,
// and returns its length; 0 if it has to be read. Nothing of it came before p.
func (o *Observer) pass(p []byte) int {
	if o.format == outline.Responses {
		return dull(p)
	}
	s := &o.w.shape
	if !s.known || !bytes.HasPrefix(p, s.event[:s.cut]) {
		return 0
	}
	rest, after := p[s.cut:], s.event[s.cut:]
	n := bytes.IndexByte(rest, '\n') - s.line
	if n <= 0 || !bytes.HasPrefix(rest[n:], after) || s.arena+n > arenaKept {
		return 0
	}
	if !o.w.reword(rest[:n]) {
		o.restart() // what is left of the words is nobody's
		return 0
	}
	if s.at != aside {
		now := o.w.spans[s.at]
		o.choices.reword(s.span, now)
		s.span = now
	}
	o.apply()
	return s.cut + n + len(after)
}

// learn keeps the shape of the event that was just read whole, and reports
// whether it could. tail is how many bytes came after its data.
func (o *Observer) learn(event []byte, tail int) bool {
	w := o.w
	found := w.words
	if len(event) == 0 || cap(w.arena) > arenaKept || found.at == nowhere || found.at != aside && !found.span.set {
		return false
	}
	if o.format == outline.Messages && !w.has(eventType) || string(o.lines.event()) == "error" {
		return false // its name counts, which is not kept
	}
	cut, end := len(event)-tail-found.from, len(event)-tail-found.to
	line := bytes.IndexByte(event[end:], '\n')
	if line < 0 || cut+len(event)-end > maxShape {
		return false
	}
	s := &w.shape
	s.event = append(append(s.event[:0], event[:cut]...), event[end:]...)
	s.known, s.cut, s.line, s.arena, s.at, s.span = true, cut, line, len(w.arena), found.at, found.span
	return true
}

// reword captures other words in the place of those of the event that was
// read. It returns false if they are not what a string may hold.
func (w *walker) reword(raw []byte) bool {
	w.arena = w.arena[:w.shape.arena]
	w.from, w.at = len(w.arena), w.shape.at
	if n, ascii := plainRun(raw); n == len(raw) && ascii {
		w.piece(raw)
		w.endString()
		return true
	}
	return w.tok.content(raw, w)
}

// reword puts now in the place of the span that was.
func (c *choices) reword(was, now span) {
	for i := range c.list {
		if c.list[i].content == was {
			c.list[i].content = now
		}
	}
	for i := range c.calls {
		call := &c.calls[i]
		if call.arguments == was {
			call.arguments = now
		}
		if call.input == was {
			call.input = now
		}
	}
}

var (
	eventField = []byte("event: ")
	firstType  = []byte(`data: {"type":"`)
	delta      = []byte(".delta")
	typeKey    = []byte(`ype"`) // of "type": its letters are rarer than quotes, and found sooner
	escapedKey = []byte(`\u`)
)

// dull returns the length of the event of the Responses format that p begins
// with if it is a delta, of which nothing is taken: each item comes whole in
// the end. It is one if it says so first and cannot say otherwise later.
func dull(p []byte) int {
	rest := p
	if bytes.HasPrefix(rest, eventField) {
		rest = rest[bytes.IndexByte(rest, '\n')+1:]
	}
	if !bytes.HasPrefix(rest, firstType) {
		return 0
	}
	rest = rest[len(firstType):]
	quote, end := bytes.IndexByte(rest, '"'), bytes.IndexByte(rest, '\n')
	if quote < 0 || quote > end || end+1 >= len(rest) || rest[end+1] != '\n' || !bytes.HasSuffix(rest[:quote], delta) {
		return 0
	}
	n := len(p) - len(rest) + end + 2
	if bytes.IndexByte(p[:n], '\r') >= 0 || bytes.Contains(rest[:end], typeKey) || bytes.Contains(rest[:end], escapedKey) || n > arenaBytes {
		return 0
	}
	return n
}
