package filestore

import (
	"bytes"
	"fmt"
	"strconv"
)

// lookup finds the record that is in memory for a key, and its line; "" if
// there is none.
type lookup func(key []byte) (*record, string)

// decode reads a whole file. It returns nothing with an error: ErrNewerFormat
// if the file says so wherever its layout can be followed, else ErrCorrupt.
// For a key that known has with the very same line, known's record is
// returned, which saves most of the work of reading a file again. Without
// known the records hold on to b, which must not change from then on.
func decode(b []byte, known lookup) (*image, error) {
	img := &image{}
	s := &scanner{b: b, lasting: known == nil}
	var seenEntries bool
	var version int64
	err := s.members(func(name quoted) (err error) {
		switch {
		case name.is("version") && version == 0:
			if version, err = s.number(); err == nil && version > formatVersion {
				return fmt.Errorf("%w: the file has version %d, this program reads %d", ErrNewerFormat, version, formatVersion)
			}
			return err
		case name.is("store") && img.header.store == "":
			img.header.store, err = s.storeName()
			return err
		case name.is("save") && img.header.save == 0:
			img.header.save, err = s.number()
			return err
		case name.is("entries") && !seenEntries:
			seenEntries = true
			return s.entries(img, known)
		}
		return fmt.Errorf("%w: unknown or second member %q", ErrCorrupt, name.raw)
	})
	s.space()
	if err == nil && s.i < len(b) {
		err = s.fail("the end")
	}
	if err == nil && (version != formatVersion || !seenEntries || img.header.store == "") {
		err = fmt.Errorf("%w: version, store or entries are missing", ErrCorrupt)
	}
	if err != nil {
		return nil, newerOr(b, err)
	}
	return img, nil
}

// newerOr returns an ErrNewerFormat if b is such a file by a version that
// stands anywhere in its outermost object, else err. Refusing to write over a
// later program's file matters more than the reason why it cannot be read.
func newerOr(b []byte, err error) error {
	s := &scanner{b: b}
	var newer error
	_ = s.members(func(name quoted) error { // err says already what is wrong
		raw, _, err := s.value()
		if err == nil && name.is("version") && (len(raw) > 18 || atoi(raw) > formatVersion) {
			newer = fmt.Errorf("%w: the file has version %.20s, this program reads %d", ErrNewerFormat, raw, formatVersion)
		}
		return err
	})
	if newer != nil {
		return newer
	}
	return err
}

func atoi(b []byte) int64 {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// storeName takes the name of a line of descent.
func (s *scanner) storeName() (string, error) {
	q, err := s.str()
	if err == nil && (q.escaped || len(q.raw) == 0 || len(q.raw) > 64) {
		err = fmt.Errorf("%w: odd store name", ErrCorrupt)
	}
	return string(q.raw), err
}

func (s *scanner) entries(img *image, known lookup) error {
	// A line holds some twenty bytes at least: what has fewer is not ours.
	lines := min(bytes.Count(s.b, []byte{'\n'}), len(s.b)/20)
	seen := make(map[string]struct{}, lines)
	img.records = make([]*record, 0, lines)
	return s.members(func(name quoted) error {
		r, err := s.record(name, known)
		if err != nil {
			return err
		}
		if _, twice := seen[r.key]; twice {
			return fmt.Errorf("%w: two entries of one key before byte %d", ErrCorrupt, s.i)
		}
		seen[r.key] = struct{}{}
		img.records = append(img.records, r)
		return nil
	})
}

// record takes the value of the entry called name.
func (s *scanner) record(name quoted, known lookup) (*record, error) {
	from := max(s.i-len(name.raw)-len(`"":`), 0) // where a line as we write it would begin
	if r := s.knownRecord(name, from, known); r != nil {
		return r, nil
	}
	p := entryParser{s: s, r: &record{}}
	if err := s.members(p.member); err != nil {
		return nil, err
	}
	return p.finish(name, s.b[from:s.i])
}

// knownRecord takes the entry if it stands there as known's record has it.
func (s *scanner) knownRecord(name quoted, from int, known lookup) *record {
	if known == nil || name.escaped {
		return nil
	}
	r, line := known(name.raw)
	if line == "" || !bytes.HasPrefix(s.b[from:], []byte(line)) {
		return nil
	}
	s.i = from + len(line)
	return r
}
