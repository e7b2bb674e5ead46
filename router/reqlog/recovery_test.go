package reqlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Whatever a crash leaves in a file, the whole lines are read, the others are
// counted, and writing goes on behind them.
func TestRecovery(t *testing.T) {
	lines := func(sessions ...string) (b []byte) {
		for _, s := range sessions {
			l := mainTurn(0, s, "glm", 0, 0)
			b = appendLine(b, &l)
		}
		return b
	}
	half := lines("half")[:60]
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	cases := map[string]struct {
		file    []byte
		want    []string
		damaged uint64
	}{
		"nothing":                    {nil, nil, 0},
		"whole":                      {lines("a", "b"), []string{"a", "b"}, 0},
		"last without newline":       {bytes.TrimSuffix(lines("a", "b"), []byte("\n")), []string{"a", "b"}, 0},
		"last cut":                   {join(lines("a"), half), []string{"a"}, 1},
		"half a line in the middle":  {join(lines("a"), half, lines("b")), []string{"a", "b"}, 1},
		"half a line, then newline":  {join(lines("a"), half, []byte("\n"), lines("b")), []string{"a", "b"}, 1},
		"zero bytes at the end":      {join(lines("a"), make([]byte, 5000)), []string{"a"}, 1},
		"zero bytes before a line":   {join(lines("a"), make([]byte, 5000), lines("b")), []string{"a", "b"}, 1},
		"more zeros than a line may": {join(lines("a"), make([]byte, maxLine*3), lines("b", "c")), []string{"a", "c"}, 1},
		"zero bytes alone":           {make([]byte, 5000), nil, 1},
		"a huge line":                {join(lines("a"), bytes.Repeat([]byte("x"), 1<<20), []byte("\n"), lines("b")), []string{"a", "b"}, 1},
		"a huge line without end":    {join(lines("a"), bytes.Repeat([]byte("x"), 1<<20)), []string{"a"}, 1},
		"empty lines":                {join([]byte("\n\n"), lines("a"), []byte("\n\n")), []string{"a"}, 0},
		"other JSON":                 {join([]byte("{}\nnull\n[]\n3\n"), lines("a")), []string{"a"}, 4},
		"a line of a newer kind":     {join([]byte(`{"t":"2026-03-10T12:00:00.000000Z","k":"later","x":1}`+"\n"), lines("a")), []string{"a"}, 0},
		"a damaged letter":           {join(bytes.Replace(lines("a"), []byte("agent"), []byte("ag\x00nt"), 1), lines("b")), []string{"b"}, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := logDir(t)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "requests-2026-03-10.jsonl"), c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			l := reload(t, dir, Options{})
			check := func(what string, l *Log, want []string) {
				t.Helper()
				var got []string
				for _, s := range []string{"a", "b", "c", "half", "new"} {
					if _, ok := l.Index().Last("claude-code", s); ok {
						got = append(got, s)
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			check("after the crash", l, c.want)
			if s := l.State(); s.Damaged != c.damaged {
				t.Errorf("%d damaged lines, want %d", s.Damaged, c.damaged)
			}
			mustAppend(t, l, mainTurn(1, "new", "glm", 0, 0))
			l.Close()
			check("and the next", reload(t, dir, Options{}), append(c.want, "new"))
		})
	}
}

// A file cut at any byte keeps every whole line.
func TestRecoveryAtEveryByte(t *testing.T) {
	var b []byte
	var ends []int
	for i := range 3 {
		l := mainTurn(0, fmt.Sprint("s", i), "glm", 0, 0)
		b = appendLine(b, &l)
		ends = append(ends, len(b)-1)
	}
	for n := range len(b) + 1 {
		x := NewIndex(Limits{}, nil)
		d := loader{index: x, names: map[string]string{}}
		if err := backward(t.Context(), bytes.NewReader(b[:n]), int64(n), d.line); err != nil {
			t.Fatal(err)
		}
		for i, end := range ends {
			if _, ok := x.Last("claude-code", fmt.Sprint("s", i)); ok != (n >= end) {
				t.Fatalf("cut at %d: line %d known: %v", n, i, ok)
			}
		}
	}
}
