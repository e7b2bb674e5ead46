package prefix

import (
	"sync"

	"github.com/zeebo/xxh3"

	"agentop/agents/outline"
)

// chunk is how much decoded text is hashed at a time.
const chunk = 32 << 10

// decoder is the memory that decoding a string takes.
type decoder struct {
	buf  [chunk]byte
	hash xxh3.Hasher
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// Sum hashes the text of a JSON string, given what stands between its quotes
// and whether there is a backslash in it. It returns the hash of the decoded
// text as UTF-8, and the text's length. It is an outline.Sum, and safe for
// concurrent use.
func Sum(raw []byte, escaped bool) (hash uint64, n int) {
	utf8 := valid(raw)
	if utf8 && !escaped {
		return xxh3.Hash(raw), len(raw)
	}
	decode := outline.Decode
	if utf8 {
		decode = outline.DecodeValid
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	n, read := decode(d.buf[:], raw)
	if read == len(raw) {
		return xxh3.Hash(d.buf[:n]), n
	}
	d.hash.Reset()
	_, _ = d.hash.Write(d.buf[:n]) // a hash does not fail
	for read < len(raw) {
		w, r := decode(d.buf[:], raw[read:])
		_, _ = d.hash.Write(d.buf[:w])
		n += w
		read += r
	}
	return d.hash.Sum64(), n
}

// SumText hashes a text that is decoded already; it is the hash that Sum
// returns for the same text as a JSON string.
func SumText(text []byte) uint64 { return xxh3.Hash(text) }

// Text hashes a text that comes in pieces. Its Sum64 is SumText of all that
// was written. The zero value is an empty text; it is not safe for concurrent
// use.
type Text struct {
	hash xxh3.Hasher
	n    int
}

// Write adds to the text. It never fails.
func (t *Text) Write(p []byte) (int, error) {
	t.n += len(p)
	return t.hash.Write(p)
}

// Sum64 is the hash of what was written so far.
func (t *Text) Sum64() uint64 { return t.hash.Sum64() }

// Len is the number of bytes written so far.
func (t *Text) Len() int { return t.n }

// Reset empties the text.
func (t *Text) Reset() {
	t.hash.Reset()
	t.n = 0
}
