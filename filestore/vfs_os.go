//go:build unix

package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

// osFile is a file that begins to reach the disk while it is being written,
// so that the sync at its end has less to wait for.
type osFile struct {
	*os.File
	written, begun int64
}

// writeAhead is how many bytes are written before the disk is told to begin.
const writeAhead = 1 << 20

func (f *osFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	if ahead := f.written - f.begun; ahead >= writeAhead && err == nil {
		beginWriting(int(f.Fd()), f.begun, ahead)
		f.begun = f.written
	}
	return n, err
}

// maxLinks is how many links in a row Resolve follows, as Linux does.
const maxLinks = 40

// Resolve takes one system call where name is no link. A folder's links are
// followed only for a link that is relative to it; else the system does that.
func (osFS) Resolve(name string) (string, error) {
	for range maxLinks {
		to, err := os.Readlink(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) {
			return name, nil // nothing there yet, or no link
		}
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(name))
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		name = to
	}
	return "", &fs.PathError{Op: "resolve", Path: name, Err: syscall.ELOOP}
}

func (osFS) Stat(name string) (Info, error) {
	var st unix.Stat_t
	if err := ignoreEINTR(func() error { return unix.Stat(name, &st) }); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		mode |= fs.ModeIrregular
	}
	return Info{
		Mode:  mode,
		Links: uint64(st.Nlink), //nolint:unconvert // of another type on macOS
		ID: FileID{
			Dev: uint64(st.Dev), //nolint:unconvert // of another type on macOS
			Ino: st.Ino, Size: st.Size, Mtime: st.Mtim.Nano(),
		},
	}
}

func (osFS) Open(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f}, nil
}

func (osFS) CreateTemp(dir, pattern string) (File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f}, nil
}

// Rename leaves out os.Rename's look at the new name, by which a folder there
// is told of otherwise than the system does.
func (osFS) Rename(from, to string) error {
	if err := ignoreEINTR(func() error { return unix.Rename(from, to) }); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (osFS) Link(name, second string) error { return os.Link(name, second) }
func (osFS) Remove(name string) error       { return os.Remove(name) }
func (osFS) MkdirAll(dir string) error      { return os.MkdirAll(dir, 0o700) }

func (osFS) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

// SyncDir opens dir without the calls by which os.Open finds out that nothing
// there can be waited for.
func (osFS) SyncDir(dir string) error {
	var fd int
	err := ignoreEINTR(func() (err error) {
		fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	err = syncFD(fd)
	// Some network and FUSE file systems cannot sync a directory and say so;
	// there is nothing more to be done for the name there.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return &fs.PathError{Op: "sync directory", Path: dir, Err: err}
	}
	return nil
}

func (osFS) List(dir, prefix string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := d.Readdirnames(-1)
	var names []string
	for _, name := range all {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, err
}

// TryLock takes flock's exclusive lock. A lock on a file that was meanwhile
// deleted would exclude nobody, so the name must still lead to that file.
func (osFS) TryLock(name string) (Lock, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		l := osLock{f: f}
		ok, err := l.take()
		if ok {
			return &l, nil
		}
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("lock %q: %w", name, err)
		}
	}
}

// osLock is a file with a lock on it. Who finds it taken sets the file's time
// of change, by which the holder knows that it should leave a gap.
type osLock struct {
	f     *os.File
	mtime int64
}

// take tries once. Neither ok nor an error: the name leads to another file.
func (l *osLock) take() (ok bool, err error) {
	fd := int(l.f.Fd())
	err = ignoreEINTR(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		now := unix.NsecToTimeval(time.Now().UnixNano())
		_ = unix.Futimes(fd, []unix.Timeval{now, now}) // a courtesy: without it the wait is longer
		return false, ErrLocked
	}
	if err != nil {
		return false, err
	}
	var held, named unix.Stat_t
	if err := unix.Fstat(fd, &held); err != nil {
		return false, err
	}
	l.mtime = held.Mtim.Nano()
	err = unix.Stat(l.f.Name(), &named)
	return err == nil && named.Ino == held.Ino && named.Dev == held.Dev, nil
}

func (l *osLock) Wanted() bool {
	var st unix.Stat_t
	return unix.Fstat(int(l.f.Fd()), &st) == nil && st.Mtim.Nano() != l.mtime
}

// Unlock closes the file, which lets go of the lock.
func (l *osLock) Unlock() error { return l.f.Close() }

func (f *osFile) Stat() (Info, error) {
	var st unix.Stat_t
	if err := ignoreEINTR(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return infoOf(&st), nil
}

func (f *osFile) Sync() error {
	if err := syncFD(int(f.Fd())); err != nil {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
	}
	return nil
}

func (f *osFile) Alone() bool { return alone(int(f.Fd())) }

func ignoreEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
