package outline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The reference computes an Outline the slow and obvious way: from a tree of
// the body that encoding/json's tokens build.

// tree is one JSON value with where it stands in the text.
type tree struct {
	sort    byte // '{', '[', '"', or 0 for a number or literal
	text    string
	keys    []string // of an object's members, with equal ones
	values  []*tree  // of an object's members, or an array's elements
	from    int
	to      int
	keyFrom []int
}

func parse(body []byte) *tree {
	if !json.Valid(body) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return parseValue(d, body)
}

func parseValue(d *json.Decoder, body []byte) *tree {
	from := int(d.InputOffset())
	for strings.IndexByte(" \t\r\n:,", body[from]) >= 0 {
		from++
	}
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	t := &tree{from: from}
	switch v := token.(type) {
	case string:
		t.sort, t.text = '"', v
	case json.Delim:
		t.sort = byte(v)
		for d.More() {
			if v == '{' {
				key := parseValue(d, body)
				t.keys = append(t.keys, key.text)
				t.keyFrom = append(t.keyFrom, key.from)
			}
			t.values = append(t.values, parseValue(d, body))
		}
		if _, err := d.Token(); err != nil {
			panic(err)
		}
	default:
		t.text = fmt.Sprint(v)
	}
	t.to = int(d.InputOffset())
	return t
}

// get is the last member with that key, nil if there is none.
func (t *tree) get(key string) *tree {
	if t == nil || t.sort != '{' {
		return nil
	}
	for i := len(t.keys) - 1; i >= 0; i-- {
		if t.keys[i] == key {
			return t.values[i]
		}
	}
	return nil
}

func (t *tree) str(key string) string {
	if v := t.get(key); v != nil && v.sort == '"' {
		return v.text
	}
	return ""
}

// each calls f for every member with one of keys.
func (t *tree) each(f func(*tree), keys ...string) {
	for i, k := range t.keys {
		if slices.Contains(keys, k) {
			f(t.values[i])
		}
	}
}

// lastString is the value of the last member with that key; nil unless that
// is a string.
func (t *tree) lastString(key string) *tree {
	if v := t.get(key); v != nil && v.sort == '"' {
		return v
	}
	return nil
}

func (t *tree) raw() Span { return Span{t.from + 1, t.to - 1} }
