package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// diag asks the kernel for one socket by its two addresses, over one netlink
// socket that is kept (sock_diag(7), linux/inet_diag.h).
type diag struct {
	fd  int
	seq uint32
	buf [512]byte // more than one answer has
}

// Sizes and numbers of linux/netlink.h and linux/inet_diag.h.
const (
	headerSize  = 16 // struct nlmsghdr
	requestSize = 56 // struct inet_diag_req_v2
	answerSize  = 72 // struct inet_diag_msg, without attributes
	byFamily    = 20 // SOCK_DIAG_BY_FAMILY
	listening   = 10 // TCP_LISTEN

	answerUID, answerInode = 64, 68 // offsets in struct inet_diag_msg
)

func openDiag() (*diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open sock_diag: %w", err)
	}
	// The kernel answers before sendto returns; this is for one that does not.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &diag{fd: fd}, nil
}

func (d *diag) close() error { return unix.Close(d.fd) }

func (d *diag) owner(from, to netip.AddrPort) (int, error) {
	d.seq++
	request := d.request(from, to)
	if err := unix.Sendto(d.fd, request[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("ask sock_diag: %w", err)
	}
	for {
		n, sender, err := unix.Recvfrom(d.fd, d.buf[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read sock_diag: %w", err)
		}
		kernel, ok := sender.(*unix.SockaddrNetlink)
		if !ok || kernel.Pid != 0 || n < headerSize || binary.NativeEndian.Uint32(d.buf[8:]) != d.seq {
			continue // another program's, or the late answer to an earlier question
		}
		return answerOf(d.buf[:n], to)
	}
}

// request is the question after the socket bound to from and connected to to.
func (d *diag) request(from, to netip.AddrPort) (b [headerSize + requestSize]byte) {
	native := binary.NativeEndian
	native.PutUint32(b[0:], uint32(len(b)))
	native.PutUint16(b[4:], byFamily)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST)
	native.PutUint32(b[8:], d.seq)
	r := b[headerSize:]
	r[0] = unix.AF_INET6
	if from.Addr().Is4() {
		r[0] = unix.AF_INET
	}
	r[1] = unix.IPPROTO_TCP
	native.PutUint32(r[4:], ^uint32(0)) // in any state
	id := r[8:]                         // struct inet_diag_sockid
	binary.BigEndian.PutUint16(id[0:], from.Port())
	binary.BigEndian.PutUint16(id[2:], to.Port())
	copy(id[4:20], from.Addr().AsSlice())
	copy(id[20:36], to.Addr().AsSlice())
	native.PutUint64(id[40:], ^uint64(0)) // no cookie
	return b
}

// answerOf reads the kernel's answer about a socket connected to to.
func answerOf(b []byte, to netip.AddrPort) (int, error) {
	native := binary.NativeEndian
	body := b[headerSize:]
	if native.Uint16(b[4:]) == unix.NLMSG_ERROR {
		if len(body) < 4 {
			return 0, errors.New("sock_diag answered too little")
		}
		errno := unix.Errno(-int32(native.Uint32(body)))
		if errno == unix.ENOENT {
			return 0, ErrGone
		}
		return 0, fmt.Errorf("sock_diag: %w", errno)
	}
	if native.Uint16(b[4:]) != byFamily || len(body) < answerSize {
		return 0, fmt.Errorf("sock_diag answered with type %d and %d bytes", native.Uint16(b[4:]), len(body))
	}
	// Where no connection matches, the kernel answers with a listening socket
	// of that address and port, which is somebody else's.
	if body[1] == listening || binary.BigEndian.Uint16(body[6:]) != to.Port() {
		return 0, ErrGone
	}
	// A socket without an inode has no program any more; its owner reads 0.
	if native.Uint32(body[answerInode:]) == 0 {
		return 0, ErrGone
	}
	return int(native.Uint32(body[answerUID:])), nil
}
