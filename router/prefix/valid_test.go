package prefix

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestValidAgreesWithTheLibrary puts every kind of right and wrong character
// at every place of a block.
func TestValidAgreesWithTheLibrary(t *testing.T) {
	pieces := []string{"a", "é", "€", "😀", "\U0010ffff", "\ud7ff", "\ue000", "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe2\x82", "\xe0\x80\x80",
		"\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe"}
	for _, p := range pieces {
		for at := range 100 {
			for _, after := range []int{0, 1, 31, 64} {
				for _, fill := range []string{"x", "é"} {
					b := []byte(strings.Repeat(fill, at) + p + strings.Repeat(fill, after))
					if got, want := valid(b), utf8.Valid(b); got != want {
						t.Fatalf("%q at %d, %d after: got %v, want %v", p, at, after, got, want)
					}
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(9, 9))
	for range 100_000 {
		var b []byte
		for range r.IntN(90) {
			if r.IntN(30) == 0 {
				b = append(b, byte(r.IntN(256)))
			} else {
				b = append(b, pieces[r.IntN(7)]...)
			}
		}
		if got, want := valid(b), utf8.Valid(b); got != want {
			t.Fatalf("%q: got %v, want %v", b, got, want)
		}
	}
}
