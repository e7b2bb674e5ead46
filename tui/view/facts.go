package view

// facts are names with values, as text bodies list them.
type facts struct {
	theme *Theme
	w     int
	lines []string
}

// labelWidth is the width of a fact's name, with the spaces around it.
const labelWidth = 14

func (s *Screen) facts(w int) *facts { return &facts{theme: s.Theme, w: w} }

// add appends a fact; its value is wrapped, never cut. One without a value is
// left out.
func (f *facts) add(name string, look style, value string) {
	if value == "" {
		return
	}
	label := labelWidth
	if f.w < 40 {
		label = 10
	}
	for i, part := range wrap(f.theme.clean(value), max(f.w-label-1, 4)) {
		l := f.theme.line(f.w).gap(1)
		if i == 0 {
			l.put(faint, f.theme.cut(name, label-2))
		}
		f.lines = append(f.lines, l.to(label).put(look, part).String())
	}
}

// text appends a paragraph over the whole width.
func (f *facts) text(look style, value string) {
	for _, part := range wrap(f.theme.clean(value), max(f.w-2, 4)) {
		f.lines = append(f.lines, f.theme.line(f.w).gap(1).put(look, part).String())
	}
}

// gap appends an empty line.
func (f *facts) gap() { f.lines = append(f.lines, blank(f.w)) }
