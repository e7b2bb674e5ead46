package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Parse reads and checks a configuration. file is only named in errors, which
// are Errors, one for each thing that is wrong. Empty data is a valid
// configuration (Default). data is not kept.
func Parse(file string, data []byte) (*Config, error) {
	root, err := readNodes(file, data)
	if err != nil {
		return nil, err
	}
	p := &parser{file: file, config: Default()}
	if root != nil && p.plain(root, 0) {
		decode(p, root, "the configuration", topFields, p.config)
		p.check()
	}
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b *Error) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, Errors(p.errs)
	}
	return p.config, nil
}

// parser collects what is wrong while it fills a configuration.
type parser struct {
	file    string
	config  *Config
	errs    []*Error
	choices []choice // one for each agent, for the checks across sections
}

// choice is a Choice while it is read, with the node of its server.
type choice struct {
	Choice
	agent string
	node  *yaml.Node
}

// maxErrors ends the collection: a file with more is not a configuration.
const maxErrors = 20

func (p *parser) fail(n *yaml.Node, bad *problem) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &Error{File: p.file, Line: n.Line, Column: n.Column, Reason: bad.reason, Instead: bad.instead})
	}
}

// readNodes gives the root of the only document, nil when there is none.
func readNodes(file string, data []byte) (*yaml.Node, error) {
	if len(data) > maxFile {
		return nil, Errors{{File: file, Reason: fmt.Sprintf("the file has %d bytes", len(data)), Instead: "it may have at most 1 MB"}}
	}
	loader := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := loader.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(file, err)
	}
	if err := loader.Decode(&second); err == nil {
		return nil, Errors{{File: file, Line: second.Line, Column: second.Column,
			Reason: "a second document begins here", Instead: "write everything in one and remove the line ---"}}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(file, err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil, nil
	}
	return doc.Content[0], nil
}

// syntaxHints answer the YAML library's messages, by a part of each.
var syntaxHints = []struct{ message, instead string }{
	{"cannot start any token", "indent with spaces, not tabs, and put quotes around text that begins with @ or `"},
	{"mapping values are not allowed", "check the indentation here and the colon on the line before, and put quotes around text that has \": \" in it"},
	{"did not find expected key", "give this line the indentation of the lines it belongs with"},
	{"could not find expected ':'", "write a colon and a space after the name"},
	{"unexpected end of stream", "close the quote that is open here"},
	{"expected ',' or '}'", "close the brace { that is open before this line"},
	{"expected ',' or ']'", "close the bracket [ that is open before this line"},
	{"unknown anchor", "put quotes around text that begins with *"},
	{"alphabetic or numeric", "put quotes around text that begins with * or &"},
	{"control characters", "remove it"},
}

func syntaxError(file string, err error) error {
	e := &Error{File: file, Reason: "this is not valid YAML"}
	var load *yaml.LoadError
	if errors.As(err, &load) {
		e.Line, e.Column = load.Mark.Line, max(load.Mark.Column, 1)
		// What is never closed is best shown where it was opened.
		if strings.Contains(load.Message, "end of stream") && load.ContextMark.Line > 0 {
			e.Line, e.Column = load.ContextMark.Line, max(load.ContextMark.Column, 1)
		}
		e.Reason = "this is not valid YAML: " + clip(load.Message)
	}
	for _, hint := range syntaxHints {
		if strings.Contains(e.Reason, hint.message) {
			e.Instead = hint.instead
			break
		}
	}
	return Errors{e}
}

// maxDepth bounds the nesting of a file; the deepest valid one has 5.
const maxDepth = 32

// plain refuses what YAML offers and a configuration does without: aliases,
// which make one line mean several places, and deep nesting.
func (p *parser) plain(n *yaml.Node, depth int) bool {
	switch {
	case depth > maxDepth:
		p.fail(n, &problem{"this is nested too deeply", "look at the example in the documentation"})
		return false
	case n.Kind == yaml.AliasNode:
		p.fail(n, &problem{"aliases are not supported here", "write the value out, or put quotes around text that begins with *"})
		return false
	}
	for _, child := range n.Content {
		if !p.plain(child, depth+1) {
			return false
		}
	}
	return true
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// entries gives the keys and values of a mapping, having refused equal keys;
// nil for an empty value.
func (p *parser) entries(n *yaml.Node, what string) [][2]*yaml.Node {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, &problem{what + " must be names with values", "write each as `name: value`, on lines of its own"})
		return nil
	}
	seen := map[string]*yaml.Node{}
	var list [][2]*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.fail(key, &problem{"a name must be text", "write each as `name: value`"})
			continue
		}
		if first := seen[key.Value]; first != nil {
			p.fail(key, &problem{fmt.Sprintf("%q is here twice (first on line %d)", clip(key.Value), first.Line), "remove or rename one"})
			continue
		}
		seen[key.Value] = key
		list = append(list, [2]*yaml.Node{key, value})
	}
	return list
}

// decode reads a mapping whose keys are those of fields, and gives the node
// of each key that has a value.
func decode[T any](p *parser, n *yaml.Node, what string, fields []field[T], to *T) map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	for _, entry := range p.entries(n, what) {
		key, value := entry[0], entry[1]
		i := slices.IndexFunc(fields, func(f field[T]) bool { return lastPart(f.Path) == key.Value })
		if i < 0 {
			p.fail(key, unknownField(key.Value, fields))
			continue
		}
		if isNull(value) {
			continue
		}
		found[key.Value] = key
		fields[i].set(p, value, to)
	}
	return found
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func unknownField[T any](name string, fields []field[T]) *problem {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = lastPart(f.Path)
	}
	bad := &problem{reason: fmt.Sprintf("unknown field %q", clip(name))}
	if near := nearest(name, known); near != "" {
		bad.instead = fmt.Sprintf("did you mean %q?", near)
		return bad
	}
	bad.instead = "possible here: " + strings.Join(known, ", ") + " (a newer agentop may know more)"
	return bad
}

// text gives a scalar's value.
func (p *parser) text(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		p.fail(n, &problem{"this must be a single value", "write it after the colon, without braces or brackets"})
		return "", false
	}
	return n.Value, true
}

// setWith reads a scalar through a check.
func setWith[T any](p *parser, n *yaml.Node, to *T, check func(string) (T, *problem)) {
	text, ok := p.text(n)
	if !ok {
		return
	}
	value, bad := check(text)
	if bad != nil {
		p.fail(n, bad)
		return
	}
	*to = value
}
