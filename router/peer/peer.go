// Package peer tells which account owns the other end of a loopback TCP
// connection, where the system can tell: on Linux. It decides nothing, and
// promises nothing for a connection that comes from another machine. Start
// reading at Open.
package peer

import (
	"errors"
	"net/netip"
	"sync"
)

// ErrCannotTell is returned by Open where the system does not tell who owns
// another program's socket.
var ErrCannotTell = errors.New("this system does not tell who connects")

// ErrGone is returned by Owner when no program holds the other end: it has
// closed it, or was never on this machine. Linux calls such a socket root's,
// so nobody may be let in by it.
var ErrGone = errors.New("the program that connected has closed the connection")

// Finder looks owners up. It is safe for concurrent use.
type Finder struct {
	mu sync.Mutex
	by lookup
}

// lookup is one way to ask the system. It is called by one goroutine at a time.
type lookup interface {
	// owner is the user id of the program whose socket is bound to from and
	// connected to to.
	owner(from, to netip.AddrPort) (uid int, err error)
	close() error
}

// Open finds a way to ask that works here, which it tries on a connection of
// its own; ErrCannotTell when there is none. What a Finder needs is opened
// now, so that it goes on when descriptors run out.
func Open() (*Finder, error) {
	by := find()
	if by == nil {
		return nil, ErrCannotTell
	}
	return &Finder{by: by}, nil
}

// Owner is the user id of the program that connected from one address to the
// other: as the side that accepted sees it, the remote address and the local
// one. It takes some microseconds.
func (f *Finder) Owner(from, to netip.AddrPort) (uid int, err error) {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by.owner(from, to)
}

// Close lets go of what Open took.
func (f *Finder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by.close()
}
