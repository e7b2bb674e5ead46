package filestore

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
)

// entryParser collects an entry's members in whatever order they come.
type entryParser struct {
	s       *scanner
	r       *record
	value   string // the member that held the value; "" before
	sum     string
	key64   bool
	hasTime bool
}

func (p *entryParser) member(name quoted) (err error) {
	if name.escaped {
		return fmt.Errorf("%w: odd member", ErrCorrupt)
	}
	switch n := string(name.raw); n {
	case "string", "base64", "json", "hash", "hash_base64", "deleted":
		if p.value != "" {
			return fmt.Errorf("%w: two values in an entry", ErrCorrupt)
		}
		p.value = n
		return p.takeValue()
	case "at_us":
		p.hasTime = true
		p.r.stamp, err = p.s.number()
	case "expires_ms":
		p.r.expires, err = p.s.number()
	case "sum":
		var q quoted
		q, err = p.s.str()
		p.sum = p.s.string(q.raw)
	case "key_base64":
		p.key64 = true
		err = p.s.literal("true")
	default:
		return fmt.Errorf("%w: unknown member %q", ErrCorrupt, n)
	}
	return err
}

func (s *scanner) literal(word string) error {
	s.space()
	if !bytes.HasPrefix(s.b[s.i:], []byte(word)) {
		return s.fail(word)
	}
	s.i += len(word)
	return nil
}

func (p *entryParser) takeValue() error {
	switch p.value {
	case "deleted":
		p.r.kind = kindDead
		return p.s.literal("true")
	case "hash", "hash_base64":
		p.r.kind = kindHash
		return p.takeHash()
	case "json":
		raw, spaced, err := p.s.value()
		if spaced {
			raw = compact(raw)
		}
		p.r.val = p.s.string(raw)
		return err
	}
	q, err := p.s.str()
	if err != nil {
		return err
	}
	p.r.val, err = p.text(q)
	return err
}

// text decodes a string of the value.
func (p *entryParser) text(q quoted) (string, error) {
	if !strings.HasSuffix(p.value, "base64") {
		return p.s.text(q), nil
	}
	return p.s.fromBase64(q)
}

func (s *scanner) fromBase64(q quoted) (string, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(s.text(q))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return string(b), nil
}

func (p *entryParser) takeHash() error {
	err := p.s.members(func(name quoted) error {
		val, err := p.s.str()
		if err != nil {
			return err
		}
		var f field
		if f.name, err = p.text(name); err != nil {
			return err
		}
		if f.val, err = p.text(val); err != nil {
			return err
		}
		p.r.hash = append(p.r.hash, f)
		return nil
	})
	if err != nil {
		return err
	}
	byName := func(a, b field) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(p.r.hash, byName) {
		slices.SortFunc(p.r.hash, byName)
	}
	for i := 1; i < len(p.r.hash); i++ {
		if p.r.hash[i].name == p.r.hash[i-1].name {
			return fmt.Errorf("%w: a field twice", ErrCorrupt)
		}
	}
	if len(p.r.hash) == 0 {
		return fmt.Errorf("%w: a hash without fields", ErrCorrupt)
	}
	return nil
}

// finish checks the sum. raw is the entry as it stands in the file: as it was
// written, in all likelihood, and then its checksum tells at once. If it was
// laid out anew it has to be encoded to know.
func (p *entryParser) finish(name quoted, raw []byte) (r *record, err error) {
	r = p.r
	if p.value == "" || !p.hasTime || len(p.sum) != 8 || r.kind == kindDead && r.expires == 0 {
		return nil, fmt.Errorf("%w: half an entry", ErrCorrupt)
	}
	if p.key64 {
		r.key, err = p.s.fromBase64(name)
	} else {
		r.key = p.s.text(name)
	}
	if err != nil {
		return nil, err
	}
	if sumFits(raw) {
		r.adopt(p.s.string(raw))
		return r, nil
	}
	line := r.encode()
	if line[len(line)-sumLen:] != `,"sum":"`+p.sum+`"}` {
		return nil, fmt.Errorf("%w: checksum of an entry does not fit", ErrCorrupt)
	}
	r.adopt(line)
	return r, nil
}

// sumFits tells whether a line ends with its own checksum.
func sumFits(line []byte) bool {
	n := len(line) - sumLen
	if n <= 0 {
		return false
	}
	var room [sumLen]byte
	return bytes.Equal(line[n:], appendSum(room[:0], crc32.Checksum(line[:n], castagnoli)))
}

// compact removes the space between the parts of valid JSON.
func compact(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for s := (scanner{b: raw}); s.i < len(raw); {
		from := s.i
		switch c := raw[s.i]; c {
		case '"':
			_, _ = s.str() // the line was read once already
		case ' ', '\n', '\r', '\t':
			s.i++
			continue
		default:
			s.i++
		}
		out = append(out, raw[from:s.i]...)
	}
	return out
}

// sumHex tells whether b is eight hexadecimal digits.
func sumHex(b []byte) bool {
	_, err := hex.DecodeString(string(b))
	return err == nil && len(b) == 8
}

// salvage returns the entries of a damaged file that are whole, one a line as
// they were written. Of two with one key the newer is returned.
func salvage(b []byte) []*record {
	found := map[string]*record{}
	for line := range bytes.Lines(b) {
		line = bytes.TrimRight(line, "\n\r,")
		s := &scanner{b: line}
		name, err := s.str()
		if err != nil || s.want(':') != nil || s.i != len(name.raw)+3 {
			continue
		}
		p := entryParser{s: s, r: &record{}}
		if s.members(p.member) != nil || s.i != len(line) || !sumHex([]byte(p.sum)) {
			continue
		}
		r, err := p.finish(name, line)
		if err != nil {
			continue
		}
		if old := found[r.key]; old == nil || old.stamp < r.stamp {
			found[r.key] = r
		}
	}
	whole := make([]*record, 0, len(found))
	for _, r := range found {
		whole = append(whole, r)
	}
	slices.SortFunc(whole, func(a, b *record) int { return strings.Compare(a.key, b.key) })
	return whole
}
