package config

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// find gives the index of key among a mapping's entries, -1 when it is not
// there, and the number of entries.
func find(m *yaml.Node, key string) (at, entries int) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key && m.Content[i].Kind == yaml.ScalarNode {
			return i / 2, len(m.Content) / 2
		}
	}
	return -1, len(m.Content) / 2
}

func entry(m *yaml.Node, i int) (key, val *yaml.Node) { return m.Content[2*i], m.Content[2*i+1] }

// at gives the node under a path, nil when there is none.
func (s *source) at(path ...string) *yaml.Node {
	n := s.root
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		i, _ := find(n, key)
		if i < 0 {
			return nil
		}
		_, n = entry(n, i)
	}
	return n
}

// set gives data with the value under path written or replaced; levels that
// are missing are made.
func set(data []byte, v value, path ...string) ([]byte, error) {
	s, err := newSource(data)
	if err != nil {
		return nil, err
	}
	if s.root == nil {
		return s.appendLines(pair{path[0], wrap(path[1:], v)}), nil
	}
	n := s.root
	for depth, key := range path {
		if n.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: %w", n.Line, ErrLayout)
		}
		i, count := find(n, key)
		if i < 0 {
			return s.insert(n, count, pair{key, wrap(path[depth+1:], v)})
		}
		_, val := entry(n, i)
		if depth == len(path)-1 || isNull(val) || len(val.Content) == 0 && val.Kind == yaml.MappingNode {
			return s.replace(n, i, wrap(path[depth+1:], v))
		}
		n = val
	}
	return nil, ErrLayout
}

// wrap puts a value under the rest of a path. Sections and servers get lines
// of their own; what is one word for an agent stays on the agent's line.
func wrap(path []string, v value) value {
	for _, key := range slices.Backward(path) {
		v = value{pairs: []pair{{key, v}}, block: v.block || v.pairs != nil}
	}
	return v
}

// appendLines adds an entry at the end of a file that holds only comments.
func (s *source) appendLines(p pair) []byte {
	lead := ""
	if len(s.data) > 0 && s.data[len(s.data)-1] != '\n' && !bytes.Equal(s.data, bom) {
		lead = s.newline()
	}
	return s.splice(len(s.data), len(s.data), lead+p.lines(0, 2, s.newline()))
}

// step is the file's own depth of indentation.
func (s *source) step() int {
	for i := 0; i+1 < len(s.root.Content); i += 2 {
		key, val := s.root.Content[i], s.root.Content[i+1]
		if val.Kind == yaml.MappingNode && val.Style&yaml.FlowStyle == 0 && val.Column > key.Column && val.Column <= 9 {
			return val.Column - key.Column
		}
	}
	return 2
}

// insert adds an entry to a mapping, before its at-th one.
func (s *source) insert(m *yaml.Node, at int, p pair) ([]byte, error) {
	count := len(m.Content) / 2
	if m.Style&yaml.FlowStyle != 0 || count == 0 {
		return s.insertFlow(m, at, p)
	}
	first, _ := entry(m, 0)
	text := p.lines(first.Column-1, s.step(), s.newline())
	if at < count {
		from, _, err := s.entryLines(entry(m, at))
		if err != nil {
			return nil, err
		}
		return s.splice(from, from, text), nil
	}
	_, to, err := s.entryLines(entry(m, count-1))
	if err != nil {
		return nil, err
	}
	if to > 0 && s.data[to-1] != '\n' {
		text = s.newline() + text
	}
	return s.splice(to, to, text), nil
}

func (s *source) insertFlow(m *yaml.Node, at int, p pair) ([]byte, error) {
	text := scalar(p.key, true) + ": " + p.value.inline(true)
	count := len(m.Content) / 2
	switch {
	case count == 0:
		begin, err := s.start(m)
		if err != nil || begin >= len(s.data) || s.data[begin] != '{' {
			return nil, fmt.Errorf("line %d: %w", m.Line, ErrLayout)
		}
		return s.splice(begin+1, begin+1, text), nil
	case at < count:
		key, _ := entry(m, at)
		begin, err := s.start(key)
		return s.splice(begin, begin, text+", "), err
	}
	end, err := s.entryEnd(entry(m, count-1))
	if err != nil {
		return nil, err
	}
	return s.splice(end, end, ", "+text), nil
}

