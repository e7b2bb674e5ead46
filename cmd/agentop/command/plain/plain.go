// Package plain makes untrusted text safe to print: titles, model names,
// paths, server names and errors come from outside and may hold sequences
// that rewrite the screen, fill the clipboard or make the terminal type. It is
// pure and knows nothing of where text comes from or goes to.
package plain

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// replacement stands for what has no picture of its own.
const replacement = utf8.RuneError

// Text gives s on one line with every character that acts on a terminal
// instead of showing replaced by a visible stand-in of one cell: control
// characters by their Unicode pictures (ESC is ␛), bytes that are not UTF-8,
// C1 controls, line separators and bidirectional overrides by U+FFFD. Nothing
// is dropped, and text that is safe comes back as it is.
func Text(s string) string {
	if safe(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for _, r := range s { // a bad byte ranges as U+FFFD
		b.WriteRune(standIn(r))
	}
	return b.String()
}

// Lines is Text for each line of s, for texts that have several.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	return strings.Join(lines, "\n")
}

// JSON gives encoded JSON with every character that Text would replace written
// as an escape: the value stays the same, and nothing acts on a terminal. It
// is for what encoding/json leaves as it is, such as C1 controls.
func JSON(encoded []byte) []byte {
	var out []byte
	for i, r := range string(encoded) {
		if r == '\n' || standIn(r) == r {
			if out != nil {
				out = utf8.AppendRune(out, r)
			}
			continue
		}
		if out == nil {
			out = append(make([]byte, 0, len(encoded)+16), encoded[:i]...)
		}
		out = fmt.Appendf(out, `\u%04x`, r) // none is beyond U+FFFF
	}
	if out == nil {
		return encoded
	}
	return out
}

func safe(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return allSafe(s[i:])
		}
	}
	return true
}

func allSafe(s string) bool {
	for i, r := range s {
		if standIn(r) != r {
			return false
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
	}
	return true
}

func standIn(r rune) rune {
	switch {
	case r < 0x20:
		return '\u2400' + r
	case r == 0x7f:
		return '\u2421'
	case r >= 0x80 && r < 0xa0, // C1: U+009B begins a sequence as ESC [ does
		r == '\u2028', r == '\u2029', // line and paragraph separator
		r >= '\u202a' && r <= '\u202e', // embeddings and overrides turn the rest of the line round
		r >= '\u2066' && r <= '\u2069', // isolates
		r >= '\ufff9' && r <= '\ufffb', // interlinear annotation
		r == '\ufeff':                  // byte order mark
		return replacement
	}
	return r
}
