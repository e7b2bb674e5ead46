//go:build !purego

package outline

import "golang.org/x/sys/cpu"

var (
	hasAVX2   = cpu.X86.HasAVX2
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL
	hasVBMI2  = hasAVX512 && cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VBMI2 && cpu.X86.HasPOPCNT
)

//go:noescape
func masksAVX2(m *masks, src *byte, n int)

//go:noescape
func masksAVX512(m *masks, src *byte, n int)

// kernel fills the first n words of m from src, which has n*64 bytes or more.
func kernel(m *masks, src []byte, n int) {
	if n < 1 || n > words {
		return
	}
	_ = src[n*64-1]
	switch {
	case hasAVX512:
		masksAVX512(m, &src[0], n)
	case hasAVX2:
		masksAVX2(m, &src[0], n)
	default:
		portable(m, src, n)
	}
}

//go:noescape
func decodeVBMI2(dst, src *byte, n int) (written, read int)

// slashes fills m.slash alone, or more.
func slashes(m *masks, src []byte, n int) {
	if hasAVX512 || hasAVX2 {
		kernel(m, src, n)
	} else {
		portableSlashes(m, src, n)
	}
}

// decodeFast decodes at most n blocks of raw, as decodeBlocks does.
func decodeFast(dst, raw []byte, n int) (written, read int, ok bool) {
	if !hasVBMI2 || n < 1 {
		return 0, 0, false
	}
	_, _ = dst[n*64-1], raw[n*64-1]
	written, read = decodeVBMI2(&dst[0], &raw[0], n)
	return written, read, true
}
