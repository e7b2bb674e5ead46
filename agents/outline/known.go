package outline

import (
	"bytes"
	"sync"
)

// Known remembers what was read to its end in other bodies, and what was found
// there: lists of tools, long texts of the system prompt, and the beginnings of
// conversations. An agent sends the same ones with each request, and often they
// are most of a small body; and a conversation's next body mostly begins as its
// last one did. What is known is compared by its hash, at memory's speed, in
// the place of being read once more. What Scan finds is the same with and
// without. One Known is for one Sum; it is safe for concurrent use.
type Known struct {
	// Hash is what bytes are compared by; it must be seeded by chance, as
	// bodies hold words of strangers. Without it nothing is remembered.
	Hash func([]byte) uint64

	mu     sync.Mutex
	values [sorts]values
	pasts  pasts
}

// The sorts of values that are remembered.
const (
	toolLists   = iota
	systemTexts // each with the quote that ends it
	sorts
)

const (
	knownValues = 16
	// Smaller values are read as fast.
	smallestKnown = 1 << 10
	knownHead     = 64
)

// values are the newest of a sort.
type values struct {
	list [knownValues]*value
	next int // the place that is given up next
}

// value is a part of a body as it stood there. It never changes.
type value struct {
	size int
	head [knownHead]byte // its beginning, which tells most apart
	hash uint64
	found
}

// found is what was found in a value.
type found struct {
	all, server int // of a list of tools

	sum     uint64 // of a text
	escaped bool
}

// find returns the value of a sort that b begins with, nil if there is none.
func (k *Known) find(sort int, b []byte) *value {
	if k == nil || k.Hash == nil {
		return nil
	}
	k.mu.Lock()
	list := k.values[sort].list
	k.mu.Unlock()
	for _, v := range list {
		if v != nil && v.size <= len(b) && bytes.Equal(v.head[:], b[:knownHead]) && k.Hash(b[:v.size]) == v.hash {
			return v
		}
	}
	return nil
}

// add remembers a value that was read to its end.
func (k *Known) add(sort int, b []byte, what found) {
	if k == nil || k.Hash == nil || len(b) < smallestKnown {
		return
	}
	v := &value{size: len(b), hash: k.Hash(b), found: what}
	copy(v.head[:], b)
	k.mu.Lock()
	defer k.mu.Unlock()
	of := &k.values[sort]
	of.list[of.next] = v
	of.next = (of.next + 1) % knownValues
}
