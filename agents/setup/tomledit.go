package setup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A new key of the root gets a line behind the last root key, so before the
// first table and its comments; one of a table gets the line behind the
// table's header.

var tomlSyntax = &syntax{
	name: "toml", decode: decodeTOML, find: findTOML, set: setTOML, unset: unsetTOML,
	prune:  func(data []byte, _ []string) ([]byte, error) { return data, nil }, // no level is ever made
	refill: func(data []byte, _ []string, _ string) ([]byte, error) { return data, nil },
	put: func(data []byte, path []string, raw string) ([]byte, error) {
		l, err := scanTOML(data)
		if err != nil {
			return nil, err
		}
		e := l.entry(path)
		if e == nil || e.value == (span{}) {
			return nil, errors.New("the key is not there")
		}
		return splice(data, e.value.from, e.value.to, raw), nil
	},
}

type span struct{ from, to int }

// tomlEntry is one key with its value. Tables in one line are entries too, as
// are the keys in them.
type tomlEntry struct {
	path   []string
	whole  span // key, equals sign and value
	value  span // empty for arrays and tables in one line, whose end is not told
	inline bool // in a table in one line
}

// tomlLayout is where things stand in a file.
type tomlLayout struct {
	entries []tomlEntry
	// headers are tables by name, with the offset of their first key part.
	headers []tomlHeader
}

type tomlHeader struct {
	path  []string
	at    int
	array bool
}

func (l *tomlLayout) entry(path []string) *tomlEntry {
	for i := range l.entries {
		if slices.Equal(l.entries[i].path, path) {
			return &l.entries[i]
		}
	}
	return nil
}

func decodeTOML(data []byte) (map[string]any, error) {
	tree := map[string]any{}
	if err := toml.Unmarshal(data, &tree); err != nil {
		e := &SyntaxError{Reason: strings.TrimPrefix(err.Error(), "toml: ")}
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			e.Line, e.Column = bad.Position()
		}
		return nil, e
	}
	return tree, nil
}

// scanTOML finds every key of a file that decodes.
func scanTOML(data []byte) (*tomlLayout, error) {
	if _, err := decodeTOML(data); err != nil {
		return nil, err
	}
	l := &tomlLayout{}
	var table []string
	hidden := false // in an array of tables, whose keys have no path
	p := unstable.Parser{}
	p.Reset(data)
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			path, at := keyOf(n)
			table = path
			l.headers = append(l.headers, tomlHeader{path: path, at: at, array: n.Kind == unstable.ArrayTable})
			hidden = slices.ContainsFunc(l.headers, func(h tomlHeader) bool {
				return h.array && len(h.path) <= len(path) && slices.Equal(h.path, path[:len(h.path)])
			})
		case unstable.KeyValue:
			if !hidden {
				l.keep(n, table, false)
			}
		}
	}
	if err := p.Error(); err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	return l, nil
}

// keep notes a key and, in a table in one line, those in it.
func (l *tomlLayout) keep(n *unstable.Node, above []string, inline bool) {
	own, _ := keyOf(n)
	path := slices.Concat(above, own)
	e := tomlEntry{path: path, inline: inline, whole: spanOf(n.Raw)}
	v := n.Value()
	if v.Kind != unstable.Array && v.Kind != unstable.InlineTable {
		e.value = spanOf(v.Raw)
	}
	l.entries = append(l.entries, e)
	if v.Kind != unstable.InlineTable {
		return
	}
	for it := v.Children(); it.Next(); {
		if it.Node().Kind == unstable.KeyValue {
			l.keep(it.Node(), path, true)
		}
	}
}

func spanOf(r unstable.Range) span { return span{int(r.Offset), int(r.Offset + r.Length)} }

// keyOf is the name of a key or table and where it begins.
func keyOf(n *unstable.Node) (path []string, at int) {
	at = -1
	for it := n.Key(); it.Next(); {
		if at < 0 {
			at = int(it.Node().Raw.Offset)
		}
		path = append(path, string(it.Node().Data))
	}
	return path, at
}

func findTOML(data []byte, path []string) ([]byte, bool, error) {
	l, err := scanTOML(data)
	if err != nil {
		return nil, false, err
	}
	e := l.entry(path)
	if e == nil {
		return nil, false, nil
	}
	if e.value == (span{}) {
		return nil, true, nil
	}
	return data[e.value.from:e.value.to], true, nil
}

func setTOML(data []byte, path []string, value string) ([]byte, change, error) {
	l, err := scanTOML(data)
	if err != nil {
		return nil, change{}, err
	}
	if e := l.entry(path); e != nil {
		if e.value == (span{}) {
			return nil, change{}, fmt.Errorf("%s is not a string", dotted(path))
		}
		old := string(data[e.value.from:e.value.to])
		return splice(data, e.value.from, e.value.to, quotedTOML(value)), change{Old: old}, nil
	}
	at, err := l.placeFor(data, path)
	if err != nil {
		return nil, change{}, err
	}
	line := path[len(path)-1] + " = " + quotedTOML(value)
	eol := newline(data)
	if at == len(data) && at > 0 && data[at-1] != '\n' {
		return splice(data, at, at, eol+line), change{Absent: true}, nil
	}
	return splice(data, at, at, line+eol), change{Absent: true}, nil
}

// placeFor is where the line of a new key begins.
func (l *tomlLayout) placeFor(data []byte, path []string) (int, error) {
	if len(path) > 1 {
		above := path[:len(path)-1]
		for _, h := range l.headers {
			if !h.array && slices.Equal(h.path, above) {
				return lineEnd(data, h.at), nil
			}
		}
		return 0, fmt.Errorf("there is no table [%s]", dotted(above))
	}
	first := len(data) // of the first table
	if len(l.headers) > 0 {
		first = l.headers[0].at
	}
	last := -1
	for _, e := range l.entries {
		if e.whole.from < first && !e.inline {
			last = e.whole.to
		}
	}
	switch {
	case last >= 0:
		return lineEnd(data, last), nil
	case len(l.headers) == 0:
		return len(data), nil
	}
	return beforeComments(data, lineStart(data, first)), nil
}

// beforeComments is the begin of the comment lines right above a line, or of
// the line itself where they begin the file: that comment is the file's.
func beforeComments(data []byte, line int) int {
	at := line
	for at > 0 {
		above := lineStart(data, at-1)
		if !bytes.HasPrefix(bytes.TrimLeft(data[above:at], " \t"), []byte("#")) {
			return at
		}
		at = above
	}
	return line
}

func lineStart(data []byte, offset int) int { return bytes.LastIndexByte(data[:offset], '\n') + 1 }

// lineEnd is the begin of the next line.
func lineEnd(data []byte, offset int) int {
	if i := bytes.IndexByte(data[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(data)
}

// quotedTOML is a basic string. JSON's escapes are among TOML's.
func quotedTOML(s string) string { return strings.ReplaceAll(quoted(s), "\x7f", `\u007F`) }

func unsetTOML(data []byte, path []string) ([]byte, error) {
	l, err := scanTOML(data)
	if err != nil {
		return nil, err
	}
	e := l.entry(path)
	switch {
	case e == nil:
		return data, nil
	case e.inline:
		return nil, fmt.Errorf("%s stands in a table in one line: take it out by hand", dotted(path))
	}
	from, to := lineStart(data, e.whole.from), lineEnd(data, e.whole.to)
	if to == len(data) && from > 0 && data[to-1] != '\n' {
		from-- // the line end before it came with it
		if from > 0 && data[from-1] == '\r' {
			from--
		}
	}
	return splice(data, from, to, ""), nil
}
