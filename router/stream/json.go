package stream

import "unicode/utf8"

// sink receives what a tokens finds. Slices are valid during the call only.
type sink interface {
	open(object bool)
	close()
	key(name []byte)  // nil when longer than keyBytes
	piece(p []byte)   // some decoded bytes of a string value
	endString()       // the string value is whole
	literal(p []byte) // a number, true, false or null; nil when longer than literalBytes
}

const (
	keyBytes     = 48    // longer than any key that is looked for
	literalBytes = 32    // longer than any number that is looked for
	maxDepth     = 10000 // as encoding/json
)

type state uint8

// The order counts: values and punctuation first, then strings, then numbers.
const (
	inValue state = iota
	inFirstElement
	inFirstKey
	inKey
	inColon
	afterValue
	atEnd // one whole value was read
	inLiteral
	failed
	inString
	inEscape
	inHex
	inMinus // "-" so far
	inZero  // "0": a number may end here, and in inInt, inFraction, inExponent
	inInt
	inDot
	inFraction
	inE
	inESign
	inExponent
)

// tokens splits one JSON value that comes in pieces. It accepts what
// encoding/json accepts, keeps nothing of what has passed but one key, one
// number and a bit for each open container, and stays failed after an error.
type tokens struct {
	state    state
	isKey    bool     // the open string is a key
	stack    []uint64 // a bit for each open container: 1 is an object
	depth    int
	left     int // bytes of what is being read from the current one on
	from, to int // bytes that were left where the last string value began, and ended
	keyBuf   [keyBytes]byte
	keyLen   int // over keyBytes: too long to keep
	lit      [literalBytes]byte
	litLen   int
	rest     string // what must follow of true, false or null
	hexLeft  int
	hex      rune
	high     rune // a high surrogate that waits for its other half
	scratch  [4]byte
	partial  [utf8.UTFMax]byte // a character of which only the first bytes came
	partialN int
}

func (t *tokens) reset() {
	*t = tokens{stack: t.stack[:0]}
}

// write reads p, which may begin and end anywhere.
func (t *tokens) write(p []byte, s sink) {
	for len(p) > 0 && t.state != failed {
		t.left = len(p)
		switch {
		case t.state >= inString && t.state <= inHex:
			p = p[t.inside(p, s):]
		case t.state >= inMinus:
			p = p[t.number(p, s):]
		case t.state == inLiteral:
			t.word(p[0], s)
			p = p[1:]
		default:
			if c := p[0]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				t.structure(c, s)
			}
			p = p[1:]
		}
	}
}

// whole says whether exactly one JSON value was read. A number at the top
// level ends here.
func (t *tokens) whole(s sink) bool {
	if t.depth == 0 && numberMayEnd(t.state) {
		t.endLiteral(s)
	}
	return t.state == atEnd
}

func (t *tokens) structure(c byte, s sink) {
	switch t.state {
	case inFirstElement:
		if c == ']' {
			t.pop(s)
			return
		}
		t.value(c, s)
	case inValue:
		t.value(c, s)
	case inFirstKey:
		if c == '}' {
			t.pop(s)
			return
		}
		t.startKey(c)
	case inKey:
		t.startKey(c)
	case inColon:
		t.expect(c == ':', inValue)
	case afterValue:
		t.after(c, s)
	default: // atEnd: nothing may follow
		t.state = failed
	}
}

func (t *tokens) expect(ok bool, next state) {
	t.state = next
	if !ok {
		t.state = failed
	}
}

func (t *tokens) startKey(c byte) {
	t.expect(c == '"', inString)
	t.isKey, t.keyLen = true, 0
}

func (t *tokens) after(c byte, s sink) {
	object := t.inObject()
	switch {
	case c == ',' && object:
		t.state = inKey
	case c == ',':
		t.state = inValue
	case c == '}' && object, c == ']' && !object:
		t.pop(s)
	default:
		t.state = failed
	}
}

func (t *tokens) value(c byte, s sink) {
	switch {
	case c == '{':
		t.push(true, inFirstKey, s)
	case c == '[':
		t.push(false, inFirstElement, s)
	case c == '"':
		t.state, t.isKey, t.from = inString, false, t.left-1
	case c == 't':
		t.startWord("true")
	case c == 'f':
		t.startWord("false")
	case c == 'n':
		t.startWord("null")
	default:
		t.litLen = 0
		t.keep(c)
		switch {
		case c == '-':
			t.state = inMinus
		case c == '0':
			t.state = inZero
		case '1' <= c && c <= '9':
			t.state = inInt
		default:
			t.state = failed
		}
	}
}

func (t *tokens) inObject() bool {
	i := t.depth - 1
	return t.stack[i/64]>>(i%64)&1 == 1
}

func (t *tokens) push(object bool, next state, s sink) {
	if t.depth == maxDepth {
		t.state = failed
		return
	}
	word, bit := t.depth/64, uint64(1)<<(t.depth%64)
	if word == len(t.stack) {
		t.stack = append(t.stack, 0)
	}
	t.stack[word] &^= bit
	if object {
		t.stack[word] |= bit
	}
	t.depth++
	t.state = next
	s.open(object)
}

func (t *tokens) pop(s sink) {
	t.depth--
	t.valueDone()
	s.close()
}

func (t *tokens) valueDone() {
	t.state = afterValue
	if t.depth == 0 {
		t.state = atEnd
	}
}

func (t *tokens) startWord(w string) {
	t.state, t.rest, t.litLen = inLiteral, w[1:], 0
	t.keep(w[0])
}

func (t *tokens) keep(c byte) {
	if t.litLen < literalBytes {
		t.lit[t.litLen] = c
	}
	t.litLen++
}

func (t *tokens) word(c byte, s sink) {
	if c != t.rest[0] {
		t.state = failed
		return
	}
	t.keep(c)
	if t.rest = t.rest[1:]; t.rest == "" {
		t.endLiteral(s)
	}
}

func (t *tokens) endLiteral(s sink) {
	t.valueDone()
	if t.litLen > literalBytes {
		s.literal(nil)
		return
	}
	s.literal(t.lit[:t.litLen])
}

// number reads digits until the number ends and says how many bytes it took:
// the byte after a number belongs to whatever follows.
func (t *tokens) number(p []byte, s sink) int {
	for i, c := range p {
		next := numberNext(t.state, c)
		if next == failed && numberMayEnd(t.state) {
			t.endLiteral(s)
			return i
		}
		t.state = next
		if next == failed {
			return i
		}
		t.keep(c)
	}
	return len(p)
}

func numberMayEnd(st state) bool {
	return st == inZero || st == inInt || st == inFraction || st == inExponent
}

func numberNext(st state, c byte) state {
	digit := '0' <= c && c <= '9'
	switch {
	case st == inMinus && c == '0':
		return inZero
	case st == inMinus && digit, st == inInt && digit:
		return inInt
	case (st == inZero || st == inInt) && c == '.':
		return inDot
	case (st == inDot || st == inFraction) && digit:
		return inFraction
	case (st == inZero || st == inInt || st == inFraction) && (c == 'e' || c == 'E'):
		return inE
	case st == inE && (c == '+' || c == '-'):
		return inESign
	case (st == inE || st == inESign || st == inExponent) && digit:
		return inExponent
	}
	return failed
}
