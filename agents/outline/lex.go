package outline

import (
	"errors"
	"math/bits"
)

// maxDepth is how deep encoding/json lets values nest.
const maxDepth = 10000

var (
	errNotObject = errors.New("body is not one JSON object")
	errSyntax    = errors.New("body is not valid JSON")
	errDepth     = errors.New("body nests deeper than 10000 levels")
)

// scanner walks one JSON text, each byte once. After a failure i stands at
// the end, so that every loop over members or elements ends by itself.
type scanner struct {
	b     []byte
	i     int // next byte to read
	depth int
	fresh bool // an object or array was opened and nothing in it read
	err   error

	quotes quotes

	sum  Sum
	word [32]byte // a decoded key or keyword

	marking bool  // strings go into marked too
	marked  tally // what a tool call's arguments hold

	o *Outline
	conversation

	past      *past // that the body goes on from
	pastMarks []*mark
	newMarks  []*mark
	nextMark  int // where the next mark may be
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.i = len(s.b)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c > ' ' || !isSpace(c) {
			return c
		}
		s.i++
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// open enters the object or array whose bracket is the next byte.
func (s *scanner) open() {
	s.i++
	s.depth++
	s.fresh = true
	if s.depth > maxDepth {
		s.fail(errDepth)
	}
}

// more says whether another member or element follows, and leaves the object
// or array when none does.
func (s *scanner) more(closing byte) bool {
	c := s.peek()
	if s.err != nil {
		return false
	}
	if c == closing {
		s.i++
		s.depth--
		s.fresh = false
		return false
	}
	if s.fresh {
		s.fresh = false
		return true
	}
	if c != ',' {
		s.fail(errSyntax)
		return false
	}
	s.i++
	return true
}

// key reads a member's name and its colon. A name with escapes is decoded; one
// that is too long to be known comes as it stands.
func (s *scanner) key() []byte {
	if s.peek() != '"' {
		s.fail(errSyntax)
		return nil
	}
	raw, escaped := s.str()
	if s.peek() != ':' {
		s.fail(errSyntax)
		return nil
	}
	s.i++
	return s.keyword(raw, escaped)
}

// keyword is a short string decoded.
func (s *scanner) keyword(raw Span, escaped bool) []byte {
	b := s.b[raw.From:raw.To]
	if !escaped {
		return b
	}
	n, read := Decode(s.word[:], b)
	if read < len(b) {
		return b
	}
	return s.word[:n]
}

// scalar steps over a number or a literal.
func (s *scanner) scalar() {
	switch s.peek() {
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.number()
	}
}

func (s *scanner) literal(word string) {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		s.fail(errSyntax)
		return
	}
	s.i += len(word)
}

func (s *scanner) number() {
	b, i := s.b, s.i
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = s.digits(i); i < 0 {
			return
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = s.digits(i + 1); i < 0 {
			return
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i = s.digits(i); i < 0 {
			return
		}
	}
	s.i = i
}

// digits returns the index after one or more digits, -1 (and a failed scan)
// where there is none.
func (s *scanner) digits(i int) int {
	from := i
	for i < len(s.b) && s.b[i]-'0' <= 9 {
		i++
	}
	if i == from {
		s.fail(errSyntax)
		return -1
	}
	return i
}

// skip steps over a value of any kind.
func (s *scanner) skip() {
	switch s.peek() {
	case '"':
		s.str()
	case '{':
		for s.open(); s.more('}'); {
			s.key()
			s.skip()
		}
	case '[':
		for s.open(); s.more(']'); {
			s.skip()
		}
	default:
		s.scalar()
	}
}

// jump goes on at i, which stands behind a whole value.
func (s *scanner) jump(i int) {
	s.i = i
	if i > s.quotes.to {
		s.quotes.restart(i)
	}
}

// str steps over the string whose opening quote is the next byte. It returns
// where its content stands, and whether that holds an escape.
func (s *scanner) str() (raw Span, escaped bool) {
	from := s.i + 1
	var slash uint64
	for i := from; ; i = i&^63 + 64 {
		for i >= s.quotes.to {
			if !s.quotes.advance(s.b) {
				s.fail(errSyntax)
				return Span{}, false
			}
		}
		w := uint(i) / 64 % words
		from64 := ^uint64(0) << (uint(i) % 64)
		quote := s.quotes.quote[w] & from64
		if quote == 0 {
			slash |= s.quotes.slash[w] & from64
			continue
		}
		to := i&^63 + bits.TrailingZeros64(quote)
		slash |= s.quotes.slash[w] & from64 & (quote - 1) &^ quote
		s.i = to + 1
		return Span{from, to}, slash != 0
	}
}
