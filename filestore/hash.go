package filestore

import (
	"fmt"
	"slices"
	"strings"
)

// hashOf returns r's fields; none for a missing key.
func hashOf(r *record) ([]field, error) {
	switch {
	case r == nil:
		return nil, nil
	case r.kind != kindHash:
		return nil, ErrWrongType
	}
	return r.hash, nil
}

func (m *memory) HSet(key string, fields map[string]string) (added int, err error) {
	if err := m.checkKey(key); err != nil {
		return 0, err
	}
	for name := range fields {
		if err := m.checkKey(name); err != nil {
			return 0, fmt.Errorf("field: %w", err)
		}
	}
	err = m.write(key, func(e edit) error {
		added, err = e.hset(key, fields)
		return err
	})
	return added, err
}

func (e edit) hset(key string, fields map[string]string) (added int, err error) {
	old := e.find(key)
	was, err := hashOf(old)
	if err != nil || len(fields) == 0 {
		return 0, err
	}
	r := &record{key: e.ownKey(key), kind: kindHash, hash: mergeFields(was, fields)}
	if old != nil {
		r.expires = old.expires
	}
	if n := r.valueLen(); n > e.m.opt.limits.ValueLen {
		return 0, fmt.Errorf("hash of %d bytes, limit %d: %w", n, e.m.opt.limits.ValueLen, ErrTooLarge)
	}
	e.m.t.write(r, e.now)
	return len(r.hash) - len(was), nil
}

// mergeFields returns a new list with was and set in it, sorted by name.
func mergeFields(was []field, set map[string]string) []field {
	all := make([]field, 0, len(was)+len(set))
	for _, f := range was {
		if _, over := set[f.name]; !over {
			all = append(all, f)
		}
	}
	for name, val := range set {
		all = append(all, field{strings.Clone(name), strings.Clone(val)})
	}
	slices.SortFunc(all, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return all
}

func (m *memory) HGet(key, name string) (val string, found bool, err error) {
	err2 := m.read(key, func(r *record) {
		if _, err = hashOf(r); err == nil && r != nil {
			val, found = r.field(name)
		}
	})
	if err2 != nil {
		return "", false, err2
	}
	return val, found, err
}

func (m *memory) HGetAll(key string) (map[string]string, error) {
	var hash []field
	var err error
	err2 := m.read(key, func(r *record) { hash, err = hashOf(r) })
	if err2 != nil {
		return nil, err2
	}
	all := make(map[string]string, len(hash))
	for _, f := range hash {
		all[f.name] = f.val
	}
	return all, err
}

func (m *memory) HDel(key string, names ...string) (removed int, err error) {
	err = m.write(key, func(e edit) error {
		removed, err = e.hdel(key, names)
		return err
	})
	return removed, err
}

// hdel removes fields; with the last one the key goes.
func (e edit) hdel(key string, names []string) (int, error) {
	old := e.find(key)
	was, err := hashOf(old)
	if err != nil {
		return 0, err
	}
	going := make(map[string]bool, len(names))
	for _, name := range names {
		going[name] = true
	}
	rest := slices.DeleteFunc(slices.Clone(was), func(f field) bool { return going[f.name] })
	removed := len(was) - len(rest)
	switch {
	case removed == 0:
	case len(rest) == 0:
		e.delete(key)
	default:
		e.m.t.write(&record{key: old.key, kind: kindHash, hash: rest, expires: old.expires}, e.now)
	}
	return removed, nil
}

func (m *memory) HLen(key string) (n int, err error) {
	err2 := m.read(key, func(r *record) {
		var hash []field
		hash, err = hashOf(r)
		n = len(hash)
	})
	if err2 != nil {
		return 0, err2
	}
	return n, err
}
