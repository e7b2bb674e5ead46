//go:build !purego

package prefix

import (
	"unicode/utf8"

	"golang.org/x/sys/cpu"
)

var hasAVX2 = cpu.X86.HasAVX2

//go:noescape
func validAVX2(p *byte, n int, before *[32]byte) bool

// valid says whether b is UTF-8, as utf8.Valid does but faster for long texts.
func valid(b []byte) bool {
	n := len(b) / 32
	if n < 2 || !hasAVX2 {
		return utf8.Valid(b)
	}
	var before [32]byte
	if !validAVX2(&b[0], n, &before) {
		return false
	}
	// The rest, filled up with ASCII: a character that is cut shows there.
	var rest [32]byte
	copy(rest[:], b[n*32:])
	return validAVX2(&rest[0], 1, &before)
}
