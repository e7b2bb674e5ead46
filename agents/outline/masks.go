package outline

import (
	"encoding/binary"
	"math/bits"
)

// words is how many blocks of 64 bytes are looked at in one go.
const words = 32

// masks tells what the bytes of a stretch of text are, a bit a byte. The
// kernels in assembly know this layout.
type masks struct {
	quote   [words]uint64 // "
	slash   [words]uint64 // \
	control [words]uint64 // below 0x20
	// letter has those that make an escape of two bytes after a backslash:
	// " \ / b f n r t. A kernel may leave it empty.
	letter [words]uint64
}

// fill describes src, at most words*64 bytes, and returns the number of words.
// Bits past its end are those of spaces.
func (m *masks) fill(src []byte) int {
	n := len(src) / 64
	if n > 0 {
		kernel(m, src, n)
	}
	if tail := src[n*64:]; len(tail) > 0 {
		var last [64]byte
		for i := copy(last[:], tail); i < 64; i++ {
			last[i] = ' '
		}
		var one masks
		kernel(&one, last[:], 1)
		m.quote[n], m.slash[n], m.control[n], m.letter[n] = one.quote[0], one.slash[0], one.control[0], one.letter[0]
		n++
	}
	return n
}

// clear makes the first n bytes those of spaces.
func (m *masks) clear(n int) {
	for w := 0; w < words && w*64 < n; w++ {
		keep := uint64(0)
		if left := n - w*64; left < 64 {
			keep = ^uint64(0) << left
		}
		m.quote[w] &= keep
		m.slash[w] &= keep
		m.control[w] &= keep
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// portable is the kernel for every machine. The bytes of a word are compared
// at once, which leaves the high bit of those that match; gather collects them.
func portable(m *masks, src []byte, n int) {
	for w := range n {
		block := src[w*64:][:64]
		var quote, slash, control uint64
		for i := 0; i < 64; i += 8 {
			x := binary.LittleEndian.Uint64(block[i:])
			quote |= gather(equal(x, '"')) << i
			slash |= gather(equal(x, '\\')) << i
			control |= gather(^((x&^highs)+ones*(0x80-0x20))&^x&highs) << i
		}
		m.quote[w], m.slash[w], m.control[w], m.letter[w] = quote, slash, control, 0
	}
}

// portableSlashes fills m.slash alone.
func portableSlashes(m *masks, src []byte, n int) {
	for w := range n {
		block := src[w*64:][:64]
		var slash uint64
		for i := 0; i < 64; i += 8 {
			slash |= gather(equal(binary.LittleEndian.Uint64(block[i:]), '\\')) << i
		}
		m.slash[w] = slash
	}
}

// equal marks the bytes of x that are c.
func equal(x uint64, c byte) uint64 {
	x ^= ones * uint64(c)
	return ^((x&^highs + ^uint64(highs)) | x) & highs
}

// gather moves the high bits of x's bytes together, the lowest byte's first.
func gather(x uint64) uint64 { return x >> 7 * 0x0102040810204080 >> 56 }

// escapes finds the escaped characters in a word of backslashes: those after
// an odd number of them. first says that the word's first character is
// escaped by the word before; next says so for the word after.
func escapes(slash, first uint64) (escaped, next uint64) {
	if slash == 0 {
		return first, 0
	}
	const even = 0x5555555555555555
	slash &^= first
	follows := slash<<1 | first
	// A run that begins at an odd place carries over to its end; there the
	// sense of even and odd is the other way round.
	odd := slash &^ even &^ follows
	sum, carry := bits.Add64(odd, slash, 0)
	return (even ^ sum<<1) & follows, carry
}
