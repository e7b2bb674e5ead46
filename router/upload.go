package router

import (
	"errors"
	"io"
	"math/bits"
	"sync"
)

// upload is the memory of one request's body. It is used again for another
// request, and so it is let go of only under the lock that every reader holds:
// net/http may go on reading a body after the answer has come.
type upload struct {
	mu     sync.Mutex
	memory []byte // to be used again; nil where it is not worth it
	latest *once  // of those that read it: an attempt that came to nothing leaves one
	gone   bool
}

// reader returns a body of p, which is in u's memory or made of it.
func (u *upload) reader(p []byte) *once {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.latest = &once{from: u, rest: p}
	return u.latest
}

// sent reports whether the latest reader has read it all.
func (u *upload) sent() bool {
	if !u.mu.TryLock() {
		return false // it is just being written
	}
	defer u.mu.Unlock()
	return u.latest != nil && len(u.latest.rest) == 0
}

// errGone is what a reader gets that comes after the request has ended.
var errGone = errors.New("request has ended")

// release gives the memory back. No reader sees a byte of it afterwards, but
// for one that is just writing it to a connection: then the memory is not used
// again, and nobody waits.
func (u *upload) release() {
	if !u.mu.TryLock() {
		return
	}
	defer u.mu.Unlock()
	if !u.gone {
		u.gone = true
		putMemory(u.memory)
		u.memory = nil
	}
}

// once is a request body that is in memory. It has no GetBody, and even an
// empty one is not http.NoBody: so net/http never takes the request for one
// that it may send again by itself.
type once struct {
	from *upload
	rest []byte // under from's lock once the request is being sent
}

// Read implements io.Reader.
func (o *once) Read(p []byte) (int, error) {
	o.from.mu.Lock()
	defer o.from.mu.Unlock()
	switch {
	case len(o.rest) == 0: // also when gone: net/http looks once more for the end
		return 0, io.EOF
	case o.from.gone:
		return 0, errGone
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (o *once) Close() error { return nil }

// write gives what is left of the body to w as it stands in memory, in one
// call; w says how much of it was taken.
func (o *once) write(w func(p []byte) (int, error)) error {
	o.from.mu.Lock()
	defer o.from.mu.Unlock()
	if o.from.gone && len(o.rest) > 0 {
		return errGone
	}
	n, err := w(o.rest)
	o.rest = o.rest[n:]
	return err
}

// Memory for bodies is kept by powers of two. Smaller and larger bodies are
// left to the garbage collector: the ones are cheap, the others rare.
const (
	smallestMemory = 16 // 64 KB
	readyMemory    = 18 // 256 KB
	largestMemory  = 23 // 8 MB
	// maxReady is how much lies ready, in bytes.
	maxReady = 2 << 20
)

// memories are pools; a collection empties them.
var memories [largestMemory + 1]sync.Pool

// ready is memory for bodies of the usual sizes. It outlasts collections:
// clearing fresh memory takes longer than reading such a body.
var ready struct {
	sync.Mutex
	bytes int
	lists [readyMemory + 1][][]byte
}

// takeMemory returns n bytes, with what was in them before. keep is what
// putMemory takes.
func takeMemory(n int) (p, keep []byte) {
	class := max(bits.Len(uint(max(n-1, 0))), smallestMemory)
	if class > largestMemory || n < 1<<(smallestMemory-2) {
		return make([]byte, n), nil
	}
	if keep = takeReady(class); keep != nil {
		return keep[:n], keep
	}
	if kept, ok := memories[class].Get().(*[]byte); ok {
		return (*kept)[:n], *kept
	}
	keep = make([]byte, 1<<class)
	return keep[:n], keep
}

func takeReady(class int) (keep []byte) {
	if class > readyMemory {
		return nil
	}
	ready.Lock()
	defer ready.Unlock()
	list := ready.lists[class]
	if last := len(list) - 1; last >= 0 {
		keep = list[last]
		list[last] = nil
		ready.lists[class] = list[:last]
		ready.bytes -= len(keep)
	}
	return keep
}

func putMemory(keep []byte) {
	if keep == nil {
		return
	}
	class := bits.Len(uint(len(keep) - 1))
	if !putReady(class, keep) {
		memories[class].Put(&keep)
	}
}

func putReady(class int, keep []byte) bool {
	ready.Lock()
	defer ready.Unlock()
	if class > readyMemory || ready.bytes+len(keep) > maxReady {
		return false
	}
	ready.lists[class] = append(ready.lists[class], keep)
	ready.bytes += len(keep)
	return true
}

// LetGo lets go of the memory that lies ready for the next requests.
func LetGo() {
	ready.Lock()
	defer ready.Unlock()
	ready.bytes, ready.lists = 0, [readyMemory + 1][][]byte{}
}
