package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a listening socket as the supervisor holds it: a bare descriptor
// that no poller watches, so that a connection does not wake the supervisor.
type socket struct {
	FD        int    `json:"fd"`
	Address   string `json:"address"`
	Inherited bool   `json:"inherited,omitempty"` // a service manager opened it
}

// bindWait is how long a start waits for the port: workers of a supervisor
// that was killed give it up a moment later.
const bindWait = 2 * time.Second

// openSockets binds address and the same port of the other loopback family,
// since `localhost` may mean either. note, if not empty, says why it is one.
func openSockets(address string, wait time.Duration) (sockets []socket, note string, err error) {
	first, err := bind(address, wait)
	if err != nil {
		return nil, "", err
	}
	host, port, _ := net.SplitHostPort(first.Address)
	other := net.IPv6loopback.String()
	if net.ParseIP(host).To4() == nil {
		other = "127.0.0.1"
	}
	second, err := bind(net.JoinHostPort(other, port), 0)
	if err != nil {
		return []socket{first}, fmt.Sprintf("only %s is bound: %v", first.Address, err), nil
	}
	return []socket{first, second}, "", nil
}

func bind(address string, wait time.Duration) (socket, error) {
	end := time.Now().Add(wait)
	l, err := net.Listen("tcp", address)
	for errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond) // nothing tells when a port becomes free
		l, err = net.Listen("tcp", address)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return socket{}, fmt.Errorf("%s is in use by another program: %w", address, err)
	}
	if err != nil {
		return socket{}, fmt.Errorf("listen: %w", err)
	}
	defer l.Close()
	fd, err := duplicate(l.(*net.TCPListener))
	if err != nil {
		return socket{}, fmt.Errorf("keep the socket of %s: %w", address, err)
	}
	return socket{FD: fd, Address: l.Addr().String()}, nil
}

// duplicate gives a second descriptor of the socket. os.File's would make it
// blocking for everybody who shares it.
func duplicate(c syscall.Conn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	outer := raw.Control(func(s uintptr) { fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(outer, err)
}

// activated are the sockets that systemd opened for this process. The
// variables that tell of them are taken out of the environment.
func activated() ([]socket, error) {
	pid, _ := strconv.Atoi(os.Getenv("LISTEN_PID"))
	n, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	if pid != os.Getpid() {
		return nil, nil
	}
	var sockets []socket
	for fd := 3; fd < 3+n; fd++ {
		syscall.CloseOnExec(fd)
		l, err := listenerOf(fd)
		if err != nil {
			return nil, fmt.Errorf("socket %d of the service manager: %w", fd, err)
		}
		sockets = append(sockets, socket{FD: fd, Address: l.Addr().String(), Inherited: true})
		_ = l.Close() // it was only asked for its address
	}
	return sockets, nil
}

// listenerOf is a listener on a duplicate of fd, which stays open.
func listenerOf(fd int) (net.Listener, error) {
	second, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(second), "listener")
	defer f.Close() // FileListener has its own
	return net.FileListener(f)
}

func addressesOf(sockets []socket) []string {
	list := make([]string, len(sockets))
	for i, s := range sockets {
		list[i] = s.Address
	}
	return list
}

func closeSockets(sockets []socket) {
	for _, s := range sockets {
		_ = syscall.Close(s.FD)
	}
}

// serves reports whether one of the sockets is bound to address.
func serves(sockets []socket, address string) bool {
	for _, s := range sockets {
		if s.Address == address || sameAddress(s.Address, address) {
			return true
		}
	}
	return false
}

func sameAddress(bound, wanted string) bool {
	host, port, err := net.SplitHostPort(wanted)
	if err != nil {
		return false
	}
	boundHost, boundPort, _ := net.SplitHostPort(bound)
	if port == "0" {
		return true // any port: the one that is bound
	}
	if port != boundPort {
		return false
	}
	if host == "localhost" {
		return true
	}
	a, b := net.ParseIP(host), net.ParseIP(boundHost)
	return a != nil && a.Equal(b)
}
