package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// maxPath is the longest socket path in bytes that every system takes: macOS
// has room for 104 with the closing zero, Linux for 108.
const maxPath = 103

// lockWait is how long a start waits for another start in the same home. On a
// file system whose locks never return, agentop must still start.
const lockWait = 2 * time.Second

// Listen makes the control socket at path, for this user alone (0600 at every
// moment). A socket that a dead process left is replaced; one that somebody
// answers on is not: ErrInUse. Anything else at path is left alone and is an
// error. The directory must exist. Closing the listener removes the socket,
// unless another process has put its own there since.
func Listen(path string) (net.Listener, error) {
	return listen(path, true)
}

// Replace is Listen for a worker that takes over from the one that answers on
// path now: connections made from then on are its own, the other keeps those
// that it has.
func Replace(path string) (net.Listener, error) {
	return listen(path, false)
}

func listen(path string, refuseLive bool) (net.Listener, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("control socket %q: %w", path, err)
	}
	defer unlock()
	if err := checkOld(path, refuseLive); err != nil {
		return nil, err
	}
	l, err := bind(path)
	if err != nil {
		return nil, fmt.Errorf("control socket %q: %w", path, err)
	}
	return l, nil
}

// CheckPath returns ErrTooLong for a path that no Unix socket can have.
func CheckPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%w: %q has %d bytes, the limit is %d", ErrTooLong, path, len(path), maxPath)
	}
	return nil
}

// checkOld says whether what is at path may be replaced.
func checkOld(path string, refuseLive bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("control socket %q: something else is in its place (%s)", path, info.Mode())
	}
	if !refuseLive {
		return nil
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		// Refused means that its process is gone. Anything else (a full
		// backlog, no rights) may be a living one.
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		return fmt.Errorf("%w: %q (%w)", ErrInUse, path, err)
	}
	defer func() { _ = c.Close() }()
	if pid := peerPID(c); pid > 0 {
		return fmt.Errorf("%w: %q, process %d", ErrInUse, path, pid)
	}
	return fmt.Errorf("%w: %q", ErrInUse, path)
}

// bind makes the socket in a fresh directory that only this user can enter,
// narrows its mode and renames it into place: at path it is never wider, and
// never missing while an old one is replaced.
func bind(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	temp := filepath.Join(dir, "s")
	if err := CheckPath(temp); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(temp, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	info, err := os.Lstat(temp)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &listener{UnixListener: l, path: path, file: info}, nil
}

// listener accepts connections of this user (and root) alone.
type listener struct {
	*net.UnixListener
	path  string
	file  fs.FileInfo
	close sync.Once
}

// Accept waits for the next connection of this user. The socket's mode keeps
// others out already; this holds also where a file system ignores modes.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.UnixListener.Accept()
		if err != nil {
			return nil, err
		}
		if uid := peerUID(c); uid < 0 || uid == 0 || uid == os.Getuid() {
			return c, nil
		}
		_ = c.Close() // a stranger gets no answer
	}
}

// Addr is the path that clients use, not the one the socket was made under.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops listening and removes the socket if it is still this one.
func (l *listener) Close() error {
	l.close.Do(func() {
		unlock, err := lockDir(filepath.Dir(l.path))
		if err != nil {
			return // a socket file that nobody answers on does no harm
		}
		defer unlock()
		if info, err := os.Lstat(l.path); err == nil && os.SameFile(info, l.file) {
			_ = os.Remove(l.path)
		}
	})
	return l.UnixListener.Close()
}

// lockDir holds the directory against another start or end of a proxy there,
// so that looking at the old socket and replacing it are one step. It gives up
// waiting after lockWait and goes on without the lock.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockWait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break // held, or locks do not work here
		}
	}
	return func() { _ = d.Close() }, nil // closing unlocks
}
