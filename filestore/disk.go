package filestore

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// disk is the file: which version of it memory has taken in, and how a new
// one is put in its place.
type disk struct {
	fs   FS
	name string // as it was given; may be a link

	mu   sync.Mutex
	seen FileID   // the version that memory has; zero is none
	next FileID   // the version that is being put in place
	held *version // that version, open so that its inode is not given away; may be nil
	old  []File   // earlier ones, to be closed

	closing sync.WaitGroup // of what closeOld has begun
	head    header         // what that version says of itself

	spareFrom int64    // a smaller file is always written anew
	spare     *version // the saver's alone: see spare.go; nil if there is none

	bad    FileID // a version of a newer format, which is not read again
	badErr error  // how that was said
}

// target returns the file that name leads to.
func (d *disk) target() (string, error) {
	t, err := d.fs.Resolve(d.name)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", d.name, err)
	}
	return t, nil
}

// changed tells whether the file is another than memory has taken in. It is
// one system call.
func (d *disk) changed() (bool, error) {
	info, err := d.fs.Stat(d.name)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.seen != FileID{}, nil
	case err != nil:
		return false, err
	}
	return info.ID != d.seen && info.ID != d.next, nil
}

// refuse notes that this version is not to be read again.
func (d *disk) refuse(id FileID, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad, d.badErr = id, err
}

// refused returns the error of such a version if it is still in place.
func (d *disk) refused() error {
	info, err := d.fs.Stat(d.name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.badErr != nil && info.ID == d.bad {
		return d.badErr
	}
	return nil
}

// contents is a file as it was read, still open.
type contents struct {
	file  File
	info  Info
	bytes []byte
}

// read reads the file whole. One that is too large or does not begin like
// JSON is ErrCorrupt without being read, so that whatever stands there costs
// no memory; it is returned too, without its bytes.
func (d *disk) read(limit int64) (c contents, err error) {
	info, err := d.fs.Stat(d.name)
	if err != nil {
		return c, err
	}
	if !info.Mode.IsRegular() {
		return c, fmt.Errorf("open %q: %w", d.name, ErrNotRegular)
	}
	f, err := d.fs.Open(d.name)
	if err != nil {
		return c, err
	}
	if c, err = readOpen(f, limit); err != nil && !errors.Is(err, ErrCorrupt) {
		f.Close()
		return contents{}, fmt.Errorf("read %q: %w", d.name, err)
	}
	return c, err
}

func readOpen(f File, limit int64) (c contents, err error) {
	c.file = f
	if c.info, err = f.Stat(); err != nil {
		return c, err
	}
	if !c.info.Mode.IsRegular() {
		return c, ErrNotRegular
	}
	size := c.info.ID.Size
	if size > limit {
		return c, fmt.Errorf("%w: %d bytes, limit %d", ErrCorrupt, size, limit)
	}
	r := bufio.NewReaderSize(f, 512)
	if head, err := r.Peek(int(min(size, 64))); err == nil && !beginsObject(head) {
		return c, fmt.Errorf("%w: it does not begin with {", ErrCorrupt)
	}
	b := make([]byte, size)
	populate(b)
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it was cut while being read; decoding will tell
	}
	c.bytes = b[:n]
	return c, err
}

func beginsObject(head []byte) bool {
	s := scanner{b: head}
	return s.next('{') || s.i == len(head)
}

// version is one version of the file, open.
type version struct {
	file File
	id   FileID
	name string // its temporary name, while it is not in place

	layout
}

// layout is where things are in a version that this process wrote: its lines
// are those of the table's first records, in their order, while the table
// has that shape. Zero lines: nothing is known.
type layout struct {
	shape uint64
	lines int
	end   int64 // where the footer begins
}

// took notes that memory has taken in a version. The one before it is
// returned if keep is that, else closed soon.
func (d *disk) took(v *version, h header, keep *version) (kept *version) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.held
	d.held, d.seen, d.next, d.head = v, FileID{}, FileID{}, h
	if v != nil {
		d.seen = v.id
	}
	switch {
	case was != nil && was == keep:
		return was
	case was != nil:
		d.old = append(d.old, was.file)
	}
	return nil
}

// header returns what the version in memory says of itself.
func (d *disk) header() header {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.head
}

// nextHeader is the header of the next version.
func (d *disk) nextHeader() header {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.head
	if h.store == "" {
		var b [8]byte
		rand.Read(b[:])
		h = header{store: hex.EncodeToString(b[:])}
	}
	h.save++
	return h
}

