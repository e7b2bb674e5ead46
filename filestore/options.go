package filestore

import (
	"log/slog"
	"time"
)

// Limits bound what a store holds. A zero field means its default.
type Limits struct {
	Keys     int   // keys; beyond, the least recently used goes; default 65,536
	Bytes    int64 // keys and values together; beyond, likewise; default 64 MiB
	KeyLen   int   // bytes of one key or hash field; default 4 KiB
	ValueLen int   // bytes of one string, or of one hash in all; default 1 MiB
	FileLen  int64 // a larger file is set aside unread; default 512 MiB
}

// An Option changes what Open would do without it.
type Option func(*options)

type options struct {
	limits   Limits
	log      *slog.Logger
	wall     func() time.Time
	steady   func() time.Duration
	recency  func(key string) time.Time
	fs       FS
	delay    time.Duration
	sweep    time.Duration
	tombs    time.Duration
	lockWait time.Duration
	spare    int64
	fallback bool
	ownClock bool // wall is not the system's
}

// WithLimits replaces the limits that are not zero.
func WithLimits(l Limits) Option {
	return func(o *options) {
		o.limits.Keys = or(l.Keys, o.limits.Keys)
		o.limits.Bytes = or(l.Bytes, o.limits.Bytes)
		o.limits.KeyLen = or(l.KeyLen, o.limits.KeyLen)
		o.limits.ValueLen = or(l.ValueLen, o.limits.ValueLen)
		o.limits.FileLen = or(l.FileLen, o.limits.FileLen)
	}
}

// WithLogger sends warnings there: damage, failed saves, evictions. They
// speak of files and counts, and never contain a key or a value. The default
// is slog.Default().
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithClock replaces the clocks. wall tells the time of day, by which keys
// expire. steady tells the time since some fixed moment and runs while the
// machine sleeps; a wall clock that gains more than a minute on it was put
// forward, and what is alive then keeps the time it had left. A nil steady
// turns that off. Both must allow calls from any goroutine.
func WithClock(wall func() time.Time, steady func() time.Duration) Option {
	return func(o *options) { o.wall, o.steady, o.ownClock = wall, steady, true }
}

// WithRecency tells when a key was last used where the caller knows of uses
// that the store does not see. Of its answer and the store's own the later
// counts. It is called with the store locked and must not call the store.
func WithRecency(used func(key string) time.Time) Option {
	return func(o *options) { o.recency = used }
}

// WithSaveDelay sets how long a plain write may wait for its save. The
// default is 2 s.
func WithSaveDelay(d time.Duration) Option { return func(o *options) { o.delay = d } }

// WithSweep sets how often lapsed keys are removed and the file is looked at
// for changes. The default is a minute.
func WithSweep(d time.Duration) Option { return func(o *options) { o.sweep = d } }

// WithTombstones sets how long a deletion is remembered for the sake of other
// processes. The default is an hour; it must be longer than twice the sweep.
func WithTombstones(d time.Duration) Option { return func(o *options) { o.tombs = d } }

// WithLockWait sets how long a save tries for the lock. The default is 2 s.
func WithLockWait(d time.Duration) Option { return func(o *options) { o.lockWait = d } }

// WithSpare sets from how many bytes on a file is added to and not written anew
// where saves that only add keys follow each other closely. The default is
// 64 KiB; below, it gains nothing.
func WithSpare(from int64) Option { return func(o *options) { o.spare = from } }

// WithMemoryFallback lets Open succeed on a file that cannot be read or be
// created: the store serves from memory, State says why, and it becomes
// durable by itself once the cause is gone.
func WithMemoryFallback() Option { return func(o *options) { o.fallback = true } }

// WithFS replaces the file system, for tests that count or fail its calls.
func WithFS(fs FS) Option { return func(o *options) { o.fs = fs } }

func defaults() *options {
	return &options{
		limits: Limits{
			Keys:     65536,
			Bytes:    64 << 20,
			KeyLen:   4 << 10,
			ValueLen: 1 << 20,
			FileLen:  512 << 20,
		},
		wall:     time.Now,
		steady:   sinceBoot,
		fs:       OS(),
		delay:    2 * time.Second,
		sweep:    time.Minute,
		tombs:    time.Hour,
		lockWait: 2 * time.Second,
		spare:    64 << 10,
	}
}

func or[T int | int64](a, b T) T {
	if a != 0 {
		return a
	}
	return b
}
