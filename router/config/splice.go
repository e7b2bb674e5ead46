package config

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// source is a file's text with its nodes, and finds where in the text a node
// stands. Every change is a splice of the text: nothing is encoded again, so
// comments, order and layout outside the splice cannot change. What is laid
// out in a way that this file does not follow is refused with ErrLayout.
type source struct {
	data  []byte
	root  *yaml.Node // nil when the file holds nothing
	lines []int      // offset of each line
}

var bom = []byte("\ufeff")

// otherBreaks are line breaks to YAML and to nobody else.
var otherBreaks = [][]byte{[]byte("\u0085"), []byte("\u2028"), []byte("\u2029")}

func newSource(data []byte) (*source, error) {
	root, err := readNodes("", data)
	if err != nil {
		return nil, err
	}
	for _, other := range otherBreaks {
		if bytes.Contains(data, other) {
			return nil, fmt.Errorf("unusual line breaks: %w", ErrLayout)
		}
	}
	if bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n")) {
		return nil, fmt.Errorf("unusual line breaks: %w", ErrLayout)
	}
	s := &source{data: data, root: root, lines: []int{0}}
	for i, b := range data {
		if b == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s, nil
}

// newline is the file's own way to end a line.
func (s *source) newline() string {
	if i := bytes.IndexByte(s.data, '\n'); i > 0 && s.data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// start gives the offset of a node's first byte.
func (s *source) start(n *yaml.Node) (int, error) {
	if n.Line < 1 || n.Line > len(s.lines) {
		return 0, fmt.Errorf("line %d: %w", n.Line, ErrLayout)
	}
	at := s.lines[n.Line-1]
	if at == 0 && bytes.HasPrefix(s.data, bom) {
		at = len(bom)
	}
	for column := 1; column < n.Column; column++ {
		if at >= len(s.data) {
			return 0, fmt.Errorf("line %d: %w", n.Line, ErrLayout)
		}
		at++
		for at < len(s.data) && s.data[at]&0xC0 == 0x80 { // the rest of a character
			at++
		}
	}
	return at, nil
}

// end gives the offset after a node's last byte.
func (s *source) end(n *yaml.Node) (int, error) {
	at, err := s.start(n)
	if err != nil {
		return 0, err
	}
	bad := fmt.Errorf("line %d: %w", n.Line, ErrLayout)
	switch {
	case n.Kind == yaml.ScalarNode:
		if to, ok := s.scalarEnd(n, at); ok {
			return to, nil
		}
		return 0, bad
	case n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode:
		return 0, bad
	case n.Style&yaml.FlowStyle == 0:
		if len(n.Content) == 0 {
			return 0, bad
		}
		return s.end(n.Content[len(n.Content)-1])
	}
	opening, closing := byte('{'), byte('}')
	if n.Kind == yaml.SequenceNode {
		opening, closing = '[', ']'
	}
	if at >= len(s.data) || s.data[at] != opening {
		return 0, bad // an anchor or a tag stands before it
	}
	at++
	if len(n.Content) > 0 {
		if at, err = s.end(n.Content[len(n.Content)-1]); err != nil {
			return 0, err
		}
	}
	at = s.skipBlank(at, true)
	if at >= len(s.data) || s.data[at] != closing {
		return 0, bad
	}
	return at + 1, nil
}

// skipBlank goes over spaces, line breaks and comments, and over colons' and
// commas' worth of separators where commas is set.
func (s *source) skipBlank(at int, commas bool) int {
	for at < len(s.data) {
		switch c := s.data[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || commas && (c == ',' || c == ':'):
			at++
		case c == '#':
			at = s.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// lineEnd gives the offset of the line break (or of the file's end) after at.
func (s *source) lineEnd(at int) int {
	i := bytes.IndexByte(s.data[at:], '\n')
	if i < 0 {
		return len(s.data)
	}
	if i > 0 && s.data[at+i-1] == '\r' {
		i--
	}
	return at + i
}

// nextLine gives the offset at which the line after at's begins.
func (s *source) nextLine(at int) int {
	if i := bytes.IndexByte(s.data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s.data)
}

// lineStart gives the offset at which at's line begins.
func (s *source) lineStart(at int) int { return bytes.LastIndexByte(s.data[:at], '\n') + 1 }

func (s *source) scalarEnd(n *yaml.Node, at int) (int, bool) {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return quotedEnd(s.data, at, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return quotedEnd(s.data, at, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return s.blockScalarEnd(at), true
	case bytes.HasPrefix(s.data[at:], []byte(n.Value)): // on one line, without tag and anchor
		return at + len(n.Value), true
	}
	return 0, false
}

func quotedEnd(data []byte, at int, quote byte) (int, bool) {
	if at >= len(data) || data[at] != quote {
		return 0, false
	}
	for i := at + 1; i < len(data); i++ {
		switch {
		case quote == '"' && data[i] == '\\':
			i++
		case data[i] != quote:
		case quote == '\'' && i+1 < len(data) && data[i+1] == quote:
			i++
		default:
			return i + 1, true
		}
	}
	return 0, false
}

// blockScalarEnd ends the text under a | or > at the first line that is
// indented no more than the line of the mark.
func (s *source) blockScalarEnd(at int) int {
	indent := indentOf(s.data[s.lineStart(at):])
	end := s.lineEnd(at)
	for next := s.nextLine(at); next < len(s.data); next = s.nextLine(next) {
		line := s.data[next:s.lineEnd(next)]
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case indentOf(line) > indent:
			end = s.lineEnd(next)
		default:
			return end
		}
	}
	return end
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// afterColon gives the offset after the colon that follows a key.
func (s *source) afterColon(key *yaml.Node) (int, error) {
	at, err := s.end(key)
	if err != nil {
		return 0, err
	}
	for at < len(s.data) && s.data[at] == ' ' {
		at++
	}
	if at >= len(s.data) || s.data[at] != ':' {
		return 0, fmt.Errorf("line %d: %w", key.Line, ErrLayout)
	}
	return at + 1, nil
}

// splice gives the text with [from, to) replaced.
func (s *source) splice(from, to int, text string) []byte {
	out := make([]byte, 0, len(s.data)+len(text))
	out = append(out, s.data[:from]...)
	out = append(out, text...)
	return append(out, s.data[to:]...)
}

// entryLines gives the lines of a block mapping's entry: from the start of
// its key's line to the start of the line after it. Comments under it belong
// to it if they are indented further than its key.
func (s *source) entryLines(key, value *yaml.Node) (from, to int, err error) {
	begin, err := s.start(key)
	if err != nil {
		return 0, 0, err
	}
	from = s.lineStart(begin)
	if strings.Trim(string(bytes.TrimPrefix(s.data[from:begin], bom)), " ") != "" {
		return 0, 0, fmt.Errorf("line %d: %w", key.Line, ErrLayout)
	}
	end, err := s.entryEnd(key, value)
	if err != nil {
		return 0, 0, err
	}
	rest := bytes.TrimLeft(s.data[end:s.lineEnd(end)], " \t")
	if len(rest) > 0 && rest[0] != '#' {
		return 0, 0, fmt.Errorf("line %d: %w", key.Line, ErrLayout)
	}
	return from, afterComments(s, s.nextLine(end), key.Column), nil
}

// entryEnd gives the offset after an entry's last byte, its colon when it has
// no value.
func (s *source) entryEnd(key, value *yaml.Node) (int, error) {
	if isImplicitNull(value) {
		return s.afterColon(key)
	}
	return s.end(value)
}

func isImplicitNull(n *yaml.Node) bool { return isNull(n) && n.Value == "" }

// hasComment says whether a comment would be lost with the node's text.
func hasComment(n *yaml.Node) bool {
	for _, child := range n.Content {
		if child.HeadComment+child.LineComment+child.FootComment != "" || hasComment(child) {
			return true
		}
	}
	return false
}
