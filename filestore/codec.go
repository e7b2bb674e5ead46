package filestore

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file and scan.go turn records into the file's bytes and back. They do
// no I/O. docs/filestore.md shows the format.

// formatVersion is the only format there is so far. A change that this code
// cannot read takes the next number.
const formatVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what the file says of itself.
type header struct {
	store string // names the file's line of descent, in hexadecimal
	save  int64  // the number of saves in that line
}

// image is a file's contents.
type image struct {
	header  header
	records []*record
}

func encodeHeader(h header) string {
	return fmt.Sprintf("{\"version\":%d,\"store\":%q,\"save\":%d,\"entries\":{\n", formatVersion, h.store, h.save)
}

const footer = "\n}}\n"

// encode makes the record's line, without the comma: the member of entries
// that is named by the key.
func (r *record) encode() string { return string(r.appendLine(nil)) }

// appendLine appends the line. The checksum covers all before it.
func (r *record) appendLine(b []byte) []byte {
	from := len(b)
	plainKey := utf8.ValidString(r.key)
	if plainKey {
		b = appendQuoted(b, r.key)
	} else {
		b = appendBase64(b, r.key)
	}
	b = append(b, ':', '{')
	if !plainKey {
		b = append(b, `"key_base64":true,`...)
	}
	b = r.appendValue(b)
	b = strconv.AppendInt(append(b, `,"at_us":`...), r.stamp, 10)
	if r.expires != 0 {
		b = strconv.AppendInt(append(b, `,"expires_ms":`...), r.expires, 10)
	}
	return appendSum(b, crc32.Checksum(b[from:], castagnoli))
}

// sumLen is the length of what appendSum appends.
const sumLen = len(`,"sum":"00000000"}`)

func appendSum(b []byte, sum uint32) []byte {
	b = append(b, `,"sum":"`...)
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[sum>>shift&15])
	}
	return append(b, `"}`...)
}

func (r *record) appendValue(b []byte) []byte {
	switch {
	case r.kind == kindDead:
		return append(b, `"deleted":true`...)
	case r.kind == kindHash:
		return appendHash(b, r.hash)
	case embeddable(r.val):
		return append(append(b, `"json":`...), r.val...)
	case utf8.ValidString(r.val):
		return appendQuoted(append(b, `"string":`...), r.val)
	default:
		return appendBase64(append(b, `"base64":`...), r.val)
	}
}

// embeddable tells whether a string is a JSON object or array that can stand
// in the file as it is: then people and jq can read it. It must not have
// space between its parts, so that it survives being laid out anew.
func embeddable(val string) bool {
	if len(val) < 2 || val[0] != '{' && val[0] != '[' {
		return false
	}
	s := scanner{b: []byte(val)}
	_, spaced, err := s.value()
	return err == nil && !spaced && s.i == len(val)
}

func appendHash(b []byte, hash []field) []byte {
	plain := !slices.ContainsFunc(hash, func(f field) bool {
		return !utf8.ValidString(f.name) || !utf8.ValidString(f.val)
	})
	put := appendQuoted
	if plain {
		b = append(b, `"hash":{`...)
	} else {
		put = appendBase64
		b = append(b, `"hash_base64":{`...)
	}
	for i, f := range hash {
		if i > 0 {
			b = append(b, ',')
		}
		b = put(append(put(b, f.name), ':'), f.val)
	}
	return append(b, '}')
}

func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[from:i]...)
			from = i + 1
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
		}
	}
	return append(append(b, s[from:]...), '"')
}

func appendBase64(b []byte, s string) []byte {
	b = base64.StdEncoding.AppendEncode(append(b, '"'), []byte(s))
	return append(b, '"')
}

// lookup finds the record that is in memory for a key, and its line; "" if
// there is none.
type lookup func(key []byte) (*record, string)

// decode reads a whole file. It returns nothing with an error: ErrNewerFormat
// if the file says so wherever its layout can be followed, else ErrCorrupt.
// For a key that known has with the very same line, known's record is
// returned, which saves most of the work of reading a file again.
func decode(b []byte, known lookup) (*image, error) {
	img := &image{}
	s := &scanner{b: b}
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
	s.members(func(name quoted) error {
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
	seen := make(map[string]struct{}, len(s.b)/256)
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
		p.sum = string(q.raw)
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
		p.r.val = string(raw)
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
		return q.text(), nil
	}
	return fromBase64(q)
}

func fromBase64(q quoted) (string, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(q.text())
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
		r.key, err = fromBase64(name)
	} else {
		r.key = name.text()
	}
	if err != nil {
		return nil, err
	}
	if sumFits(raw) {
		r.adopt(string(raw))
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

// adopt makes line the record's line, and its value a part of that wherever
// it stands there as it is, so that it is not held twice.
func (r *record) adopt(line string) {
	r.line = line
	if r.kind != kindString || len(r.val) == 0 {
		return
	}
	if i := strings.Index(line[min(len(r.key), len(line)):], r.val); i >= 0 {
		i += min(len(r.key), len(line))
		r.val = line[i : i+len(r.val)]
	}
}

// compact removes the space between the parts of valid JSON.
func compact(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for s := (scanner{b: raw}); s.i < len(raw); {
		from := s.i
		switch c := raw[s.i]; c {
		case '"':
			s.str()
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
