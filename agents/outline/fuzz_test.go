package outline

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// FuzzScan holds Scan equal to the reference on anything, and so also its
// verdict on what is JSON to that of encoding/json.
func FuzzScan(f *testing.F) {
	for _, c := range verdicts {
		f.Add(byte(1), []byte(c.body))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		f.Add(byte(i), randomBody(r))
	}
	var o Outline
	f.Fuzz(func(t *testing.T, format byte, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		check(t, &o, formats[format%4], body)
		checkKnown(t, formats[format%4], body)
		checkKnownTexts(t, rand.New(rand.NewPCG(uint64(len(body)), uint64(format))), body)
		checkPast(t, rand.New(rand.NewPCG(uint64(len(body)), uint64(format))), formats[format%4], body)
		checkKernels(t, body)
	})
}

// FuzzDecode holds Decode equal to encoding/json, whole and in small pieces.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a", `\n\t\"\\\/\b\f\r`, `\u0041\u00e9\u20ac\ud83d\ude00`, `\ud83d`, `\ude00\ud83d\u0041`,
		"\xff\xc3\xa9\xe2\x82", "é€😀", `plain text, then \u000a and more than eight bytes`} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, size uint8) {
		if !json.Valid([]byte(`"` + string(raw) + `"`)) {
			return
		}
		want := decoded(raw)
		for _, n := range []int{4 + int(size), maxDecoded(len(raw)) + 4} {
			if got := inPieces(t, Decode, raw, n); got != want {
				t.Fatalf("%q by %d bytes: got %q, want %q", raw, n, got, want)
			}
			if !utf8.Valid(raw) {
				continue
			}
			everyKernel(func(kernel string) {
				if got := inPieces(t, DecodeValid, raw, n); got != want {
					t.Fatalf("%q by %d bytes, %s: got %q, want %q", raw, n, kernel, got, want)
				}
			})
		}
	})
}

func inPieces(t *testing.T, decode func(dst, raw []byte) (int, int), raw []byte, n int) string {
	text, dst := "", make([]byte, n)
	for rest := raw; len(rest) > 0; {
		w, r := decode(dst, rest)
		if w == 0 || r == 0 {
			t.Fatalf("%q: no progress at %q with %d bytes", raw, rest, n)
		}
		text += string(dst[:w])
		rest = rest[r:]
	}
	return text
}
