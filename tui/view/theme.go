package view

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Theme is how things look. It is made once and never changes.
type Theme struct {
	// ASCII says that nothing beyond ASCII is drawn.
	ASCII  bool
	glyph  glyphs
	styles [styleCount]attributes
}

// style names a look by what it means.
type style int

// The looks. None is told apart from another by its colour alone: each state
// has a word or a mark beside it.
const (
	normal   style = iota
	strong         // what the eye should find first
	faint          // labels, what is usual, what is over
	accent         // keys that can be pressed, the pane with the focus
	good           // healthy, streaming
	caution        // look at this when there is time
	bad            // broken
	selected       // the row that keys act on
	styleCount
)

// attributes are the sequences around a styled text, empty for plain.
type attributes struct{ open, close string }

// glyphs are the characters that are not letters.
type glyphs struct {
	rule, bar, tee, cross string // lines between panes
	ok, down, failing, unknown,
	stream, cursor, arrow, dot, ellipsis, full, empty, edit string
}

var unicodeGlyphs = glyphs{
	rule: "─", bar: "│", tee: "┬", cross: "┴",
	ok: "●", down: "✕", failing: "▲", unknown: "○",
	stream: "●", cursor: "▸", arrow: "→", dot: "·", ellipsis: ellipsis, full: "█", empty: "░", edit: "▏",
}

var asciiGlyphs = glyphs{
	rule: "-", bar: "|", tee: "+", cross: "+",
	ok: "*", down: "x", failing: "!", unknown: "?",
	stream: "*", cursor: ">", arrow: "->", dot: "-", ellipsis: asciiEllipsis, full: "#", empty: ".", edit: "_",
}

// NewTheme makes a theme. Without colour only bold, faint and reverse are
// used; with ascii no glyph beyond ASCII, in names from outside neither.
//
// The colours are the six that every palette keeps readable on its own
// background, light or dark, so the terminal need not be asked which it has:
// neither black and white, one of which is the background, nor the bright ones.
func NewTheme(colour, ascii bool) *Theme {
	t := &Theme{ASCII: ascii, glyph: unicodeGlyphs}
	if ascii {
		t.glyph = asciiGlyphs
	}
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.ANSI) // settled, as the ground is, so that nothing asks for it
	r.SetHasDarkBackground(true)
	plain := r.NewStyle()
	looks := [styleCount]lipgloss.Style{
		normal: plain, strong: plain.Bold(true), faint: plain.Faint(true),
		accent: plain, good: plain, caution: plain, bad: plain.Bold(true),
		selected: plain.Reverse(true),
	}
	if colour {
		for s, code := range map[style]string{accent: "6", good: "2", caution: "3", bad: "1"} {
			looks[s] = looks[s].Foreground(lipgloss.Color(code))
		}
	}
	for i, look := range looks {
		t.styles[i].open, t.styles[i].close, _ = strings.Cut(look.Render("x"), "x")
	}
	return t
}

// healthMark is the mark and look of a server's health.
func (t *Theme) healthMark(state string) (string, style) {
	switch state {
	case "ok":
		return t.glyph.ok, good
	case "down":
		return t.glyph.down, bad
	case "failing":
		return t.glyph.failing, caution
	}
	return t.glyph.unknown, faint
}
