package importer

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"
)

// value is one value of a row. A blob counts as text.
type value struct {
	kind   valueKind
	number float64 // whole numbers beyond 2^53 lose their last digits
	text   string
}

// The kinds of values, in the order in which SQLite sorts them.
type valueKind int

const (
	isNull valueKind = iota
	isNumber
	isText
)

// compare orders values as SQLite does.
func (v value) compare(o value) int {
	return cmp.Or(cmp.Compare(v.kind, o.kind), cmp.Compare(v.number, o.number), cmp.Compare(v.text, o.text))
}

// decodeRecord takes a row's values apart.
func decodeRecord(record []byte) ([]value, error) {
	size, types, ok := varint(record)
	if !ok || size > uint64(len(record)) || int(size) < len(record)-len(types) {
		return nil, errDatabase
	}
	types, body := types[:int(size)-(len(record)-len(types))], record[size:]
	var values []value
	for len(types) > 0 {
		var code uint64
		if code, types, ok = varint(types); !ok {
			return nil, errDatabase
		}
		var v value
		if v, body, ok = decodeValue(code, body); !ok {
			return nil, errDatabase
		}
		values = append(values, v)
	}
	return values, nil
}

// decodeValue takes a value of a type from the front of b.
func decodeValue(code uint64, b []byte) (v value, rest []byte, ok bool) {
	size := uint64(0)
	switch {
	case code <= 4:
		size = code
	case code == 5:
		size = 6
	case code == 6, code == 7:
		size = 8
	case code >= 12:
		size = (code - 12) / 2
	}
	if size > uint64(len(b)) {
		return value{}, nil, false
	}
	own, rest := b[:size], b[size:]
	switch {
	case code == 0:
		return value{}, rest, true
	case code == 7:
		return value{kind: isNumber, number: math.Float64frombits(binary.BigEndian.Uint64(own))}, rest, true
	case code == 8, code == 9:
		return value{kind: isNumber, number: float64(code - 8)}, rest, true
	case code >= 12:
		return value{kind: isText, text: string(own)}, rest, true
	case code > 9:
		return value{}, nil, false // these are reserved
	}
	n := int64(int8(own[0])) // the first byte has the sign
	for _, c := range own[1:] {
		n = n<<8 | int64(c)
	}
	return value{kind: isNumber, number: float64(n)}, rest, true
}

// varint takes a number of one to nine bytes from the front of b.
func varint(b []byte) (n uint64, rest []byte, ok bool) {
	for i, c := range b {
		if i == 8 {
			return n<<8 | uint64(c), b[i+1:], true
		}
		n = n<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}

// columnNames are the columns' names in a CREATE TABLE statement, in order.
func columnNames(sql string) []string {
	_, sql, _ = strings.Cut(sql, "(")
	var names []string
	for depth := 1; depth > 0 && sql != ""; {
		word, after := token(sql)
		if name, constraint := columnName(word); !constraint {
			names = append(names, name)
		}
		for sql = after; sql != ""; { // on to the next column
			word, sql = token(sql)
			if word == "(" {
				depth++
			} else if word == ")" {
				depth--
			}
			if depth == 0 || depth == 1 && word == "," {
				break
			}
		}
	}
	return names
}

// columnName is the name that a column's definition begins with, or tells that
// the definition is of a constraint on the table.
func columnName(word string) (name string, constraint bool) {
	if strings.ContainsAny(word[:min(1, len(word))], "\"'`[") {
		return strings.Trim(word, "\"'`[]"), false
	}
	switch strings.ToUpper(word) {
	case "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN":
		return "", true
	}
	return word, false
}

// token takes a word, a quoted name or text, or one other character from the
// front of an SQL text; spaces and comments are passed over.
func token(sql string) (word, rest string) {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f")
		if after, found := strings.CutPrefix(sql, "--"); found {
			_, sql, _ = strings.Cut(after, "\n")
		} else if after, found := strings.CutPrefix(sql, "/*"); found {
			_, sql, _ = strings.Cut(after, "*/")
		} else {
			break
		}
	}
	if sql == "" {
		return "", ""
	}
	if i := strings.IndexByte("\"'`[", sql[0]); i >= 0 {
		end := strings.IndexByte(sql[1:], "\"'`]"[i])
		if end < 0 {
			return sql, ""
		}
		return sql[:end+2], sql[end+2:]
	}
	end := strings.IndexFunc(sql, func(r rune) bool { return strings.ContainsRune(" \t\r\n\f\"'`[(),", r) })
	if end < 0 {
		end = len(sql)
	}
	end = max(end, 1)
	return sql[:end], sql[end:]
}
