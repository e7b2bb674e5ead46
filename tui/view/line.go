package view

import "strings"

// line is one row of the screen while it is written from left to right. What
// does not fit is cut with an ellipsis; fill brings it to its full width.
type line struct {
	theme *Theme
	b     strings.Builder
	used  int
	max   int
	over  style // laid over every span: the selected row's look
}

func (t *Theme) line(w int) *line { return &line{theme: t, max: w} }

// put writes text from outside or of our own, cleaned and cut to what is left.
func (l *line) put(s style, text string) *line { return l.cell(s, text, l.max-l.used, false) }

// gap writes n spaces.
func (l *line) gap(n int) *line {
	n = min(n, l.max-l.used)
	if n > 0 {
		l.span(normal, strings.Repeat(" ", n))
		l.used += n
	}
	return l
}

// to writes spaces up to column n.
func (l *line) to(n int) *line { return l.gap(n - l.used) }

// col writes text into a column of w cells, filled with spaces at its right.
func (l *line) col(s style, text string, w int) *line { return l.cell(s, text, w, true) }

// num is col with the text at the right.
func (l *line) num(s style, text string, w int) *line {
	text = l.theme.clean(text)
	if n := width(text); n < w {
		l.gap(w - n)
		w = n
	}
	return l.cell(s, text, w, true)
}

// cell writes cleaned text, cut to w cells, and fills the rest when wanted.
func (l *line) cell(s style, text string, w int, fill bool) *line {
	w = min(w, l.max-l.used)
	if w <= 0 {
		return l
	}
	text = l.theme.cut(l.theme.clean(head(text, (w+1)*perCell)), w)
	n := width(text)
	l.span(s, text)
	l.used += n
	if fill {
		l.gap(w - n)
	}
	return l
}

// span writes text that is known to fit.
func (l *line) span(s style, text string) {
	if text == "" {
		return
	}
	a := l.theme.styles[s]
	if l.over != normal {
		// One look over the whole row: a coloured span in a reversed row would
		// be a block of that colour.
		a = l.theme.styles[l.over]
	}
	l.b.WriteString(a.open)
	l.b.WriteString(text)
	l.b.WriteString(a.close)
}

// raw writes what another line has made, of which the width is known.
func (l *line) raw(text string, w int) *line {
	l.b.WriteString(text)
	l.used += w
	return l
}

// String is the line, filled to its full width.
func (l *line) String() string {
	l.to(l.max)
	return l.b.String()
}

// rule is a line across a pane with its title, and a note at its right.
func (t *Theme) rule(w int, title, note string, focused bool) string {
	l := t.line(w)
	s := strong
	if focused {
		s = accent
	}
	l.put(faint, t.glyph.rule+" ").put(s, title).gap(1)
	if note != "" {
		l.gap(1).put(faint, note).gap(1)
	}
	if left := w - l.used; left > 0 {
		l.put(faint, strings.Repeat(t.glyph.rule, left))
	}
	return l.String()
}

// blank is an empty line.
func blank(w int) string { return strings.Repeat(" ", max(w, 0)) }

// fillTo brings lines to exactly h of width w.
func fillTo(lines []string, w, h int) []string {
	if len(lines) > h {
		return lines[:max(h, 0)]
	}
	for len(lines) < h {
		lines = append(lines, blank(w))
	}
	return lines
}
