//go:build unix

package router

import (
	"errors"
	"net"
	"syscall"
)

// closedByPeer reports whether an idle connection has something to read: its
// end, an error, or an answer that was not asked for. It takes nothing off it.
func closedByPeer(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	// Not Read: the transport's reader waits there and holds its lock.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
	})
	return closed || err != nil
}
