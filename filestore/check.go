package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// check compares the table with itself. Needs the lock.
func (t *table) check() error {
	var live int
	var size int64
	if len(t.index) != len(t.recs) {
		return fmt.Errorf("check: %d keys in the index, %d records", len(t.index), len(t.recs))
	}
	for i, r := range t.recs {
		if at, ok := t.index[r.key]; !ok || at != i {
			return fmt.Errorf("check: record %d is at %d in the index", i, at)
		}
		if r.line != "" && r.line != r.encode() {
			return fmt.Errorf("check: record %d is not what its line says", i)
		}
		if r.stamp > t.stamp || r.gen > t.gen {
			return fmt.Errorf("check: record %d has a stamp or generation still to come", i)
		}
		if !slices.IsSortedFunc(r.hash, func(a, b field) int { return strings.Compare(a.name, b.name) }) {
			return fmt.Errorf("check: record %d has unsorted fields", i)
		}
		if r.kind != kindDead {
			live++
			size += r.size()
		}
	}
	if live != t.live || size != t.bytes {
		return fmt.Errorf("check: counted %d keys of %d bytes, the table says %d of %d", live, size, t.live, t.bytes)
	}
	return nil
}

// Check holds the file against memory, too: every record that counts as saved
// must be there, or a newer one.
func (s *fileStore) Check() error {
	s.mu.RLock()
	err := s.t.check()
	saved := map[string]*record{}
	for _, r := range s.t.recs {
		if !s.t.dirty(r) && r.kind != kindDead {
			saved[r.key] = r
		}
	}
	now := s.now().UnixMilli()
	s.mu.RUnlock()
	if err != nil {
		return err
	}
	got, err := s.disk.read(s.opt.limits.FileLen)
	if errors.Is(err, fs.ErrNotExist) {
		if len(saved) > 0 {
			return fmt.Errorf("check %q: %d keys count as saved and there is no file", s.disk.name, len(saved))
		}
		return nil
	}
	if err != nil {
		return err
	}
	got.file.Close()
	img, err := decode(got.bytes, nil)
	if err != nil {
		return fmt.Errorf("check %q: %w", s.disk.name, err)
	}
	for _, f := range img.records {
		if r := saved[f.key]; r != nil && !newer(r, f) {
			delete(saved, f.key)
		}
	}
	for _, r := range saved {
		if !r.lapsed(now) {
			return fmt.Errorf("check %q: a key that counts as saved is older or missing there", s.disk.name)
		}
	}
	return nil
}
