package view

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"agentop/cmd/agentop/command/plain"
)

// ellipsis marks text that was cut.
const (
	ellipsis      = "…"
	asciiEllipsis = "~"
)

// longest is how many bytes of a text are shown at most, and a bound on the
// work that a hostile title makes; perCell is the bound for a narrow column.
const (
	longest = 2 << 10
	perCell = 64
)

// head is at most n bytes of s, with an ellipsis if that is not all.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// clean makes text from outside safe to draw on one line and equal in width on
// all terminals: what acts on a terminal becomes a visible stand-in, and of a
// joined emoji (which terminals draw in different widths) the first is kept.
// It gives the ASCII fallback where glyphs beyond ASCII cannot be trusted.
func (t *Theme) clean(s string) string {
	s = head(s, longest)
	if printable(s) {
		return s
	}
	s = plain.Text(s)
	if t.ASCII {
		return toASCII(s)
	}
	return steady(s)
}

// printable reports whether s is printable ASCII alone.
func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// toASCII replaces each character outside of ASCII by as many question marks
// as it has cells.
func toASCII(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		c, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		s = s[len(c):]
		switch {
		case c >= " " && c <= "~" && len(c) == 1:
			b.WriteString(c)
		case c == ellipsis:
			b.WriteString(asciiEllipsis)
		default:
			b.WriteString(strings.Repeat("?", w))
		}
	}
	return b.String()
}

// steady rewrites the clusters whose width terminals disagree about.
func steady(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for rest := s; len(rest) > 0; {
		c, w := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		rest = rest[len(c):]
		if len(c) > longestCluster {
			// A tower of combining marks smears over its neighbours.
			c, w = firstRune(c)
		}
		if unsteady(c) {
			c, w = firstRune(c)
		}
		switch {
		case w == 0: // a mark or joiner without anything to stand on
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteString(c)
		}
	}
	return b.String()
}

// longestCluster is the most bytes that one character may have: a letter with
// several marks has fewer.
const longestCluster = 32

// unsteady reports whether terminals draw a cluster in different widths: it
// has a joiner, a variation selector, a skin tone or a regional indicator.
func unsteady(cluster string) bool {
	if len(cluster) < 4 {
		return false
	}
	for i, r := range cluster {
		switch {
		case r == 0x200d || r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe01ef:
			return true
		case i > 0 && (r >= 0x1f3fb && r <= 0x1f3ff || r == 0x20e3):
			return true
		case r >= 0x1f1e6 && r <= 0x1f1ff:
			return true
		}
	}
	return false
}

// firstRune is the first rune of a cluster alone; of a flag, its letter.
func firstRune(cluster string) (string, int) {
	r, n := utf8.DecodeRuneInString(cluster)
	if r >= 0x1f1e6 && r <= 0x1f1ff {
		first := string('A' + r - 0x1f1e6)
		if second, _ := utf8.DecodeRuneInString(cluster[n:]); second >= 0x1f1e6 && second <= 0x1f1ff {
			return first + string('A'+second-0x1f1e6), 2
		}
		return first, 1
	}
	return cluster[:n], ansi.StringWidth(cluster[:n])
}

// width is the number of cells of text that clean has seen.
func width(s string) int {
	if printable(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// cut shortens clean text to w cells, the last of them an ellipsis, and never
// splits a character. What it gives may be one cell narrower than w.
func (t *Theme) cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if width(s) <= w {
		return s
	}
	var b strings.Builder
	used := 0
	for len(s) > 0 {
		c, n := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		if used+n > w-1 {
			break
		}
		used += n
		b.WriteString(c)
		s = s[len(c):]
	}
	b.WriteString(t.glyph.ellipsis)
	return b.String()
}

// wrap breaks clean text into lines of at most w cells, at spaces where that
// is possible.
func wrap(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	var lines []string
	for width(s) > w {
		used, end, space := 0, 0, -1
		for end < len(s) {
			c, n := ansi.FirstGraphemeCluster(s[end:], ansi.GraphemeWidth)
			if used+n > w {
				break
			}
			if c == " " {
				space = end
			}
			used += n
			end += len(c)
		}
		if end < len(s) && s[end] == ' ' {
			space = end
		}
		switch {
		case space > 0:
			lines = append(lines, strings.TrimRight(s[:space], " "))
			s = strings.TrimLeft(s[space:], " ")
		case end == 0: // not one character fits: a wide one on one cell
			return append(lines, "?")
		default:
			lines = append(lines, s[:end])
			s = s[end:]
		}
	}
	return append(lines, s)
}

// firstCell is the first character of clean text, and its length in bytes.
func firstCell(s string) (string, int) {
	c, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return c, len(c)
}
