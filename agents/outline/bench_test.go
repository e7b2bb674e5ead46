package outline

import (
	"strings"
	"testing"
)

// BenchmarkKernel compares the kernels on source code with many escapes: the
// scan of a body of one such text, and its decoding. Package prefix measures
// whole bodies.
func BenchmarkKernel(b *testing.B) {
	raw := []byte(strings.Repeat(`\tif err := store.Save(ctx, \"pins\"); err != nil {\n\t\treturn fmt.Errorf(\"save %q: %w\", name, err)\n\t}\n// plain words that nobody escapes\n`, 60))
	body := []byte(`{"messages":[{"role":"user","content":"` + string(raw) + `"}]}`)
	dst := make([]byte, len(raw)+64)
	var o Outline
	everyKernel(func(kernel string) {
		b.Run("kernel="+kernel+"/do=scan", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				o.Scan(Messages, body, nil)
			}
		})
		b.Run("kernel="+kernel+"/do=decode", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				DecodeValid(dst, raw)
			}
		})
	})
}
