//go:build unix

package front

import (
	"errors"
	"os"
	"syscall"
)

// watches says that this system tells the end of a connection to who does not
// read it.
const watches = true

// awaitEnd returns when either end of a connection has closed it (true), when
// the other has sent something more (false), or when reading is interrupted by
// a deadline (false). It takes nothing off the connection.
func awaitEnd(raw syscall.RawConn) (closed bool) {
	err := raw.Read(func(fd uintptr) bool {
		var wait bool
		closed, wait = look(fd)
		return !wait
	})
	if err != nil {
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	return closed
}

// arrived reports whether something is there to be read, be it an end.
func arrived(raw syscall.RawConn) (there bool) {
	_ = raw.Control(func(fd uintptr) {
		_, wait := look(fd)
		there = !wait
	})
	return there
}

func look(fd uintptr) (closed, wait bool) {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return false, true
	}
	return err != nil || n == 0, false
}
