package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// value is what an edit writes: a text, a bare word, a list or a mapping.
type value struct {
	text  string
	raw   bool // text is written as it is: a number or on/off
	list  []value
	pairs []pair // also the mark of a mapping, when not nil
	block bool   // the pairs go on lines of their own where that is possible
}

type pair struct {
	key   string
	value value
}

func text(s string) value { return value{text: s} }
func word(s string) value { return value{text: s, raw: true} }

// inline writes a value on one line. flow says that braces or brackets are
// around it.
func (v value) inline(flow bool) string {
	switch {
	case v.pairs != nil:
		parts := make([]string, len(v.pairs))
		for i, p := range v.pairs {
			parts[i] = scalar(p.key, true) + ": " + p.value.inline(true)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case v.list != nil:
		parts := make([]string, len(v.list))
		for i, item := range v.list {
			parts[i] = item.inline(true)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case v.raw:
		return v.text
	}
	return scalar(v.text, flow)
}

// lines writes `key: value` at an indentation, each line with its break.
func (p pair) lines(indent, step int, newline string) string {
	head := strings.Repeat(" ", indent) + scalar(p.key, false) + ":"
	if !p.value.block || len(p.value.pairs) == 0 {
		return head + " " + p.value.inline(false) + newline
	}
	var b strings.Builder
	b.WriteString(head + newline)
	for _, inner := range p.value.pairs {
		b.WriteString(inner.lines(indent+step, step, newline))
	}
	return b.String()
}

// scalar writes a text so that YAML reads the same text: without quotes where
// it can, in the words of the library that will read it.
func scalar(s string, flow bool) string {
	if !strings.ContainsAny(s, "*?") && isPlain(s, flow) {
		return s
	}
	if strings.ContainsAny(s, `"\`) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return doubleQuoted(s)
}

// isPlain tries the text without quotes.
func isPlain(s string, flow bool) bool {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	doc := "k: " + s
	if flow {
		doc = "{k: " + s + "}"
	}
	root, err := readNodes("", []byte(doc))
	if err != nil || root == nil || root.Kind != yaml.MappingNode || len(root.Content) != 2 {
		return false
	}
	n := root.Content[1]
	return n.Kind == yaml.ScalarNode && n.Value == s && n.Style == 0 && n.ShortTag() == "!!str"
}

func doubleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r >= 0x7f && r <= 0xa0 || r >= 0x2028 && r <= 0x2029 || r == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
