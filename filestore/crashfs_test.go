package filestore_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"agentop/filestore"
)

// crashFS is a file system in memory that remembers what a power cut leaves:
// of a file the bytes that were synced, of a folder the names that were. What
// was not synced may be there, in part, or not at all, and in any order.
//
// It can be cut at a given call: that call and all after it fail and change
// nothing. It can fail a call once or for good.
type crashFS struct {
	mu     sync.Mutex
	inodes map[uint64]*inode
	names  map[string]uint64 // as programs see them
	safe   map[string]uint64 // as they surely are on disk
	undone []nameOp          // what lies between
	last   uint64
	now    int64
	locked map[string]bool

	calls int      // how many calls there were
	trace []string // what they were
	cutAt int      // the call at which the power fails; 0 is never
	fail  func(n int, call string) error
}

type inode struct {
	data, synced []byte
	lost         bool // a sync failed: the system dropped what was unsynced and calls it clean
	mode         fs.FileMode
	mtime        int64
}

// nameOp is a change of names, atomic on disk.
type nameOp struct {
	add  string // "" if none
	ino  uint64
	drop string // "" if none
}

var errCut = errors.New("the power is off")

func newCrashFS() *crashFS {
	return &crashFS{
		inodes: map[uint64]*inode{},
		names:  map[string]uint64{},
		safe:   map[string]uint64{},
		locked: map[string]bool{},
	}
}

// call counts one call and tells whether it fails. Needs mu.
func (c *crashFS) call(format string, args ...any) error {
	c.calls++
	what := fmt.Sprintf(format, args...)
	c.trace = append(c.trace, what)
	if c.cutAt > 0 && c.calls >= c.cutAt {
		return errCut
	}
	if c.fail != nil {
		return c.fail(c.calls, what)
	}
	return nil
}

func (c *crashFS) change(op nameOp) {
	c.undone = append(c.undone, op)
	op.apply(c.names)
}

func (op nameOp) apply(names map[string]uint64) {
	if op.drop != "" {
		delete(names, op.drop)
	}
	if op.add != "" {
		names[op.add] = op.ino
	}
}

func (c *crashFS) Resolve(name string) (string, error) { return name, nil }
func (c *crashFS) MkdirAll(string) error               { return nil }

