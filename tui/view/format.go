package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// span is a duration in its largest unit: 4s, 12m, 3h, 9d.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + "d"
}

// ago is how long t is past, "" for no time.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(now.Sub(t))
}

// clock is the time of day of t in the zone of now, with its date when that is
// not today.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(now.Location())
	if y, m, d := t.Date(); y != now.Year() || m != now.Month() || d != now.Day() {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04:05")
}

// count is a number of tokens in at most five cells.
func count(n int64) string {
	switch {
	case n < 0:
		return "?"
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 10_000:
		return fmt.Sprintf("%d.%dk", n/1000, n%1000/100)
	case n < 1_000_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	case n < 10_000_000:
		return fmt.Sprintf("%d.%dM", n/1_000_000, n%1_000_000/100_000)
	case n < 10_000_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	}
	return strconv.FormatInt(n/1_000_000_000, 10) + "G"
}

// share is part of whole in percent, "" when the whole is not known.
func share(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	return strconv.Itoa(int(min(fraction(part, whole)*100+1e-9, 999))) + "%"
}

// fraction is part of whole, not below 0; in floating point, since a product
// of numbers from outside could overflow.
func fraction(part, whole int64) float64 { return float64(max(part, 0)) / float64(whole) }

// millis is a time in milliseconds with two digits that matter: 90ms, 0.41s,
// 9.9s, 3m.
func millis(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 100:
		return strconv.FormatInt(n, 10) + "ms"
	case n < 1000:
		return fmt.Sprintf("0.%02ds", n/10)
	case n < 100_000:
		return fmt.Sprintf("%d.%ds", n/1000, n%1000/100)
	}
	return span(time.Duration(n) * time.Millisecond)
}

// plural is a count with its noun.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// dash is text, or a dash for none.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// bar is a share as a bar of w cells.
func (t *Theme) bar(part, whole int64, w int) string {
	if whole <= 0 || w <= 0 {
		return ""
	}
	n := int(min(fraction(part, whole), 1) * float64(w))
	return strings.Repeat(t.glyph.full, n) + strings.Repeat(t.glyph.empty, w-n)
}

// bracketed is text in brackets behind something, "" for none.
func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
