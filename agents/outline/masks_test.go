package outline

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// checkKernels compares every kernel with a loop over the bytes.
func checkKernels(t *testing.T, src []byte) {
	t.Helper()
	src = src[:min(len(src), words*64)]
	everyKernel(func(kernel string) {
		var m masks
		n := m.fill(src)
		if want := (len(src) + 63) / 64; n != want {
			t.Fatalf("%s: %d words of %d bytes, want %d", kernel, n, len(src), want)
		}
		for i, c := range src {
			w, bit := i/64, uint64(1)<<(i%64)
			letter := plain[c] != 0 && kernel != "portable" // which leaves it empty
			for _, x := range []struct {
				name      string
				got, want bool
			}{
				{"quote", m.quote[w]&bit != 0, c == '"'},
				{"slash", m.slash[w]&bit != 0, c == '\\'},
				{"control", m.control[w]&bit != 0, c < ' '},
				{"letter", m.letter[w]&bit != 0, letter},
			} {
				if x.got != x.want {
					t.Fatalf("%s: byte %d %q: %s is %v, want %v", kernel, i, c, x.name, x.got, x.want)
				}
			}
		}
	})
}

func TestKernelsTellBytesApart(t *testing.T) {
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	for from := range 70 {
		for to := from; to <= len(all); to += 13 {
			checkKernels(t, all[from:to])
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		src := make([]byte, r.IntN(words*64+1))
		for i := range src {
			src[i] = "\"\\nu/ \x1f\x20\x80\xffA"[r.IntN(11)]
		}
		checkKernels(t, src)
	}
}

// TestEscapesAreFoundAcrossWords compares with a loop, on runs of backslashes
// of every length at every place.
func TestEscapesAreFoundAcrossWords(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		var slash [4]uint64
		var want [4]uint64
		escaped := false
		for i := range 256 {
			c := r.IntN(3) == 0
			if r.IntN(40) == 0 {
				c = !c
			}
			if c {
				slash[i/64] |= 1 << (i % 64)
			}
			if escaped {
				want[i/64] |= 1 << (i % 64)
			}
			escaped = c && !escaped
		}
		var got [4]uint64
		first := uint64(0)
		for w := range slash {
			got[w], first = escapes(slash[w], first)
		}
		if got != want || (first != 0) != escaped {
			t.Fatalf("backslashes %x: got %x %d, want %x %v", slash, got, first, want, escaped)
		}
	}
}

// TestScanIsTheSameOnEveryKernel moves one string over all places of a block
// and of a stretch, with escapes of every kind.
func TestScanIsTheSameOnEveryKernel(t *testing.T) {
	text := `a\"b\\\\\\\"c\\","d":"\u005c\ud83d\ude00 é\/\n`
	everyKernel(func(kernel string) {
		var o Outline
		for _, pad := range []int{0, 1, 61, 62, 63, 64, 65, words*64 - 130, words*64 - 60, words*64 - 20, words * 64, 3*words*64 - 40} {
			for shift := range 70 {
				body := []byte(`{"p":"` + strings.Repeat("x", pad+shift) + `","messages":[{"role":"user","content":"` + text + `"}]}`)
				check(t, &o, Messages, body)
				for _, bad := range []string{"\x1f", `\x`, `\u12g4`, "\\\n"} {
					spoilt := bytes.Replace(body, []byte(`\/`), []byte(bad), 1)
					if o.Scan(Messages, spoilt, jsonSum); o.Err == nil {
						t.Fatalf("%s: %q accepted at %d", kernel, bad, pad+shift)
					}
				}
			}
		}
	})
}

// TestDecodeValidIsTheSameOnEveryKernel puts escapes at every place of a
// block, at the ends of blocks and of stretches, and runs of all lengths
// between them.
func TestDecodeValidIsTheSameOnEveryKernel(t *testing.T) {
	everyKernel(func(kernel string) {
		for _, escape := range []string{`\n`, `\\`, `\\\\\"`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\t\t\/\b`} {
			for shift := range 130 {
				for _, run := range []int{1, 14, 33, 70} {
					raw := []byte(strings.Repeat("x", shift) + strings.Repeat(escape+strings.Repeat("é", run/2)+"y", 1+words*64/(run+2)))
					want := decoded(raw)
					for _, n := range []int{len(want) + 64, 100} {
						if got := inPieces(t, DecodeValid, raw, n); got != want {
							t.Fatalf("%s: %q after %d, every %d, by %d bytes: got %q, want %q", kernel, escape, shift, run, n, got, want)
						}
					}
				}
			}
		}
	})
}
