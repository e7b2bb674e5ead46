package filestore

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// maxDepth is how deep a JSON value may nest: in the file, and for a string
// to be written as JSON rather than quoted.
const maxDepth = 128

// scanner reads strict JSON from bytes in one pass. It holds no more than its
// position, so that a hostile file costs no memory.
type scanner struct {
	b []byte
	i int

	// lasting says that b never changes and may be held for long: strings are
	// parts of it then. It halves the memory and the time of a first reading.
	lasting bool
}

// string makes a string of a part of b.
func (s *scanner) string(part []byte) string {
	if s.lasting {
		return unsafe.String(unsafe.SliceData(part), len(part)) //nolint:gosec // b never changes, says lasting
	}
	return string(part)
}

func (s *scanner) fail(want string) error {
	if s.i >= len(s.b) {
		return fmt.Errorf("%w: it ends at byte %d, want %s", ErrCorrupt, s.i, want)
	}
	return fmt.Errorf("%w: byte %d is %q, want %s", ErrCorrupt, s.i, s.b[s.i], want)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return
		}
	}
}

// next skips space and tells whether c follows, taking it if so.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) want(c byte) error {
	if !s.next(c) {
		return s.fail(string(rune(c)))
	}
	return nil
}

// members calls each for every member of an object, with the member's name
// still quoted. each takes the value.
func (s *scanner) members(each func(name quoted) error) error {
	if err := s.want('{'); err != nil {
		return err
	}
	if s.next('}') {
		return nil
	}
	for {
		name, err := s.str()
		if err != nil {
			return err
		}
		if err := s.want(':'); err != nil {
			return err
		}
		if err := each(name); err != nil {
			return err
		}
		if s.next('}') {
			return nil
		}
		if err := s.want(','); err != nil {
			return err
		}
	}
}

// quoted is a JSON string without its quotes, valid UTF-8.
type quoted struct {
	raw     []byte
	escaped bool // raw holds a backslash
}

func (q quoted) is(name string) bool { return !q.escaped && string(q.raw) == name }

// str takes a string.
func (s *scanner) str() (quoted, error) {
	if err := s.want('"'); err != nil {
		return quoted{}, err
	}
	from, escaped := s.i, false
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			q := quoted{s.b[from:s.i], escaped}
			if !utf8.Valid(q.raw) {
				return quoted{}, fmt.Errorf("%w: string at byte %d is not UTF-8", ErrCorrupt, from)
			}
			s.i++
			return q, nil
		case c < ' ':
			return quoted{}, s.fail("no control character in a string")
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return quoted{}, err
			}
		default:
			s.i++
		}
	}
	return quoted{}, s.fail("the end of a string")
}

// escape takes one escape sequence. Half a surrogate pair stands for no text
// and is refused.
func (s *scanner) escape() error {
	r, n := unescapeOne(s.b[s.i:])
	if n == 0 {
		return s.fail("an escape sequence")
	}
	_ = r
	s.i += n
	return nil
}

// unescapeOne decodes the escape sequence that b begins with, n bytes long; 0
// if it is none.
func unescapeOne(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeUnicode(b)
	}
	return 0, 0
}

func unescapeUnicode(b []byte) (rune, int) {
	r := hex4(b)
	if r < 0 {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if r = utf16.DecodeRune(r, hex4(b[6:])); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

// hex4 decodes the four digits of a \u escape, or returns -1.
func hex4(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// text decodes a string of s.
func (s *scanner) text(q quoted) string {
	if !q.escaped {
		return s.string(q.raw)
	}
	out := make([]byte, 0, len(q.raw))
	for b := q.raw; len(b) > 0; {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return string(append(out, b...))
		}
		out = append(out, b[:i]...)
		r, n := unescapeOne(b[i:])
		out = utf8.AppendRune(out, r)
		b = b[i+n:]
	}
	return string(out)
}

// number takes a whole number from 0 to 2^62 without sign, point or exponent.
func (s *scanner) number() (int64, error) {
	s.space()
	from := s.i
	var n int64
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		if n > (1<<62-9)/10 {
			return 0, s.fail("a number below 2^62")
		}
		n = n*10 + int64(s.b[s.i]-'0')
		s.i++
	}
	if s.i == from || s.b[from] == '0' && s.i > from+1 {
		return 0, s.fail("a whole number")
	}
	return n, nil
}

// value takes any JSON value and returns its bytes, and whether there is
// space in it outside of strings.
func (s *scanner) value() (raw []byte, spaced bool, err error) {
	s.space()
	from := s.i
	err = s.skip(0, &spaced)
	return s.b[from:s.i], spaced, err
}

func (s *scanner) skip(depth int, spaced *bool) error {
	if depth > maxDepth {
		return s.fail("less nesting")
	}
	if s.i >= len(s.b) {
		return s.fail("a value")
	}
	switch c := s.b[s.i]; {
	case c == '{' || c == '[':
		return s.skipList(depth, spaced)
	case c == '"':
		_, err := s.str()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.skipNumber()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.b[s.i:], []byte(word)) {
			s.i += len(word)
			return nil
		}
	}
	return s.fail("a value")
}

// skipList takes an object or an array.
func (s *scanner) skipList(depth int, spaced *bool) error {
	object := s.b[s.i] == '{'
	end := s.b[s.i] + 2 // in ASCII, } is { + 2 and ] is [ + 2
	s.i++
	gap := func() {
		from := s.i
		s.space()
		*spaced = *spaced || s.i > from
	}
	gap()
	if s.next(end) {
		return nil
	}
	for {
		if object {
			if _, err := s.str(); err != nil {
				return err
			}
			gap()
			if err := s.want(':'); err != nil {
				return err
			}
			gap()
		}
		if err := s.skip(depth+1, spaced); err != nil {
			return err
		}
		gap()
		if s.next(end) {
			return nil
		}
		if err := s.want(','); err != nil {
			return err
		}
		gap()
	}
}

func (s *scanner) skipNumber() error {
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return s.fail("a digit")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return s.fail("a digit")
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if !s.digits() {
			return s.fail("a digit")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}