const tempMark = ".tmp-"

// replace puts a new version in the place of target: all or nothing. It is
// durable when replace returns nil. Needs the file lock.
func (d *disk) replace(target string, h header, shape uint64, lines []string) error {
	v, err := d.writeTemp(filepath.Dir(target), filepath.Base(target)+tempMark+"*", h, lines)
	if err != nil {
		return err
	}
	v.shape = shape
	return d.install(target, v, h)
}

// install gives a synced version the name target, durably.
func (d *disk) install(target string, v *version, h header) error {
	keep := d.keepForSpare(target, v, h)
	d.mu.Lock()
	d.next = v.id
	d.mu.Unlock()
	if err := d.fs.Rename(v.name, target); err != nil {
		d.discard(v)
		d.forgetName(keep)
		return err
	}
	// From here on the new version is what others see, durable or not.
	v.name = ""
	kept := d.took(v, h, keep)
	err := d.fs.SyncDir(filepath.Dir(target))
	switch {
	case kept != nil && err == nil:
		d.spare = kept
	case kept != nil:
		d.discard(kept) // its name may still be the file's on disk
	default:
		d.forgetName(keep)
	}
	return err
}

// writeTemp writes and syncs a new temporary file. If anything fails, the
// file is gone: after a failed sync nobody knows what the disk has of it, and
// a second sync that succeeds proves nothing.
func (d *disk) writeTemp(dir, pattern string, h header, lines []string) (*version, error) {
	f, err := d.fs.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	v := &version{file: f, name: f.Name()}
	v.lines, v.end = len(lines), int64(fileSize(h, lines)-len(footer))
	if err = writeFile(f, h, lines); err == nil {
		err = v.sync()
	}
	if err != nil {
		d.discard(v)
		return nil, err
	}
	return v, nil
}

// sync makes the version's bytes durable and notes what it is then.
func (v *version) sync() error {
	if err := v.file.Sync(); err != nil {
		return err
	}
	info, err := v.file.Stat()
	v.id = info.ID
	return err
}

// discard closes a version that is not in place and removes its name.
func (d *disk) discard(v *version) {
	v.file.Close()
	d.forgetName(v)
}

func (d *disk) forgetName(v *version) {
	if v != nil && v.name != "" {
		_ = d.fs.Remove(v.name) // the next process removes it
		v.name = ""
	}
}

const asideMark = ".corrupt-"

// setAside gives a damaged file a second name, one that was never used
// before, and returns it. Until the next save is through, the file keeps its
// old name too, so that no crash finds neither. Needs the file lock, which
// makes sure that the name stays free.
func (d *disk) setAside(target string, id FileID, now time.Time) (string, error) {
	dir, base := filepath.Split(target)
	names, err := d.fs.List(dir, base+asideMark)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		name = filepath.Join(dir, name)
		if info, err := d.fs.Stat(name); err == nil && info.ID == id {
			return name, nil // an earlier process came as far as this
		}
	}
	stem := base + asideMark + now.UTC().Format("20060102T150405.000000000Z")
	name := stem
	for n := 1; slices.Contains(names, name); n++ {
		name = fmt.Sprintf("%s-%d", stem, n)
	}
	name = filepath.Join(dir, name)
	if err := d.fs.Link(target, name); err != nil {
		// Some file systems know only one name for a file.
		if err := d.fs.Rename(target, name); err != nil {
			return "", err
		}
	}
	return name, d.fs.SyncDir(filepath.Dir(target))
}

// removeTemps removes what saves left behind that were killed. Needs the file
// lock: nobody is saving then.
func (d *disk) removeTemps(target string) {
	dir := filepath.Dir(target)
	names, err := d.fs.List(dir, filepath.Base(target)+tempMark)
	if err != nil {
		return // only a little space is at stake
	}
	for _, name := range names {
		_ = d.fs.Remove(filepath.Join(dir, name)) // another one may have done it
	}
}

// closeOld closes the versions that are no longer in place, without waiting
// for that. The last to close a large file that has no name has its space
// freed, which takes a while.
func (d *disk) closeOld() {
	d.mu.Lock()
	old := d.old
	d.old = nil
	d.mu.Unlock()
	if len(old) == 0 {
		return
	}
	d.closing.Go(func() {
		for _, f := range old {
			f.Close()
		}
	})
}

func (d *disk) close() {
	d.dropSpare()
	d.took(nil, header{}, nil)
	d.closeOld()
	d.closing.Wait()
}
