package stream

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// inside reads some of what is left of a string, and says how many bytes it
// took.
func (t *tokens) inside(p []byte, s sink) int {
	switch t.state {
	case inEscape:
		t.escape(p[0], s)
	case inHex:
		t.hexDigit(p[0], s)
	default:
		return t.stringBytes(p, s)
	}
	return 1
}

// content reads raw as all that a string value holds, and the value's end. It
// returns false, and may have passed on some of it, if no string holds that.
func (t *tokens) content(raw []byte, s sink) bool {
	t.state, t.isKey = inString, false
	for len(raw) > 0 && t.state >= inString && t.state <= inHex {
		raw = raw[t.inside(raw, s):]
	}
	if len(raw) > 0 || t.state != inString {
		return false
	}
	t.stringBytes(quote, s)
	return true
}

var quote = []byte{'"'}

// stringBytes reads the plain bytes of a string up to an escape, its end or
// the end of p, and says how many bytes it took.
func (t *tokens) stringBytes(p []byte, s sink) int {
	i, ascii := plainRun(p)
	if i > 0 {
		t.flushHigh(s)
		if ascii && t.partialN == 0 {
			t.text(p[:i], s)
		} else {
			t.plain(p[:i], s)
		}
	}
	if i == len(p) {
		return i
	}
	t.flushPartial(s)
	switch c := p[i]; c {
	case '"':
		t.to = len(p) - i
		t.flushHigh(s)
		t.endString(s)
	case '\\':
		t.state = inEscape
	default: // a control character must be escaped
		t.state = failed
	}
	return i + 1
}

// plainRun is how many bytes p begins with that stand for themselves in a
// string, and whether all of them are ASCII.
func plainRun(p []byte) (n int, ascii bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	all := uint64(0)
	for ; n+8 <= len(p); n += 8 {
		x := binary.LittleEndian.Uint64(p[n:])
		quote, slash := x^ones*'"', x^ones*'\\'
		// Each term sets the high bit of the first byte that it is about.
		special := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if special != 0 {
			before := special&-special - 1 // the bytes up to the special one, but for its high bit
			return n + bits.TrailingZeros64(special)/8, (all|x&before)&highs == 0
		}
		all |= x
	}
	for ; n < len(p) && p[n] >= ' ' && p[n] != '"' && p[n] != '\\'; n++ {
		all |= uint64(p[n])
	}
	return n, all&highs == 0
}

// plain passes on bytes that stand for themselves. Each byte that is not UTF-8
// becomes U+FFFD, as encoding/json reads it.
func (t *tokens) plain(p []byte, s sink) {
	if t.partialN == 0 && utf8.Valid(p) {
		t.text(p, s)
		return
	}
	for t.partialN > 0 && len(p) > 0 {
		t.partial[t.partialN] = p[0]
		t.partialN++
		p = p[1:]
		t.shiftPartial(s, false)
	}
	for len(p) > 0 {
		n := validPrefix(p)
		if n > 0 {
			t.text(p[:n], s)
			p = p[n:]
			continue
		}
		if !utf8.FullRune(p) {
			t.partialN = copy(t.partial[:], p)
			return
		}
		t.rune(utf8.RuneError, s)
		p = p[1:]
	}
}

// validPrefix is the length of the valid characters that p begins with.
func validPrefix(p []byte) int {
	n := 0
	for n < len(p) {
		r, size := utf8.DecodeRune(p[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		n += size
	}
	return n
}

// shiftPartial passes on what has become clear of the bytes that waited; at
// the end of a run of bytes, all of them.
func (t *tokens) shiftPartial(s sink, end bool) {
	for t.partialN > 0 && (end || utf8.FullRune(t.partial[:t.partialN])) {
		r, n := utf8.DecodeRune(t.partial[:t.partialN])
		t.partialN = copy(t.partial[:], t.partial[n:t.partialN])
		t.rune(r, s)
	}
}

func (t *tokens) flushPartial(s sink) { t.shiftPartial(s, true) }

func (t *tokens) text(p []byte, s sink) {
	if !t.isKey {
		s.piece(p)
		return
	}
	if t.keyLen <= keyBytes {
		if t.keyLen+len(p) > keyBytes {
			t.keyLen = keyBytes + 1
			return
		}
		t.keyLen += copy(t.keyBuf[t.keyLen:], p)
	}
}

func (t *tokens) endString(s sink) {
	if t.isKey {
		t.state = inColon
		if t.keyLen > keyBytes {
			s.key(nil)
			return
		}
		s.key(t.keyBuf[:t.keyLen])
		return
	}
	t.valueDone()
	s.endString()
}

func (t *tokens) escape(c byte, s sink) {
	t.state = inString
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		t.state, t.hexLeft, t.hex = inHex, 4, 0
		return
	default:
		t.state = failed
		return
	}
	t.flushHigh(s)
	t.scratch[0] = c
	t.text(t.scratch[:1], s)
}

func (t *tokens) hexDigit(c byte, s sink) {
	var v byte
	switch {
	case '0' <= c && c <= '9':
		v = c - '0'
	case 'a' <= c && c <= 'f':
		v = c - 'a' + 10
	case 'A' <= c && c <= 'F':
		v = c - 'A' + 10
	default:
		t.state = failed
		return
	}
	t.hex = t.hex<<4 | rune(v)
	if t.hexLeft--; t.hexLeft == 0 {
		t.state = inString
		t.codeUnit(t.hex, s)
	}
}

// codeUnit joins the two halves of a surrogate pair; a half without the other
// is U+FFFD, as encoding/json reads it.
func (t *tokens) codeUnit(u rune, s sink) {
	if t.high != 0 {
		if pair := utf16.DecodeRune(t.high, u); pair != utf8.RuneError {
			t.high = 0
			t.rune(pair, s)
			return
		}
		t.flushHigh(s)
	}
	if 0xD800 <= u && u < 0xDC00 {
		t.high = u
		return
	}
	t.rune(u, s) // a lone low half is written as U+FFFD by utf8.EncodeRune
}

func (t *tokens) flushHigh(s sink) {
	if t.high != 0 {
		t.high = 0
		t.rune(utf8.RuneError, s)
	}
}

func (t *tokens) rune(r rune, s sink) {
	n := utf8.EncodeRune(t.scratch[:], r)
	t.text(t.scratch[:n], s)
}
