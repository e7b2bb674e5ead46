package reqlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fileSystem is all that the log asks of the system, so that tests can fail on
// cue and count what is done.
type fileSystem interface {
	MakeDir(dir string) (narrowed bool, err error)
	OpenAppend(name string) (appendFile, error)
	OpenRead(name string) (readFile, error)
	Same(name string, f appendFile) bool // whether name still is that file
	List(dir string) ([]logFile, error)
	Remove(name string) error
	SyncDir(dir string) error
}

type appendFile interface {
	io.Writer
	io.Closer
	Sync() error
	End() (int64, error) // offset after the last write of this handle
	Tail() (size int64, last byte, err error)
}

type readFile interface {
	io.ReaderAt
	io.Closer
}

// fileID orders the log's files: the day in days since 1970, and the part of
// the day from 1.
type fileID uint32

func newFileID(day, part int) fileID { return fileID(day<<8 | part&0xff) }

func (id fileID) day() int  { return int(id >> 8) }
func (id fileID) part() int { return int(id & 0xff) }

const (
	filePrefix = "requests-"
	fileSuffix = ".jsonl"
	maxParts   = 255
)

// name is requests-2026-01-02.jsonl, and requests-2026-01-02.2.jsonl for the
// second part of a day that wrote more than a part may hold.
func (id fileID) name() string {
	day := time.Unix(int64(id.day())*86400, 0).UTC().Format(time.DateOnly)
	if id.part() > 1 {
		day += "." + strconv.Itoa(id.part())
	}
	return filePrefix + day + fileSuffix
}

// parseName is the reverse of name.
func parseName(name string) (fileID, bool) {
	s, ok := strings.CutPrefix(name, filePrefix)
	if !ok {
		return 0, false
	}
	if s, ok = strings.CutSuffix(s, fileSuffix); !ok {
		return 0, false
	}
	date, rest, parts := strings.Cut(s, ".")
	t, err := time.Parse(time.DateOnly, date)
	if err != nil || t.Unix() < 0 {
		return 0, false
	}
	part := 1
	if parts {
		part, err = strconv.Atoi(rest)
		if err != nil || part < 2 || part > maxParts {
			return 0, false
		}
	}
	id := newFileID(int(t.Unix()/86400), part)
	return id, id.name() == name
}

func dayOf(t time.Time) int { return int(max(t.Unix(), 0) / 86400) }

// logFile is one file of the log as a listing shows it.
type logFile struct {
	id   fileID
	size int64
}

// osFiles is the real file system.
type osFiles struct{}

// MakeDir makes the directory, readable by its owner alone, and takes rights
// of others from one that exists.
func (osFiles) MakeDir(dir string) (narrowed bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	return narrow(dir, 0o700)
}

func narrow(name string, mode fs.FileMode) (bool, error) {
	info, err := os.Stat(name)
	if err != nil {
		return false, err
	}
	if info.Mode().Perm()&^mode == 0 {
		return false, nil
	}
	return true, os.Chmod(name, info.Mode().Perm()&mode)
}

func (osFiles) OpenAppend(name string) (appendFile, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&^0o600 != 0 {
		// Rights that cannot be narrowed are no reason to write no log.
		_ = f.Chmod(info.Mode().Perm() & 0o600)
	}
	return osAppend{f}, nil
}

func (osFiles) OpenRead(name string) (readFile, error) { return os.Open(name) }

func (osFiles) Same(name string, f appendFile) bool {
	now, err := os.Stat(name)
	if err != nil {
		return false
	}
	was, err := f.(osAppend).Stat()
	return err == nil && os.SameFile(now, was)
}

// List returns the log's files, oldest first. No directory is an empty one.
func (osFiles) List(dir string) ([]logFile, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []logFile
	for _, e := range names {
		id, ok := parseName(e.Name())
		if !ok {
			continue
		}
		// One that another process has just removed is none.
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
			out = append(out, logFile{id, info.Size()})
		}
	}
	slices.SortFunc(out, func(a, b logFile) int { return int(a.id) - int(b.id) })
	return out, nil
}

func (osFiles) Remove(name string) error { return os.Remove(name) }

func (osFiles) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// osAppend is a file opened with O_APPEND: each write goes to the end of the
// file as it is at that moment, also when another process writes too.
type osAppend struct{ *os.File }

// End is exact for the writer's own last write: with O_APPEND the system moves
// the handle's offset to where that write ended.
func (f osAppend) End() (int64, error) { return f.Seek(0, io.SeekCurrent) }

func (f osAppend) Tail() (size int64, last byte, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, 0, err
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], info.Size()-1); err != nil {
		return 0, 0, fmt.Errorf("read the last byte: %w", err)
	}
	return info.Size(), b[0], nil
}
