package simulation

import (
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"agentop/filestore"
)

// disk is the real file system as a process has it that may die: each
// operation is a step at which it can be killed, and a dead process changes
// nothing any more. Its locks are let go, as the kernel does.
type disk struct {
	filestore.FS
	life  *life
	calls atomic.Int64

	mu    sync.Mutex
	locks map[*lock]bool
}

func newDisk(l *life) *disk {
	d := &disk{FS: filestore.OS(), life: l, locks: map[*lock]bool{}}
	l.atDeath(d.release)
	return d
}

func (d *disk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.locks {
		_ = l.Lock.Unlock() // the process is gone
	}
	d.locks = nil
}

// alive is a step; an error when the process died at it or before.
func (d *disk) alive() error {
	d.calls.Add(1)
	if d.life.step() {
		return syscall.EIO
	}
	return nil
}

// Looking is no step: a process that dies while it looks has changed nothing.
func (d *disk) Stat(name string) (filestore.Info, error) {
	d.calls.Add(1)
	return d.FS.Stat(name)
}

func (d *disk) Open(name string) (filestore.File, error) {
	d.calls.Add(1)
	return d.FS.Open(name)
}

func (d *disk) CreateTemp(dir, pattern string) (filestore.File, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	f, err := d.FS.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return &file{f, d}, nil
}

func (d *disk) Rename(from, to string) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

func (d *disk) Link(name, second string) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.FS.Link(name, second)
}

func (d *disk) Remove(name string) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

func (d *disk) Chmod(name string, mode fs.FileMode) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.FS.Chmod(name, mode)
}

func (d *disk) SyncDir(dir string) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.FS.SyncDir(dir)
}

func (d *disk) TryLock(name string) (filestore.Lock, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	inner, err := d.FS.TryLock(name)
	if err != nil {
		return nil, err
	}
	l := &lock{inner, d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks == nil { // it died meanwhile
		_ = inner.Unlock()
		return nil, syscall.EIO
	}
	d.locks[l] = true
	return l, nil
}

type lock struct {
	filestore.Lock
	disk *disk
}

func (l *lock) Unlock() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if !l.disk.locks[l] {
		return nil
	}
	delete(l.disk.locks, l)
	return l.Lock.Unlock()
}

type file struct {
	filestore.File
	disk *disk
}

// Write of a process that dies there leaves the first half.
func (f *file) Write(p []byte) (int, error) {
	was := f.disk.life.dead()
	if err := f.disk.alive(); err != nil {
		if !was {
			_, _ = f.File.Write(p[:len(p)/2])
		}
		return 0, err
	}
	return f.File.Write(p)
}

// WriteAt is likewise.
func (f *file) WriteAt(p []byte, at int64) (int, error) {
	was := f.disk.life.dead()
	if err := f.disk.alive(); err != nil {
		if !was {
			_, _ = f.File.WriteAt(p[:len(p)/2], at)
		}
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

func (f *file) Sync() error {
	if err := f.disk.alive(); err != nil {
		return err
	}
	return f.File.Sync()
}
