package reqlog

import (
	"time"
	"unicode/utf8"
)

// parser reads the pieces of JSON that lines consist of, at i.
type parser struct {
	b []byte
	i int
}

func (p *parser) eat(c byte) bool {
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// int reads a number without fraction or exponent that surely fits.
func (p *parser) int() (v int64, ok bool) {
	negative := p.eat('-')
	from := p.i
	for p.i < len(p.b) && p.b[p.i]-'0' < 10 {
		v = v*10 + int64(p.b[p.i]-'0')
		p.i++
	}
	n := p.i - from
	if n == 0 || n > 18 || n > 1 && p.b[from] == '0' {
		return 0, false
	}
	if negative {
		v = -v
	}
	return v, true
}

// quoted reads a string.
func (p *parser) quoted() ([]byte, bool) {
	if !p.eat('"') {
		return nil, false
	}
	from, ascii := p.i, true
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			s := p.b[from:p.i]
			p.i++
			return s, ascii || utf8.Valid(s)
		case c == '\\':
			return p.escaped(from)
		case c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// escaped reads on in a string that holds a backslash.
func (p *parser) escaped(from int) ([]byte, bool) {
	out := append([]byte(nil), p.b[from:p.i]...)
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch {
		case c == '"':
			return out, utf8.Valid(out)
		case c < ' ':
			return nil, false
		case c != '\\':
			out = append(out, c)
			continue
		}
		r, ok := p.escape()
		if !ok {
			return nil, false
		}
		out = utf8.AppendRune(out, r)
	}
	return nil, false
}

// escape reads what follows a backslash; halves of surrogate pairs are left to
// encoding/json.
func (p *parser) escape() (rune, bool) {
	if p.i >= len(p.b) {
		return 0, false
	}
	c := p.b[p.i]
	p.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		return p.unicode()
	}
	return 0, false
}

func (p *parser) unicode() (r rune, ok bool) {
	if p.i+4 > len(p.b) {
		return 0, false
	}
	for range 4 {
		c := p.b[p.i]
		p.i++
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, r < 0xd800 || r > 0xdfff
}

// time reads a time in exactly timeLayout.
func (p *parser) time() (int64, bool) {
	const n = len(timeLayout)
	if p.i+n+2 > len(p.b) || p.b[p.i] != '"' || p.b[p.i+n+1] != '"' {
		return 0, false
	}
	s := p.b[p.i+1 : p.i+1+n]
	p.i += n + 2
	for _, at := range [...]struct {
		i int
		c byte
	}{{4, '-'}, {7, '-'}, {10, 'T'}, {13, ':'}, {16, ':'}, {19, '.'}, {26, 'Z'}} {
		if s[at.i] != at.c {
			return 0, false
		}
	}
	var v [7]int
	for i, f := range [...][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}, {20, 26}} {
		for _, c := range s[f[0]:f[1]] {
			if c-'0' > 9 {
				return 0, false
			}
			v[i] = v[i]*10 + int(c-'0')
		}
	}
	if v[3] > 23 || v[4] > 59 || v[5] > 59 || v[0] < 1971 {
		return 0, false
	}
	t := time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], v[6]*1000, time.UTC)
	y, m, d := t.Date() // another date if there is no such day
	return t.UnixMicro(), y == v[0] && int(m) == v[1] && d == v[2]
}
