package filestore

import (
	"context"
	"time"
)

// What TTL answers where there is no time left to tell, as Redis does.
const (
	NoTTL   time.Duration = -1 // the key exists and never expires
	Missing time.Duration = -2 // there is no such key
)

// Item is a string as Update sees it and hands it back.
type Item struct {
	Value  string
	TTL    time.Duration // time left, of at least a millisecond; 0 is for ever
	Exists bool          // false: there is no such key, or delete it
}

// Store is a key-value store of strings and hashes with times to live. A
// missing key, a key of the wrong kind and a lapsed time to live answer as in
// Redis: a missing key is an empty value, a hash without fields does not
// exist, overwriting a key removes its time to live.
//
// Keys and values are any bytes. Times to live are kept in whole
// milliseconds, rounded up; 0 means for ever and a negative one is ErrTTL.
//
// Every method may be called from any goroutine. Those without a context
// answer from memory; their writes reach the disk within the save delay, or
// when Sync or Close returns nil. Those that end in Durable return when the
// write is on disk. If they return ErrNotSaved, the write was made in memory
// and will be saved when that is possible.
type Store interface {
	// Get returns key's string, and whether the key exists. ErrWrongType if
	// it holds a hash.
	Get(key string) (value string, found bool, err error)
	// Set makes key hold value, whatever it held before.
	Set(key, value string, ttl time.Duration) error
	SetDurable(ctx context.Context, key, value string, ttl time.Duration) error
	// SetNX sets key only if it does not exist and tells whether it did. The
	// durable form decides under the file lock, so of several processes
	// exactly one is told true.
	SetNX(key, value string, ttl time.Duration) (bool, error)
	SetNXDurable(ctx context.Context, key, value string, ttl time.Duration) (bool, error)
	// Update replaces key's string by what change makes of it, in one step.
	// change may run twice and must not call the store. If it returns an
	// error, nothing is written and Update returns that error; if it returns
	// the item unchanged, nothing is written. The durable form makes the step
	// under the file lock, on what all processes wrote; a context that ends
	// before that returns its error, and nothing was changed.
	Update(key string, change func(Item) (Item, error)) error
	UpdateDurable(ctx context.Context, key string, change func(Item) (Item, error)) error
	// Delete removes keys and returns how many existed.
	Delete(keys ...string) (int, error)
	DeleteDurable(ctx context.Context, keys ...string) (int, error)
	// Exists counts the keys that exist; a key named twice counts twice.
	Exists(keys ...string) (int, error)

	// Expire gives an existing key a time to live and tells whether the key
	// exists. A ttl of zero or less deletes it.
	Expire(key string, ttl time.Duration) (bool, error)
	// Persist removes the time to live and tells whether there was one.
	Persist(key string) (bool, error)
	// TTL returns the time left, NoTTL or Missing.
	TTL(key string) (time.Duration, error)

	// HSet sets fields of a hash and returns how many are new. The hash's
	// time to live stays. Each call copies the hash's list of fields, so the
	// cost grows with it.
	HSet(key string, fields map[string]string) (added int, err error)
	HGet(key, field string) (value string, found bool, err error)
	// HGetAll returns a copy; empty, not nil, if there is no such key.
	HGetAll(key string) (map[string]string, error)
	HDel(key string, fields ...string) (removed int, err error)
	HLen(key string) (int, error)

	// Keys returns the keys that begin with prefix, sorted.
	Keys(prefix string) ([]string, error)
	// Len returns the number of keys, lapsed ones not counted.
	Len() int

	// Refresh takes in what other processes have written since the last look.
	// A miss does so by itself; a hit answers from memory. It costs one system
	// call if nothing changed.
	Refresh()
	// Sync returns nil when all that was written before is on disk.
	Sync(ctx context.Context) error
	// State tells how the store is, without waiting for a save.
	State() State
	// Check compares memory with itself and with the file, and returns what
	// does not agree. It is meant for tests and for a doctor command.
	Check() error
	// Close saves what is not saved and returns an error matching ErrNotSaved
	// if that failed; the store is closed either way. It waits for the save
	// that is running, no longer than the lock limit for another process.
	Close() error
}

// State is what a store tells about itself: what a screen or a metric shows.
type State struct {
	Location string // the file's path, followed if it is a link; "" in memory
	Keys     int    // keys in memory, lapsed ones not counted
	Unsaved  int    // writes that are in memory alone

	Err      error     // why the last save or reading failed; nil when all is well
	ErrSince time.Time // when the first of these failures was; zero without Err
	ReadOnly bool      // the file is of a newer format and is not written to

	Saves    uint64    // saves that reached the disk
	LastSave time.Time // zero before the first
	Saving   time.Time // when the running save began; zero when none runs

	SetAside []string // damaged files that were set aside, under their new names
	Evicted  uint64   // keys dropped because the store was full
}
