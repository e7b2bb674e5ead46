// Package headerpool has headers that are used again: a turn needs three, and
// each is a kilobyte of garbage otherwise.
package headerpool

import (
	"net/http"
	"sync"
)

// kept is the largest header that is used again.
const kept = 64

var pool = sync.Pool{New: func() any { return make(http.Header, 24) }}

// Take returns an empty header. It is safe for concurrent use.
func Take() http.Header { return pool.Get().(http.Header) }

// Put empties h and lets another caller of Take have it; nobody may use it
// afterwards. Its values stay as they are, so others may go on holding them. It
// is safe for concurrent use, and a nil header is none.
func Put(h http.Header) {
	if h != nil && len(h) <= kept {
		clear(h)
		pool.Put(h)
	}
}
