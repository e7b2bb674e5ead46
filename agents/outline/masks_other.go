//go:build !amd64 || purego

package outline

// kernel fills the first n words of m from src, which has n*64 bytes or more.
func kernel(m *masks, src []byte, n int) { portable(m, src, n) }

func slashes(m *masks, src []byte, n int) { portableSlashes(m, src, n) }

// decodeFast is decodeBlocks in assembly, where there is one.
func decodeFast(_, _ []byte, _ int) (written, read int, ok bool) { return 0, 0, false }
