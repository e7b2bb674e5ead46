package filestore

import (
	"strings"
	"time"
)

// Get is read written out, since a closure and a defer would cost as much
// again.
func (m *memory) Get(key string) (string, bool, error) {
	m.mu.RLock()
	r, slow := m.peek(key)
	if r == nil || slow || m.closed {
		m.mu.RUnlock()
		return m.getSlowly(key)
	}
	if r.kind != kindString {
		m.mu.RUnlock()
		return "", false, ErrWrongType
	}
	m.t.touch(r)
	val := r.val
	m.mu.RUnlock()
	return val, true, nil
}

func (m *memory) getSlowly(key string) (val string, found bool, err error) {
	err2 := m.read(key, func(r *record) { val, found, err = stringOf(r) })
	if err2 != nil {
		return "", false, err2
	}
	return val, found, err
}

func stringOf(r *record) (string, bool, error) {
	switch {
	case r == nil:
		return "", false, nil
	case r.kind != kindString:
		return "", false, ErrWrongType
	}
	return r.val, true, nil
}

func (m *memory) Set(key, val string, ttl time.Duration) error {
	if err := m.checkSet(key, val, ttl); err != nil {
		return err
	}
	return m.writeBlind(func(e edit) error {
		e.setString(key, val, e.end(ttl))
		return nil
	})
}

// setString makes key a string. Key and value are copied, since callers cut
// them from larger buffers.
func (e edit) setString(key, val string, expires int64) {
	e.m.t.write(&record{key: e.ownKey(key), val: strings.Clone(val), expires: expires}, e.now)
}

// ownKey returns key without holding on to the caller's bytes.
func (e edit) ownKey(key string) string {
	if r := e.m.t.at(key); r != nil {
		return r.key
	}
	return strings.Clone(key)
}

func (m *memory) SetNX(key, val string, ttl time.Duration) (set bool, err error) {
	if err := m.checkSet(key, val, ttl); err != nil {
		return false, err
	}
	err = m.write(key, func(e edit) error {
		set = e.setNX(key, val, ttl)
		return nil
	})
	return set, err
}

func (e edit) setNX(key, val string, ttl time.Duration) bool {
	if e.find(key) != nil {
		return false
	}
	e.setString(key, val, e.end(ttl))
	return true
}

func (m *memory) Update(key string, change func(Item) (Item, error)) error {
	if err := m.checkKey(key); err != nil {
		return err
	}
	return m.write(key, func(e edit) error { return e.update(key, change) })
}

func (e edit) update(key string, change func(Item) (Item, error)) error {
	r := e.find(key)
	val, found, err := stringOf(r)
	if err != nil {
		return err
	}
	old := Item{Value: val, Exists: found}
	if found && r.expires != 0 {
		old.TTL = time.Duration(r.expires-e.now.UnixMilli()) * time.Millisecond
	}
	item, err := change(old)
	switch {
	case err != nil:
		return err
	case item == old || !item.Exists && !old.Exists:
		return nil
	case !item.Exists:
		e.delete(key)
		return nil
	}
	if err := e.m.checkSet(key, item.Value, item.TTL); err != nil {
		return err
	}
	e.setString(key, item.Value, e.end(item.TTL))
	return nil
}
