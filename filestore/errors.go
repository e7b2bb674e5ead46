package filestore

import "errors"

// The errors that somebody decides by. All are matched with errors.Is.
var (
	// ErrWrongType is returned by an operation on a key that holds the other
	// kind of value, such as HGet on a string. Nothing was changed.
	ErrWrongType = errors.New("key holds the wrong kind of value")

	// ErrTTL is returned where a time to live is negative.
	ErrTTL = errors.New("time to live out of range")

	// ErrTooLarge is returned for a key or value over the limits of Limits.
	// Nothing was changed.
	ErrTooLarge = errors.New("too large")

	// ErrNotSaved is returned by the durable operations and by Sync when the
	// value is served from memory but is not known to be on disk. The store
	// goes on trying, and State tells when it succeeded.
	ErrNotSaved = errors.New("not saved")

	// ErrNewerFormat means that the file was written by a later version of
	// this package. The file is left as it is, and writes stay in memory.
	ErrNewerFormat = errors.New("newer format")

	// ErrCorrupt means that the bytes are not a whole file of this package.
	// A store sets such a file aside; callers meet it only from Check.
	ErrCorrupt = errors.New("corrupt file")

	// ErrNotRegular means that a directory, device, socket or pipe stands
	// where the file should be. It is never moved or opened for writing.
	ErrNotRegular = errors.New("not a regular file")

	// ErrLocked means that another process holds the lock and did not let go
	// within the limit.
	ErrLocked = errors.New("locked by another process")

	// ErrClosed is returned by every operation after Close.
	ErrClosed = errors.New("store is closed")
)
