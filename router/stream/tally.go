package stream

import "io"

// Hash is a 64-bit hash of a text that comes in pieces; package prefix has
// the one that request histories are hashed with. An Observer uses each Hash
// that it was given alone.
type Hash interface {
	io.Writer
	Sum64() uint64
	Reset()
}

// tally is a part of a reply mark: a wrapping sum of hashes and the decoded
// bytes that they stand for.
type tally struct {
	sum   uint64
	bytes int
}

func (t *tally) add(u tally) {
	t.sum += u.sum
	t.bytes += u.bytes
}

// running hashes one text that comes in pieces. It has a hash only from its
// first piece on: one takes over a kilobyte, and most answers need one or two
// of the places where there may be text.
type running struct {
	newHash func() Hash
	hash    Hash
	bytes   int
}

func (r *running) write(p []byte) {
	_, _ = r.ready().Write(p) // a hash does not fail
	r.bytes += len(p)
}

func (r *running) ready() Hash {
	if r.hash == nil {
		r.hash = r.newHash()
	}
	return r.hash
}

// take is the tally of the text so far, and makes r ready for the next one.
func (r *running) take() tally {
	t := tally{r.ready().Sum64(), r.bytes}
	r.drop()
	return t
}

// drop forgets the text so far.
func (r *running) drop() {
	if r.bytes > 0 {
		r.hash.Reset()
		r.bytes = 0
	}
}

// arguments sums the string values in a tool call's arguments: JSON text that
// comes in pieces. A text that is not JSON is one value, and so is not
// looked into.
type arguments struct {
	tok    tokens
	whole  running // the text as it is, for when it is not JSON
	value  running
	values tally
}

func (a *arguments) write(p []byte) {
	a.whole.write(p)
	a.tok.write(p, a)
}

// take is the tally of the arguments so far, and makes a ready for the next
// ones.
func (a *arguments) take() tally {
	valid := a.tok.whole(a)
	result := a.values
	switch {
	case a.whole.bytes == 0:
		result = tally{}
	case !valid:
		result = a.whole.take()
	}
	a.whole.drop()
	a.value.drop()
	a.values = tally{}
	a.tok.reset()
	return result
}

func (a *arguments) open(bool)      {}
func (a *arguments) close()         {}
func (a *arguments) key([]byte)     {}
func (a *arguments) literal([]byte) {}
func (a *arguments) piece(p []byte) { a.value.write(p) }
func (a *arguments) endString()     { a.values.add(a.value.take()) }
