package prefix_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"agentop/router/prefix"
)

// FuzzSum holds Sum equal to hashing what encoding/json decodes, and Text to
// the same text in pieces.
func FuzzSum(f *testing.F) {
	for _, s := range []string{"", "user", `a\nb\t\"c\"`, `\ud83d\ude00\ud83d`, "é\xff", strings.Repeat(`if x != \"\" {\n\t`, 40), strings.Repeat("é\\n", 50),
		strings.Repeat("x", 63) + `\n` + strings.Repeat("y", 62) + `\\` + `\u00e9`, strings.Repeat("long ", 8000) + `\/` + strings.Repeat("é", 9000)} {
		f.Add([]byte(s), uint16(7))
	}
	f.Fuzz(func(t *testing.T, raw []byte, size uint16) {
		var text string
		quoted := append(append([]byte{'"'}, raw...), '"')
		if json.Unmarshal(quoted, &text) != nil {
			return
		}
		want := prefix.SumText([]byte(text))
		got, n := prefix.Sum(raw, bytes.IndexByte(raw, '\\') >= 0)
		if got != want || n != len(text) {
			t.Fatalf("%q: got %x of %d bytes, want %x of %d", raw, got, n, want, len(text))
		}
		var pieces prefix.Text
		for rest := text; rest != ""; {
			n := min(len(rest), int(size)+1)
			_, _ = pieces.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if pieces.Sum64() != want || pieces.Len() != len(text) {
			t.Fatalf("%q in pieces of %d: got %x of %d, want %x of %d", text, size+1, pieces.Sum64(), pieces.Len(), want, len(text))
		}
		pieces.Reset()
		if pieces.Sum64() != prefix.SumText(nil) || pieces.Len() != 0 {
			t.Fatalf("after Reset: %x of %d", pieces.Sum64(), pieces.Len())
		}
	})
}

// TestSumOfLongTexts crosses the bounds of the chunks that texts are hashed in.
func TestSumOfLongTexts(t *testing.T) {
	for _, unit := range []string{`a`, `\n`, `xy\u00e9`, "é", "é\\t", `\ud83d\ude00`, `\ud83d`, "\xff"} {
		for _, size := range []int{1000, 32<<10 - 1, 32 << 10, 32<<10 + 1, 100_000} {
			for _, shift := range []int{0, 1, 2, 3, 5} {
				raw := []byte(strings.Repeat("z", shift) + strings.Repeat(unit, size/len(unit)))
				var text string
				if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &text); err != nil {
					t.Fatal(err)
				}
				got, n := prefix.Sum(raw, bytes.IndexByte(raw, '\\') >= 0)
				if want := prefix.SumText([]byte(text)); got != want || n != len(text) {
					t.Errorf("%d bytes of %q after %d: got %x of %d, want %x of %d", len(raw), unit, shift, got, n, want, len(text))
				}
			}
		}
	}
}
