package filestore

import (
	"io"
	"io/fs"
)

// FS is the little that a store asks of a file system. Names are absolute.
// OS returns the real one; a test's double counts calls, fails them on cue or
// forgets what was not synced.
type FS interface {
	// Resolve returns the file that name leads to, which is no link itself: if
	// name is one, it is followed. The last may point to nothing yet.
	Resolve(name string) (string, error)
	Stat(name string) (Info, error)
	// Open opens a regular file for reading, and never waits for the other
	// end of a pipe.
	Open(name string) (File, error)
	// CreateTemp creates a new file, readable and writable by its owner
	// alone, named by pattern as os.CreateTemp does.
	CreateTemp(dir, pattern string) (File, error)
	Rename(from, to string) error
	// Link gives the file at name a second one, which must not exist.
	Link(name, second string) error
	Remove(name string) error
	// MkdirAll creates what is missing of dir, for its owner alone.
	MkdirAll(dir string) error
	Chmod(name string, mode fs.FileMode) error
	// SyncDir makes the names in dir durable.
	SyncDir(dir string) error
	// List returns the names in dir that begin with prefix.
	List(dir, prefix string) ([]string, error)
	// TryLock takes the advisory lock of the file at name, creating it if
	// need be. ErrLocked if another process has it; it should not wait.
	TryLock(name string) (Lock, error)
}

// Lock is an advisory lock that is held.
type Lock interface {
	// Wanted tells whether somebody else tried to take it since.
	Wanted() bool
	Unlock() error
}

// File is an open file of an FS.
type File interface {
	io.Reader
	io.Writer
	io.WriterAt
	Name() string
	Stat() (Info, error)
	// Sync makes the file's bytes durable, as far as the disk can be told to.
	Sync() error
	// Alone tells whether nobody else has the file open; false where the
	// system cannot tell.
	Alone() bool
	Close() error
}

// Info is what a store looks at in a file. Two equal IDs of which one file is
// still open are the same bytes.
type Info struct {
	Mode  fs.FileMode
	Links uint64 // how many names the file has
	ID    FileID
}

// FileID tells one version of a file from another.
type FileID struct {
	Dev, Ino uint64
	Size     int64
	Mtime    int64 // Unix nanoseconds
}
