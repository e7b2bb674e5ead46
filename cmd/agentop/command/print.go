package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"agentop/cmd/agentop/command/plain"
)

// table is a list: on a terminal aligned under a header, in a pipe one line a
// row with tabs between and no header, so that scripts need not skip one.
type table struct {
	kind   string // what the rows are, where several lists share a pipe
	header []string
	rows   [][]string
	widths []int // of the columns as printed last; nil before
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the rows and forgets them, so that a list that grows can be
// printed in parts: the header comes once, and columns never become narrower.
// On a terminal of known width the last column is cut with an ellipsis; a pipe
// has everything.
func (t *table) print(a *App) error {
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = plain.Text(cell)
		}
	}
	rows := t.rows
	t.rows = nil
	var b strings.Builder
	if !a.OutTerminal {
		for _, row := range rows {
			b.WriteString(strings.Join(row, "\t"))
			b.WriteByte('\n')
		}
		return a.write(b.String())
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
	}
	if t.widths == nil {
		t.widths = make([]int, len(t.header))
		rows = append([][]string{t.header}, rows...)
	}
	for _, row := range rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], uniseg.StringWidth(cell))
		}
	}
	for _, row := range rows {
		t.line(&b, row, a.Width)
	}
	return a.write(b.String())
}

// line writes one aligned row.
func (t *table) line(b *strings.Builder, cells []string, limit int) {
	used := 0
	for i, cell := range cells {
		if i == len(cells)-1 {
			if limit > 0 {
				cell = cut(cell, limit-used)
			}
			b.WriteString(cell)
			break
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", t.widths[i]+2-uniseg.StringWidth(cell)))
		used += t.widths[i] + 2
	}
	b.WriteByte('\n')
}

// cut shortens text to width cells, without splitting a character; a column
// narrower than a few cells is not worth cutting for.
func cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width || width < 8 {
		return text
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if used+g.Width() > width-1 {
			break
		}
		used += g.Width()
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// facts prints names with values: aligned on a terminal, tab-separated in a
// pipe. A fact without a value is left out.
func (a *App) facts(pairs ...string) error {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		name, value := pairs[i], plain.Text(pairs[i+1])
		switch {
		case value == "":
		case a.OutTerminal:
			fmt.Fprintf(&b, "%-*s  %s\n", width, name, value)
		default:
			fmt.Fprintf(&b, "%s\t%s\n", name, value)
		}
	}
	return a.write(b.String())
}

// json prints a value for programs, indented.
func (a *App) json(v any) error { return a.encode(v, "  ") }

// encode prints a value as JSON that does nothing to a terminal.
func (a *App) encode(v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return a.write(string(plain.JSON(b.Bytes())))
}

// list is v as a JSON list, also when it is nil.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// say prints one line of our own words; values from outside go through
// plain.Text before.
func (a *App) say(format string, args ...any) error {
	return a.write(fmt.Sprintf(format, args...) + "\n")
}

// warn prints one line to standard error; it stops nothing.
func (a *App) warn(text string) {
	_, _ = fmt.Fprintf(a.Err, "agentop: warning: %s\n", plain.Text(text))
}

func (a *App) write(text string) error {
	if _, err := io.WriteString(a.Out, text); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// since is the time from t to now in one unit, "" for no time.
func (a *App) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(a.Now().Sub(t))
}

// span is a duration in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// count is a number of tokens, short.
func count(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}

// millis is a time in milliseconds, "" for none.
func millis(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 10_000:
		return fmt.Sprintf("%dms", n)
	}
	return span(time.Duration(n) * time.Millisecond)
}

// plural is a count with its noun.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
