package filestore

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// memory is a table behind a lock, with clocks and limits: all of a store but
// the file. Its methods that write tell changed, which wakes the saving.
type memory struct {
	opt *options

	mu     sync.RWMutex
	t      *table
	closed bool

	// anchor is a recent time of day, Unix ms. A key that lapses much later
	// than it need not have the clock read for it.
	anchor atomic.Int64
	farOff int64 // farOff, or no end of it where the clock is not the system's

	wallAt   time.Time     // the clocks when last compared; under mu
	steadyAt time.Duration // likewise

	changed func() // called without the lock after a write; never nil
	reread  func() // takes in the file if it changed; nil without a file

	nextGripe time.Time // when an eviction may be warned of again; under mu
	dropped   int       // evictions since the last warning; under mu
	sweepAt   int       // where the next sweep goes on; under mu
}

const (
	// farOff is how much later than anchor a key must lapse to be served
	// without a look at the system's clock. anchor is never older than a
	// sweep, but for the moments after the machine slept.
	farOff = int64(time.Hour / time.Millisecond)

	// clockJump is the least difference of the clocks that counts as the
	// wall clock having been set.
	clockJump = time.Minute

	gripeEvery = time.Minute
)

func newMemory(o *options) *memory {
	m := &memory{opt: o, t: newTable(), changed: func() {}, farOff: farOff}
	if o.ownClock {
		m.farOff = math.MaxInt64
	}
	m.wallAt = o.wall()
	if o.steady != nil {
		m.steadyAt = o.steady()
	}
	m.anchor.Store(m.wallAt.UnixMilli())
	m.t.useClock.Store(m.wallAt.UnixMicro())
	return m
}

// now reads the clock.
func (m *memory) now() time.Time {
	now := m.opt.wall()
	m.anchor.Store(now.UnixMilli())
	return now
}

// compareClocks finds out whether the wall clock was put forward, and then
// leaves every key the time it had left. Needs the lock for writing.
func (m *memory) compareClocks(now time.Time) {
	if m.opt.steady == nil {
		return
	}
	steady := m.opt.steady()
	passed := steady - m.steadyAt
	ahead := now.Round(0).Sub(m.wallAt.Round(0)) - passed
	if ahead > clockJump {
		m.t.putForward(ahead, m.wallAt.Add(passed+ahead/2).UnixMicro(), now)
	}
	m.wallAt, m.steadyAt = now, steady
}

// tombEnd is until when a deletion made now is remembered, Unix ms.
func (m *memory) tombEnd(now time.Time) int64 { return now.Add(m.opt.tombs).UnixMilli() }

// peek finds key for reading. slow says that the key is there but seems to
// have lapsed, or needs the clock to know. Needs the lock for reading.
func (m *memory) peek(key string) (r *record, slow bool) {
	r = m.t.at(key)
	if r == nil || r.kind == kindDead {
		return nil, false
	}
	if r.expires != 0 && r.expires-m.anchor.Load() < m.farOff {
		return r, true
	}
	return r, false
}

// read calls see with key's record, or nil if it does not exist, under the
// lock for reading.
func (m *memory) read(key string, see func(*record)) error {
	m.freshen(key)
	m.mu.RLock()
	if m.closed {
		m.mu.RUnlock()
		return ErrClosed
	}
	r, slow := m.peek(key)
	if slow && r.lapsed(m.now().UnixMilli()) {
		m.mu.RUnlock()
		return m.readLapsed(key, see)
	}
	if r != nil {
		m.t.touch(r)
	}
	see(r)
	m.mu.RUnlock()
	return nil
}

// freshen looks whether another process has written the file, if key is not
// in memory.
func (m *memory) freshen(key string) {
	if m.reread == nil {
		return
	}
	m.mu.RLock()
	r, slow := m.peek(key)
	missing := !m.closed && (r == nil || slow && r.lapsed(m.now().UnixMilli()))
	m.mu.RUnlock()
	if missing {
		m.reread()
	}
}

// readLapsed is read for a key that has lapsed, unless it is the clock.
func (m *memory) readLapsed(key string, see func(*record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.compareClocks(now)
	see(m.t.find(key, now.UnixMilli()))
	return nil
}

// edit is what one writing operation needs; under the lock.
type edit struct {
	m   *memory
	now time.Time
}

// write runs do under the lock, and then sees to the limits. key is the one
// that do looks at.
func (m *memory) write(key string, do func(e edit) error) error {
	m.freshen(key)
	return m.writeBlind(do)
}

// writeBlind is write for what does not depend on what is there.
func (m *memory) writeBlind(do func(e edit) error) error {
	m.mu.Lock()
	err := m.writeLocked(do)
	m.mu.Unlock()
	m.changed()
	return err
}

func (m *memory) writeLocked(do func(e edit) error) error {
	if m.closed {
		return ErrClosed
	}
	e := edit{m, m.now()}
	m.compareClocks(e.now) // or a clock that is wrong for a moment goes unseen, and with it what is written then
	if err := do(e); err != nil {
		return err
	}
	m.keepLimits(e.now)
	return nil
}

// keepLimits evicts what is too much, and warns of it now and then.
func (m *memory) keepLimits(now time.Time) {
	m.t.forget(m.opt.limits.Keys)
	if !m.t.overFull(m.opt.limits) {
		return
	}
	m.dropped += m.t.evict(m.opt.limits, m.opt.recency, now, m.tombEnd(now))
	if now.Before(m.nextGripe) {
		return
	}
	m.opt.log.Warn("store is full: the least recently used keys were dropped",
		"dropped", m.dropped, "keys", m.t.live, "limit", m.opt.limits.Keys, "limit_bytes", m.opt.limits.Bytes)
	m.nextGripe = now.Add(gripeEvery)
	m.dropped = 0
}

// find returns the live record of key, or nil. One that seems lapsed gets
// the benefit of a clock that was put forward.
func (e edit) find(key string) *record {
	r := e.m.t.at(key)
	if r == nil || r.kind == kindDead {
		return nil
	}
	if r.lapsed(e.now.UnixMilli()) {
		e.m.compareClocks(e.now)
		return e.m.t.find(key, e.now.UnixMilli())
	}
	return r
}

// end turns a time to live into a moment, Unix ms, rounding up.
func (e edit) end(ttl time.Duration) int64 {
	if ttl == 0 {
		return 0
	}
	return e.now.UnixMilli() + int64((ttl+time.Millisecond-1)/time.Millisecond)
}

func (m *memory) checkKey(key string) error {
	if len(key) > m.opt.limits.KeyLen {
		return fmt.Errorf("key of %d bytes, limit %d: %w", len(key), m.opt.limits.KeyLen, ErrTooLarge)
	}
	return nil
}

func (m *memory) checkSet(key, val string, ttl time.Duration) error {
	if ttl < 0 {
		return ErrTTL
	}
	if len(val) > m.opt.limits.ValueLen {
		return fmt.Errorf("value of %d bytes, limit %d: %w", len(val), m.opt.limits.ValueLen, ErrTooLarge)
	}
	return m.checkKey(key)
}
