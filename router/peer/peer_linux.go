package peer

import (
	"errors"
	"net"
	"net/netip"
	"os"
)

// find tries the ways that Linux has, the faster one first.
func find() lookup {
	if d, err := openDiag(); err == nil {
		if works(d) {
			return d
		}
		_ = d.close() // nothing was written
	}
	if works(procFiles{}) {
		return procFiles{}
	}
	return nil
}

// works tries a lookup on a connection of this process.
func works(by lookup) bool {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if l, err = net.Listen("tcp", "[::1]:0"); err != nil {
			return false
		}
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return false
	}
	defer c.Close()
	uid, err := by.owner(addrPort(c.LocalAddr()), addrPort(c.RemoteAddr()))
	if err != nil || uid != os.Getuid() {
		return false
	}
	// It must also know a connection that is not there: a way that answers
	// anything with this user would let everybody in.
	_, err = by.owner(addrPort(c.LocalAddr()), addrPort(c.LocalAddr()))
	return errors.Is(err, ErrGone)
}

func addrPort(a net.Addr) netip.AddrPort {
	t, _ := a.(*net.TCPAddr)
	return t.AddrPort()
}
