package view

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var sizes = []struct{ w, h int }{{40, 12}, {80, 24}, {120, 40}, {200, 60}}

// golden compares text with a file, line by line without trailing spaces.
func golden(t *testing.T, name, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update rewrites it\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestScreensLookAsTheyDid(t *testing.T) {
	for name, make := range screens {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size.w, size.h), func(t *testing.T) {
				text := make().Render(size.w, size.h, noon)
				checkScreen(t, text, size.w, size.h)
				golden(t, fmt.Sprintf("%s-%dx%d.txt", name, size.w, size.h), ansi.Strip(text))
			})
		}
	}
}

// One golden keeps its colours: only the terminal's own sixteen.
func TestColours(t *testing.T) {
	text := sample().Render(80, 24, noon)
	golden(t, "list-80x24.ansi", text)
	found := map[string]bool{}
	for _, code := range regexp.MustCompile(`\x1b\[([0-9;]*)m`).FindAllStringSubmatch(text, -1) {
		for _, n := range strings.Split(code[1], ";") {
			if !strings.Contains(" 0 1 2 7 31 32 33 36 ", " "+n+" ") {
				t.Errorf("sequence %q: %s is not one of bold, faint, reverse and the four colours", code[0], n)
			}
			found[n] = true
		}
	}
	for _, n := range []string{"0", "1", "2", "7", "32", "33", "36"} {
		if !found[n] {
			t.Errorf("no sequence has %s", n)
		}
	}
}

// With NO_COLOR no sequence sets a colour, and every line reads the same.
func TestNoColour(t *testing.T) {
	for name, make := range screens {
		coloured := make()
		bare := make()
		bare.Theme = NewTheme(false, bare.Theme.ASCII)
		text := bare.Render(120, 40, noon)
		if found := regexp.MustCompile(`\x1b\[[0-9;]*[34][0-9][;m]`).FindString(text); found != "" {
			t.Errorf("%s: found %q", name, found)
		}
		if ansi.Strip(text) != ansi.Strip(coloured.Render(120, 40, noon)) {
			t.Errorf("%s: without colours it reads otherwise", name)
		}
	}
}

func TestASCIIHasNothingElse(t *testing.T) {
	for name, make := range screens {
		s := make()
		s.Theme = NewTheme(true, true)
		for _, r := range s.Render(120, 40, noon) {
			if r != '\n' && r != 0x1b && (r < ' ' || r > '~') {
				t.Errorf("%s: holds %q", name, r)
				break
			}
		}
	}
}

