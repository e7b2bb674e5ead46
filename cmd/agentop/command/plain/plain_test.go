package plain

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextShowsWhatATerminalWouldObey(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "fix the parser", "fix the parser"},
		{"empty", "", ""},
		{"wide, combining and joined", "日本語 e\u0301 👩\u200d💻 שלום", "日本語 e\u0301 👩\u200d💻 שלום"},
		{"clipboard", "a\x1b]52;c;ZXZpbA==\x07b", "a␛]52;c;ZXZpbA==␇b"},
		{"clear", "\x1b[2J\x1b[H", "␛[2J␛[H"},
		{"link", "\x1b]8;;http://x\x1b\\t", "␛]8;;http://x␛\\t"},
		{"lines and tabs", "a\r\nb\tc", "a␍␊b␉c"},
		{"unfinished", "x\x1b]", "x␛]"},
		{"delete and backspace", "a\x7f\bb\x00", "a␡␈b␀"},
		{"C1", "a\u009b2Jb", "a\ufffd2Jb"},
		{"bad bytes", "a\x9b\xffb", "a\ufffd\ufffdb"},
		{"cut rune", "a\xe2\x82", "a\ufffd\ufffd"},
		{"a real replacement character", "a\ufffdb", "a\ufffdb"},
		{"override", "a\u202eb\u2066c\u2028d", "a\ufffdb\ufffdc\ufffdd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLinesKeepsLineEndsAlone(t *testing.T) {
	if got, want := Lines("a\x1b\nb\r\n"), "a␛\nb␍\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSONKeepsTheValueAndHidesTheCharacter(t *testing.T) {
	for _, value := range []string{"plain", "a\u009b2Jb\x7f", "日本\u202e\ufeff", "\x1b]52;c;x\a\n\t"} {
		encoded, err := json.Marshal(map[string]string{"title": value})
		if err != nil {
			t.Fatal(err)
		}
		safe := JSON(append(encoded, '\n'))
		if got := Text(strings.TrimSuffix(string(safe), "\n")) + "\n"; got != string(safe) {
			t.Errorf("%q: %q still acts", value, safe)
		}
		var back map[string]string
		if err := json.Unmarshal(safe, &back); err != nil || back["title"] != value {
			t.Errorf("%q: comes back as %q, %v", value, back["title"], err)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a\x1b]52;c;x\x07", "\xff\x80é\u009b", strings.Repeat("日", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q: %q is not UTF-8", s, got)
		}
		for _, r := range got {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				t.Errorf("%q: %U is left", s, r)
			}
		}
		if utf8.RuneCountInString(got) != utf8.RuneCountInString(s) {
			t.Errorf("%q: %q has another number of characters", s, got)
		}
		if Text(got) != got {
			t.Errorf("%q: not stable", s)
		}
	})
}
