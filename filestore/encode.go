package filestore

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file, decode.go, entry.go and scan.go turn records into the file's bytes
// and back. They do no I/O. docs/filestore.md shows the format.

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

// encodeHeader fills the line with spaces, so that the header of a later save
// takes the same place.
func encodeHeader(h header) string {
	line := fmt.Sprintf("{\"version\":%d,\"store\":%q,\"save\":%d,\"entries\":{", formatVersion, h.store, h.save)
	return fmt.Sprintf("%-*s\n", headerLen-1, line)
}

// headerLen is the length of every header whose store has a name of ours.
const headerLen = 80

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
