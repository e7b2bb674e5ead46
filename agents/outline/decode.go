package outline

import (
	"encoding/binary"
	"math/bits"
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
		if len(raw)-read >= 8 && len(dst)-written >= 8 {
			x := binary.LittleEndian.Uint64(raw[read:])
			binary.LittleEndian.PutUint64(dst[written:], x)
			n := bits.TrailingZeros64((x|equal(x, '\\'))&highs) / 8 // that stand for themselves
			written += n
			read += n
			if n == 8 {
				continue
			}
		}
		c := raw[read]
		if c != '\\' && c < utf8.RuneSelf {
			dst[written] = c
			written++
			read++
			continue
		}
		var r rune
		var n int
		if c == '\\' {
			r, n = unescape(raw[read:])
		} else {
			r, n = utf8.DecodeRune(raw[read:])
		}
		if written+utf8.RuneLen(r) > len(dst) {
			break
		}
		written += utf8.EncodeRune(dst[written:], r)
		read += n
	}
	return written, read
}

// DecodeValid is a faster Decode for a raw that is known to be UTF-8. It may
// stop within a character.
func DecodeValid(dst, raw []byte) (written, read int) {
	for {
		w, r := decodeBlocks(dst[written:], raw[read:])
		written += w
		read += r
		// What stopped it is one end, or a long escape within 64 bytes.
		for some := min(read+64, len(raw)); read < some && written < len(dst); {
			c, n := raw[read], 1
			if c == '\\' {
				r := rune(0)
				if r, n = unescape(raw[read:]); written+utf8.RuneLen(r) > len(dst) {
					return written, read
				}
				written += utf8.EncodeRune(dst[written:], r)
			} else {
				dst[written] = c
				written++
			}
			read += n
		}
		if read == len(raw) || written == len(dst) {
			return written, read
		}
	}
}

// decodeBlocks decodes what it can of raw, 64 bytes at a time: up to an escape
// of the long form, the last 63 bytes, or the end of dst.
func decodeBlocks(dst, raw []byte) (written, read int) {
	n := min(len(dst), len(raw)) / 64
	if w, r, ok := decodeFast(dst, raw, n); ok {
		return w, r
	}
	return decodeRuns(dst, raw, n)
}

// decodeRuns is decodeBlocks for every machine; n is how many blocks both dst
// and raw have. It is apart because it clears its masks first.
func decodeRuns(dst, raw []byte, n int) (written, read int) {
	var m masks
	for n > 0 {
		blocks := min(n, words)
		slashes(&m, raw[read:], blocks)
		w, r, stopped := copyRuns(dst[written:], raw[read:], m.slash[:blocks])
		written += w
		read += r
		if stopped {
			break
		}
		n = min(len(dst)-written, len(raw)-read) / 64
	}
	return written, read
}

// wide is how much is copied at once where runs are short.
const wide = 32

// copyRuns copies what stands between escapes and decodes these, given where
// raw has backslashes. It stops at an escape of the long form.
func copyRuns(dst, raw []byte, slash []uint64) (written, read int, stopped bool) {
	var first uint64
	for w, s := range slash {
		var escaped uint64
		escaped, first = escapes(s, first)
		for ; escaped != 0; escaped &= escaped - 1 {
			at := w*64 + bits.TrailingZeros64(escaped)
			run := raw[read : at-1]
			// Where there is room, a run of any short length is one copy.
			if len(run) <= wide && read+wide <= len(raw) && written+wide <= len(dst) {
				*(*[wide]byte)(dst[written:]) = *(*[wide]byte)(raw[read:])
			} else {
				copy(dst[written:], run)
			}
			written += len(run)
			read = at - 1
			letter := plain[raw[at]]
			if letter == 0 {
				return written, read, true
			}
			dst[written] = letter
			written++
			read = at + 1
		}
	}
	end := len(slash)*64 - int(first) // a backslash at the end waits for its letter
	written += copy(dst[written:], raw[read:end])
	return written, end, false
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