func (c *crashFS) Stat(name string) (filestore.Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("stat %s", filepath.Base(name)); err != nil {
		return filestore.Info{}, err
	}
	ino, ok := c.names[name]
	if !ok {
		return filestore.Info{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return c.info(ino), nil
}

func (c *crashFS) info(ino uint64) filestore.Info {
	n := c.inodes[ino]
	links := uint64(0)
	for _, i := range c.names {
		if i == ino {
			links++
		}
	}
	return filestore.Info{Mode: n.mode, Links: links, ID: filestore.FileID{Dev: 1, Ino: ino, Size: int64(len(n.data)), Mtime: n.mtime}}
}

func (c *crashFS) Open(name string) (filestore.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("open %s", filepath.Base(name)); err != nil {
		return nil, err
	}
	ino, ok := c.names[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &crashFile{c: c, name: name, ino: ino, ropen: true}, nil
}

func (c *crashFS) CreateTemp(dir, pattern string) (filestore.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("create %s", pattern); err != nil {
		return nil, err
	}
	c.last++
	name := filepath.Join(dir, strings.Replace(pattern, "*", fmt.Sprint(c.last), 1))
	c.inodes[c.last] = &inode{mode: 0o600}
	c.change(nameOp{add: name, ino: c.last})
	return &crashFile{c: c, name: name, ino: c.last}, nil
}

func (c *crashFS) Rename(from, to string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("rename to %s", filepath.Base(to)); err != nil {
		return err
	}
	ino, ok := c.names[from]
	if !ok {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	c.change(nameOp{add: to, ino: ino, drop: from})
	return nil
}

func (c *crashFS) Link(name, second string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("link to %s", filepath.Base(second)); err != nil {
		return err
	}
	if _, ok := c.names[second]; ok {
		return &fs.PathError{Op: "link", Path: second, Err: fs.ErrExist}
	}
	c.change(nameOp{add: second, ino: c.names[name]})
	return nil
}

func (c *crashFS) Remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("remove %s", filepath.Base(name)); err != nil {
		return err
	}
	c.change(nameOp{drop: name})
	return nil
}

func (c *crashFS) Chmod(name string, mode fs.FileMode) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("chmod %s", filepath.Base(name)); err != nil {
		return err
	}
	c.inodes[c.names[name]].mode = mode
	return nil
}

func (c *crashFS) SyncDir(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("sync folder"); err != nil {
		return err
	}
	c.safe, c.undone = maps.Clone(c.names), nil
	return nil
}

func (c *crashFS) List(dir, prefix string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("list %s*", prefix); err != nil {
		return nil, err
	}
	var names []string
	for name := range c.names {
		if base := filepath.Base(name); strings.HasPrefix(base, prefix) {
			names = append(names, base)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (c *crashFS) TryLock(name string) (filestore.Lock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("lock"); err != nil {
		return nil, err
	}
	if c.locked[name] {
		return nil, filestore.ErrLocked
	}
	c.locked[name] = true
	return crashLock{c, name}, nil
}

type crashLock struct {
	c    *crashFS
	name string
}

func (l crashLock) Wanted() bool { return false }

func (l crashLock) Unlock() error {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	delete(l.c.locked, l.name)
	return nil
}

type crashFile struct {
	c     *crashFS
	name  string
	ino   uint64
	at    int
	ropen bool // for reading: its closing is no call that could matter
}

func (f *crashFile) Name() string { return f.name }

func (f *crashFile) Stat() (filestore.Info, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.call("fstat"); err != nil {
		return filestore.Info{}, err
	}
	return f.c.info(f.ino), nil
}

func (f *crashFile) Read(p []byte) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.call("read"); err != nil {
		return 0, err
	}
	data := f.c.inodes[f.ino].data
	if f.at >= len(data) {
		return 0, io.EOF
	}
	n := copy(p, data[f.at:])
	f.at += n
	return n, nil
}

func (f *crashFile) Write(p []byte) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.call("write"); err != nil {
		return 0, err
	}
	n := f.c.inodes[f.ino]
	n.data = append(n.data[:len(n.data):len(n.data)], p...)
	f.c.now++
	n.mtime = f.c.now
	return len(p), nil
}

func (f *crashFile) WriteAt(p []byte, at int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.call("write at"); err != nil {
		return 0, err
	}
	n := f.c.inodes[f.ino]
	data := slices.Clone(n.data)
	n.data = append(data[:at], p...)
	if int(at)+len(p) < len(data) { // append has written into data
		n.data = data
	}
	f.c.now++
	n.mtime = f.c.now
	return len(p), nil
}

func (f *crashFile) Alone() bool { return true }

// Sync makes the bytes safe. A sync that fails loses them for good, though a
// second one says that all is well: so Linux does.
func (f *crashFile) Sync() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	n := f.c.inodes[f.ino]
	if err := f.c.call("sync file"); err != nil {
		n.lost = true
		return err
	}
	if !n.lost {
		n.synced = n.data
	}
	return nil
}

func (f *crashFile) Close() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.ropen {
		return nil
	}
	return f.c.call("close")
}

// unsynced is what may become of a file's unsynced bytes.
var unsynced = map[string]func(n *inode) []byte{
	"bytes lost": func(n *inode) []byte { return n.synced },
	"bytes kept": func(n *inode) []byte { return n.data },
	"half kept":  func(n *inode) []byte { return over(n.synced, n.data[:len(n.data)/2], 0) },
	"end kept":   func(n *inode) []byte { return over(n.synced, n.data[len(n.data)/2:], len(n.data)/2) },
	"zeroes": func(n *inode) []byte {
		return append(slices.Clone(n.synced), make([]byte, max(0, len(n.data)-len(n.synced)))...)
	},
}

// over is a file whose old bytes have new ones in part, and zeroes between.
func over(old, part []byte, at int) []byte {
	b := make([]byte, max(len(old), at+len(part)))
	copy(b, old)
	copy(b[at:], part)
	return b
}

// afterCut calls see with every file system that a power cut at this moment
// may leave: each selection of the unsynced names with each fate of the
// unsynced bytes.
func (c *crashFS) afterCut(see func(state string, left *crashFS)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	for fate, bytes := range unsynced {
		for mask := range 1 << len(c.undone) {
			left := newCrashFS()
			left.last = c.last + 100
			left.names = maps.Clone(c.safe)
			for i, op := range c.undone {
				if mask>>i&1 == 1 {
					op.apply(left.names)
				}
			}
			for _, ino := range left.names {
				data := bytes(c.inodes[ino])
				left.inodes[ino] = &inode{data: data, synced: data, mode: c.inodes[ino].mode}
			}
			left.safe = maps.Clone(left.names)
			if print := left.print(); !seen[print] {
				seen[print] = true
				see(fmt.Sprintf("%s, names %b", fate, mask), left)
			}
		}
	}
}

// print tells two contents apart.
func (c *crashFS) print() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.names)) {
		fmt.Fprintf(&b, "%s=%x;", name, c.inodes[c.names[name]].data)
	}
	return b.String()
}

// errAt fails the n-th call, and those after it if lasting.
func errAt(at int, lasting bool, err syscall.Errno) func(int, string) error {
	return func(n int, _ string) error {
		if n == at || lasting && n > at {
			return err
		}
		return nil
	}
}