// replace writes the value of a mapping's i-th entry anew. A value on lines
// under its key moves up to the key's line.
func (s *source) replace(m *yaml.Node, i int, v value) ([]byte, error) {
	key, val := entry(m, i)
	colon, err := s.afterColon(key)
	if err != nil {
		return nil, err
	}
	flow := m.Style&yaml.FlowStyle != 0
	if v.block && !flow && (isImplicitNull(val) || len(val.Content) == 0) {
		return s.replaceWithLines(key, val, v)
	}
	if isImplicitNull(val) {
		return s.splice(colon, colon, " "+v.inline(flow)), nil
	}
	if hasComment(val) {
		return nil, fmt.Errorf("line %d: a comment would be lost: %w", val.Line, ErrLayout)
	}
	from, err := s.start(val)
	if err != nil {
		return nil, err
	}
	to, err := s.end(val)
	if err != nil {
		return nil, err
	}
	if val.Line == key.Line {
		return s.splice(from, to, v.inline(flow)), nil
	}
	if flow {
		return s.splice(from, to, v.inline(flow)), nil
	}
	if val.LineComment != "" {
		return nil, fmt.Errorf("line %d: a comment would be lost: %w", val.Line, ErrLayout)
	}
	// Between the key and the value's first line may be comments: they stay.
	changed := s.splice(s.lineStart(from), s.nextLine(to), "")
	s = &source{data: changed}
	return s.splice(colon, colon, " "+v.inline(flow)), nil
}

// replaceWithLines puts a mapping under a key that has no value, or {}.
func (s *source) replaceWithLines(key, val *yaml.Node, v value) ([]byte, error) {
	data := s.data
	if !isImplicitNull(val) {
		from, err := s.start(val)
		if err != nil {
			return nil, err
		}
		to, err := s.entryEnd(key, val)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(data[from:to], '#') >= 0 { // the braces stay, with their comment
			inner := v.inline(true)
			return s.splice(from+1, from+1, inner[1:len(inner)-1]), nil
		}
		for from > 0 && data[from-1] == ' ' {
			from--
		}
		data = s.splice(from, to, "")
	}
	step, newline := s.step(), s.newline()
	colon, err := s.afterColon(key)
	if err != nil {
		return nil, err
	}
	s = &source{data: data}
	at := afterComments(s, s.nextLine(colon), key.Column)
	text := ""
	if at == len(data) && data[at-1] != '\n' {
		text = newline
	}
	for _, p := range v.pairs {
		text += p.lines(key.Column-1+step, step, newline)
	}
	return s.splice(at, at, text), nil
}

// afterComments goes over the lines from at that hold only comments with at
// least the indentation given: they are about what comes under the key, and
// would else be taken for the new entry's own.
func afterComments(s *source, at, indent int) int {
	for next := at; next < len(s.data); next = s.nextLine(next) {
		line := s.data[next:s.lineEnd(next)]
		switch rest := bytes.TrimSpace(line); {
		case len(rest) == 0:
		case rest[0] == '#' && indentOf(line) >= indent:
			at = s.nextLine(next)
		default:
			return at
		}
	}
	return at
}

// remove gives data without the entry under path; data itself when there is
// none.
func remove(data []byte, path ...string) ([]byte, error) {
	s, err := newSource(data)
	if err != nil {
		return nil, err
	}
	m := s.at(path[:len(path)-1]...)
	if m == nil || m.Kind != yaml.MappingNode {
		return data, nil
	}
	i, _ := find(m, path[len(path)-1])
	if i < 0 {
		return data, nil
	}
	if m.Style&yaml.FlowStyle != 0 {
		return s.removeFlow(m, i)
	}
	from, to, err := s.entryLines(entry(m, i))
	if err != nil {
		return nil, err
	}
	return s.splice(from, to, ""), nil
}

func (s *source) removeFlow(m *yaml.Node, i int) ([]byte, error) {
	key, val := entry(m, i)
	from, err := s.start(key)
	if err != nil {
		return nil, err
	}
	to, err := s.entryEnd(key, val)
	if err != nil {
		return nil, err
	}
	for to < len(s.data) && s.data[to] == ' ' {
		to++
	}
	if to < len(s.data) && s.data[to] == ',' {
		for to++; to < len(s.data) && s.data[to] == ' '; to++ {
		}
		return s.splice(from, to, ""), nil
	}
	if i == 0 {
		return s.splice(from, to, ""), nil
	}
	before, err := s.entryEnd(entry(m, i-1))
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(s.data[before:from], '#') < 0 { // else the comma stays, and the comment
		from = before
	}
	return s.splice(from, to, ""), nil
}
