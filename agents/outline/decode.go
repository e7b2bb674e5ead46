package outline

import (
	"unicode/utf16"
	"unicode/utf8"
)

// plain maps the letter of a two-byte escape to the byte it stands for.
var plain = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escapeLen is the length of the escape that b begins with, 0 if JSON knows
// none such.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if plain[b[1]] != 0 {
		return 2
	}
	if b[1] == 'u' && hex4(b[2:]) >= 0 {
		return 6
	}
	return 0
}

// hex4 is the value of the four hex digits that b begins with, -1 if it does not.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Decode writes into dst the text that raw, the bytes between the quotes of a
// valid JSON string, stands for, as encoding/json would decode it: invalid
// UTF-8 and lone surrogates become U+FFFD. It stops where dst is full, never
// within a character or an escape, and returns the bytes written and read; dst
// of four bytes or more always gets something.
func Decode(dst, raw []byte) (written, read int) {
	for read < len(raw) && written < len(dst) {
		c := raw[read]
		switch {
		case c == '\\':
			r, n := unescape(raw[read:])
			if written+utf8.RuneLen(r) > len(dst) {
				return written, read
			}
			written += utf8.EncodeRune(dst[written:], r)
			read += n
		case c < utf8.RuneSelf:
			dst[written] = c
			written++
			read++
		default:
			r, n := utf8.DecodeRune(raw[read:])
			if written+utf8.RuneLen(r) > len(dst) {
				return written, read
			}
			written += utf8.EncodeRune(dst[written:], r)
			read += n
		}
	}
	return written, read
}

// unescape decodes the escape that b begins with and returns its length.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	if b[1] != 'u' {
		return rune(plain[b[1]]), 2
	}
	r = hex4(b[2:])
	if r < 0 {
		return utf8.RuneError, 2
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(b[8:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}
