package filestore

import (
	"slices"
	"strings"
	"time"
)

func (m *memory) Delete(keys ...string) (n int, err error) {
	for _, key := range keys {
		m.freshen(key)
	}
	err = m.writeBlind(func(e edit) error {
		n = e.deleteAll(keys)
		return nil
	})
	return n, err
}

func (e edit) delete(key string) bool {
	if e.find(key) == nil {
		return false
	}
	e.m.t.bury(key, e.now, e.m.tombEnd(e.now))
	return true
}

func (e edit) deleteAll(keys []string) (n int) {
	for _, key := range keys {
		if e.delete(key) {
			n++
		}
	}
	return n
}

func (m *memory) Exists(keys ...string) (n int, err error) {
	for _, key := range keys {
		err = m.read(key, func(r *record) {
			if r != nil {
				n++
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (m *memory) Expire(key string, ttl time.Duration) (found bool, err error) {
	err = m.write(key, func(e edit) error {
		r := e.find(key)
		switch {
		case r == nil:
		case ttl <= 0:
			found = e.delete(key)
		default:
			found = true
			e.setExpiry(r, e.end(ttl))
		}
		return nil
	})
	return found, err
}

func (e edit) setExpiry(r *record, expires int64) {
	c := r.copy()
	c.line, c.expires = "", expires
	e.m.t.write(c, e.now)
}

func (m *memory) Persist(key string) (had bool, err error) {
	err = m.write(key, func(e edit) error {
		if r := e.find(key); r != nil && r.expires != 0 {
			had = true
			e.setExpiry(r, 0)
		}
		return nil
	})
	return had, err
}

func (m *memory) TTL(key string) (ttl time.Duration, err error) {
	err = m.read(key, func(r *record) {
		switch {
		case r == nil:
			ttl = Missing
		case r.expires == 0:
			ttl = NoTTL
		default:
			ttl = time.Duration(r.expires-m.now().UnixMilli()) * time.Millisecond
		}
	})
	return ttl, err
}

func (m *memory) Keys(prefix string) ([]string, error) {
	if m.reread != nil {
		m.reread()
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil, ErrClosed
	}
	now := m.now().UnixMilli()
	keys := []string{}
	for _, r := range m.t.recs {
		if r.kind != kindDead && !r.lapsed(now) && strings.HasPrefix(r.key, prefix) {
			keys = append(keys, r.key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (m *memory) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.lenLocked()
}

func (m *memory) lenLocked() int {
	now, n := m.now().UnixMilli(), 0
	for _, r := range m.t.recs {
		if r.kind != kindDead && !r.lapsed(now) {
			n++
		}
	}
	return n
}
