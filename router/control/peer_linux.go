package control

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the user id of the process at the other end, -1 when the system
// does not tell.
func peerUID(c net.Conn) int {
	if cred := peer(c); cred != nil {
		return int(cred.Uid)
	}
	return -1
}

// peerPID is the process at the other end, 0 when the system does not tell.
func peerPID(c net.Conn) int {
	if cred := peer(c); cred != nil {
		return int(cred.Pid)
	}
	return 0
}

func peer(c net.Conn) (cred *unix.Ucred) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return nil
	}
	return cred
}
