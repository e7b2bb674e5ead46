package outline

import (
	"bytes"
	"sync"
)

// Known remembers lists of tools that were read to their ends, and what was
// found in the beginnings of bodies. An agent sends the same list with each
// request, and often it is most of a small body; and a conversation's next
// body mostly begins as its last one did. What is known is compared by its
// hash, at memory's speed, in the place of being read once more. What Scan
// finds is the same with and without. One Known is for one Sum; it is safe for
// concurrent use.
type Known struct {
	// Hash is what bytes are compared by; it must be seeded by chance, as
	// bodies hold words of strangers. Without it nothing is remembered.
	Hash func([]byte) uint64

	mu    sync.Mutex
	lists [knownLists]toolList
	next  int // the place that is given up next
	pasts pasts
}

const (
	knownLists = 8
	// Smaller lists are read as fast.
	smallestKnown = 1 << 10
	knownHead     = 64
)

// toolList is a list of tools as it stood in a body.
type toolList struct {
	size        int
	head        [knownHead]byte // its beginning, which tells most lists apart
	hash        uint64
	all, server int
}

// find returns the list that b begins with, if it is known.
func (k *Known) find(b []byte) (toolList, bool) {
	if k == nil || k.Hash == nil {
		return toolList{}, false
	}
	k.mu.Lock()
	lists := k.lists
	k.mu.Unlock()
	for i := range lists {
		l := &lists[i]
		if l.size > 0 && l.size <= len(b) && bytes.Equal(l.head[:], b[:knownHead]) && k.Hash(b[:l.size]) == l.hash {
			return *l, true
		}
	}
	return toolList{}, false
}

// add remembers a list that was read to its end.
func (k *Known) add(list []byte, all, server int) {
	if k == nil || k.Hash == nil || len(list) < smallestKnown {
		return
	}
	l := toolList{size: len(list), hash: k.Hash(list), all: all, server: server}
	copy(l.head[:], list)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lists[k.next] = l
	k.next = (k.next + 1) % knownLists
}