// controls are all bytes that act on a terminal, once our colours are gone.
var controls = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]|\x{80}|[\x{81}-\x{9f}]`)

// Terminals disagree about the vowel signs of some scripts, and there is no
// form that all draw alike.
var devanagari = regexp.MustCompile(`\p{Devanagari}`)

var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// checkScreen holds what doc.go promises of every text.
func checkScreen(t *testing.T, text string, w, h int) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if len(lines) != h {
		t.Errorf("%dx%d: %d lines", w, h, len(lines))
	}
	if !utf8.ValidString(text) {
		t.Errorf("%dx%d: not UTF-8", w, h)
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n != w {
			t.Errorf("%dx%d: line %d has %d cells: %q", w, h, i, n, l)
			return
		}
		bare := colours.ReplaceAllString(l, "")
		if n := ansi.StringWidthWc(bare); n != w && !devanagari.MatchString(bare) {
			t.Errorf("%dx%d: line %d has %d cells for a terminal that counts runes: %q", w, h, i, n, bare)
			return
		}
		if found := controls.FindString(bare); found != "" {
			t.Errorf("%dx%d: line %d holds %q: %q", w, h, i, found, l)
			return
		}
	}
}

func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	for name, make := range screens {
		t.Run(name, func(t *testing.T) {
			s := make()
			for w := 20; w <= 250; w++ {
				heights := []int{[]int{12, 24, 41}[w%3]}
				if os.Getenv("AGENTOP_TEST_FULL") != "" {
					heights = []int{6, 9, 12, 17, 24, 31, 32, 40, 60}
				}
				for _, h := range heights {
					checkScreen(t, s.Render(w, h, noon), w, h)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

func TestKF_T1_TinyScreensShowOneLine(t *testing.T) {
	for name, make := range screens {
		for _, size := range []struct{ w, h int }{{0, 0}, {1, 1}, {2, 80}, {80, 2}, {1, 60}, {200, 1}, {19, 24}, {80, 5}, {-1, 5}, {5, -1}, {20, 6}} {
			s := make()
			s.Scroll, s.Offset, s.Log.Offset = 1000, 1000, 1000
			text := s.Render(size.w, size.h, noon)
			_, _, _ = s.ListHeight(size.w, size.h, noon), s.BodyHeight(size.w, size.h, noon), s.ScrollEnd(size.w, size.h, noon)
			if size.w <= 0 || size.h <= 0 {
				if text != "" {
					t.Errorf("%s at %v: %q", name, size, text)
				}
				continue
			}
			checkScreen(t, text, size.w, size.h)
			if size.w < minWidth || size.h < minHeight {
				if got := strings.TrimSpace(ansi.Strip(text)); strings.Contains(got, "\n") || len(got) > 16 {
					t.Errorf("%s at %v: more than a short line: %q", name, size, got)
				}
			}
		}
	}
}

func TestKF_T2_CellsAreCounted(t *testing.T) {
	theme := NewTheme(true, false)
	for _, text := range nasty {
		for w := 1; w <= 60; w++ {
			l := theme.line(w+8).col(normal, text, w).put(normal, "|after").String()
			if got := ansi.StringWidth(l); got != w+8 {
				t.Errorf("%.40q in %d cells: line has %d", text, w, got)
			}
			if i := strings.Index(ansi.Strip(l), "|"); i < 0 || ansi.StringWidth(ansi.Strip(l)[:i]) != w {
				t.Errorf("%.40q in %d cells: the next column is not at %d: %q", text, w, w, l)
			}
		}
	}
	for _, c := range []struct {
		text string
		w    int
		want string
	}{
		{"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"日本語", 6, "日本語"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"👨‍👩‍👧 x", 4, "👨 x"}, {"🇩🇪!", 3, "DE!"}, {"❤\ufe0f", 2, "❤"}, {"a\u200bb", 9, "a\ufffdb"}, {"", 3, ""}, {"abc", 0, ""}, {"界", 1, "…"},
	} {
		if got := theme.cut(theme.clean(c.text), c.w); got != c.want {
			t.Errorf("%q in %d cells: got %q, want %q", c.text, c.w, got, c.want)
		}
	}
}

func TestKF_X7_OutsideTextHasNoControl(t *testing.T) {
	for name := range screens {
		for body := BodyList; body <= BodyCommand; body++ {
			s := hostile()
			s.Body, s.Title, s.Shown = body, nasty[0], nasty
			s.Switch = &SwitchPane{Agents: nasty[:4], Before: nasty[2], Filter: nasty[3], Stay: map[string]int{nasty[0]: 2, nasty[4]: 1},
				Items: []Choice{{Name: nasty[0], Check: Check{State: CheckFailed, Error: nasty[1]}}, {Name: nasty[5], Note: nasty[6]}}}
			s.Move = &MovePane{Session: s.Rows[0], Items: nasty, Armed: true, Price: &MovePrice{To: nasty[0], MissingModel: nasty[1], Warnings: nasty}}
			s.Remove = &RemovePane{Server: s.Status.Servers[0].Name}
			checkScreen(t, s.Render(100, 40, noon), 100, 40)
		}
		_ = name
	}
	// A visible stand-in is left of what was replaced.
	s := sample()
	s.Rows[0].Title = "a\x1b]52;c;x\x07b"
	if text := ansi.Strip(s.Render(120, 40, noon)); !strings.Contains(text, "a␛]52;c;x␇b") {
		t.Errorf("no stand-in:\n%s", text)
	}
}

func TestWrapLosesNothing(t *testing.T) {
	theme := NewTheme(true, false)
	for _, text := range nasty {
		text = theme.clean(text)
		for w := 2; w < 50; w += 3 {
			lines := wrap(text, w)
			for _, l := range lines {
				if width(l) > w {
					t.Errorf("%.40q at %d: %q", text, w, l)
				}
			}
			got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(text, " ", "")
			if got != want {
				t.Errorf("%.40q at %d: %q is lost", text, w, got)
			}
		}
	}
}

func TestWindowKeepsTheCursorInSight(t *testing.T) {
	for n := range 12 {
		for h := range 8 {
			for cursor := range max(n, 1) {
				for offset := -3; offset < 15; offset++ {
					first := Window(offset, cursor, n, h)
					if first < 0 || h > 0 && n > h && (cursor < first || cursor >= first+h || first > n-h) {
						t.Errorf("Window(%d, %d, %d, %d) = %d", offset, cursor, n, h, first)
					}
				}
			}
		}
	}
}

// A render changes nothing, so that the same data look the same again.
func TestRenderIsPure(t *testing.T) {
	for name, make := range screens {
		s := make()
		first := s.Render(120, 40, noon)
		_ = s.Render(33, 9, noon)
		if second := s.Render(120, 40, noon); first != second {
			t.Errorf("%s: a second look differs", name)
		}
		if other := make().Render(120, 40, noon); first != other {
			t.Errorf("%s: a fresh screen differs", name)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	s := sample()
	for len(s.Rows) < 500 {
		s.Rows = append(s.Rows, sampleRows()...)
	}
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dx%d", size.w, size.h), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !bytes.Contains([]byte(s.Render(size.w, size.h, noon)), []byte("agentop")) {
					b.Fatal("nothing drawn")
				}
			}
		})
	}
}
