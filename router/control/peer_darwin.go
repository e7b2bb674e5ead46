package control

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the user id of the process at the other end, -1 when the system
// does not tell.
func peerUID(c net.Conn) int {
	uid := -1
	control(c, func(fd int) {
		if cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED); err == nil {
			uid = int(cred.Uid)
		}
	})
	return uid
}

// peerPID is the process at the other end, 0 when the system does not tell.
func peerPID(c net.Conn) int {
	pid := 0
	control(c, func(fd int) {
		if p, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID); err == nil {
			pid = p
		}
	})
	return pid
}

func control(c net.Conn, f func(fd int)) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { f(int(fd)) })
}
