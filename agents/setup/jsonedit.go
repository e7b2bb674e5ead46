package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tailscale/hujson"
)

// New members are added at the end of their object, in the layout of the
// member before them: with that member's indentation, or on its line where it
// shares one, and with a comma behind them exactly if that member had one. So
// taking out a member needs no memory of how it came in.

var (
	strictJSON = jsonSyntax("json", true)
	looseJSON  = jsonSyntax("jsonc", false)
)

func jsonSyntax(name string, strict bool) *syntax {
	return &syntax{
		name:   name,
		decode: func(data []byte) (map[string]any, error) { return decodeJSON(data, strict) },
		find:   findJSON,
		set:    setJSON,
		put: func(data []byte, path []string, raw string) ([]byte, error) {
			at, err := walkJSON(data, path)
			if err != nil || len(at) != len(path)+1 {
				return nil, errors.Join(err, errors.New("the key is not there"))
			}
			v := at[len(path)]
			return splice(data, v.StartOffset, v.EndOffset, raw), nil
		},
		unset: unsetJSON, prune: pruneJSON, refill: refillJSON,
	}
}

// decodeJSON reads settings; strict refuses comments and trailing commas.
func decodeJSON(data []byte, strict bool) (map[string]any, error) {
	tree := map[string]any{}
	if blank(data) {
		return tree, nil
	}
	if !strict {
		clean, err := standard(data)
		if err != nil {
			return nil, err
		}
		data = clean
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return nil, syntaxAt(data, int(d.InputOffset()), "text after the end of the settings")
		}
		object, ok := value.(map[string]any)
		if !ok {
			return nil, syntaxAt(data, 0, "the settings are not an object")
		}
		return object, nil
	}
	var bad *json.SyntaxError
	if errors.As(err, &bad) {
		return nil, syntaxAt(data, int(bad.Offset)-1, strings.TrimPrefix(bad.Error(), "json: "))
	}
	return nil, syntaxAt(data, len(data), err.Error())
}

// standard is data without comments and trailing commas, each byte in its
// place.
func standard(data []byte) ([]byte, error) {
	v, err := parseJSON(bytes.Clone(data)) // the comments are blanked in place
	if err != nil {
		return nil, err
	}
	v.Standardize()
	return v.Pack(), nil
}

// parseJSON gives the tree with offsets. The caller must not change data while
// the tree is in use.
func parseJSON(data []byte) (hujson.Value, error) {
	v, err := hujson.Parse(data)
	if err != nil {
		// The text is "hujson: line 3, column 5: what".
		e := &SyntaxError{Reason: strings.TrimPrefix(err.Error(), "hujson: ")}
		if n, _ := fmt.Sscanf(e.Reason, "line %d, column %d:", &e.Line, &e.Column); n == 2 {
			_, e.Reason, _ = strings.Cut(e.Reason, ": ")
		}
		return v, e
	}
	return v, nil
}

func syntaxAt(data []byte, offset int, reason string) *SyntaxError {
	e := &SyntaxError{Reason: reason}
	e.Line, e.Column = position(data, offset)
	return e
}

func blank(data []byte) bool { return len(bytes.TrimSpace(data)) == 0 }

// member finds the last member of a name, -1 if there is none.
func member(o *hujson.Object, name string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if key, ok := o.Members[i].Name.Value.(hujson.Literal); ok && key.String() == name {
			return i
		}
	}
	return -1
}

// walkJSON gives the values along a path, the root first, as far as they are
// there.
func walkJSON(data []byte, path []string) ([]*hujson.Value, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	at := []*hujson.Value{&root}
	for i, name := range path {
		o, ok := at[i].Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", place(path[:i]))
		}
		found := member(o, name)
		if found < 0 {
			break
		}
		at = append(at, &o.Members[found].Value)
	}
	return at, nil
}

func place(path []string) string {
	if len(path) == 0 {
		return "the file"
	}
	return dotted(path)
}

func findJSON(data []byte, path []string) ([]byte, bool, error) {
	if blank(data) {
		return nil, false, nil
	}
	at, err := walkJSON(data, path)
	if err != nil || len(at) != len(path)+1 {
		return nil, false, err
	}
	v := at[len(path)]
	return data[v.StartOffset:v.EndOffset], true, nil
}

func setJSON(data []byte, path []string, value string) ([]byte, change, error) {
	if blank(data) {
		eol := newline(data)
		inner := ""
		body := object(path, value, layout{unit: "  ", eol: eol, colon: ": "})
		return []byte(body + eol), change{Absent: true, Made: len(path) - 1, Inner: &inner}, nil
	}
	at, err := walkJSON(data, path)
	if err != nil {
		return nil, change{}, err
	}
	deep := len(at) - 1
	if deep == len(path) {
		v := at[deep]
		old := string(data[v.StartOffset:v.EndOffset])
		return splice(data, v.StartOffset, v.EndOffset, quoted(value)), change{Old: old}, nil
	}
	o, ok := at[deep].Value.(*hujson.Object)
	if !ok {
		return nil, change{}, fmt.Errorf("%s is not an object", place(path[:deep]))
	}
	c := change{Absent: true, Made: len(path) - 1 - deep}
	if len(o.Members) == 0 {
		inner := string(data[at[deep].StartOffset+1 : at[deep].EndOffset-1])
		c.Inner = &inner
		return fillJSON(data, at, path[deep:], value), c, nil
	}
	return appendJSON(data, at, path[deep:], value), c, nil
}

// quoted is a JSON string that looks as people write it.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// layout is the white space that new members get. Without eol all is in one
// line.
type layout struct{ unit, eol, indent, colon string }

// deeper is the layout one level below.
func (l layout) deeper() layout {
	l.indent += l.unit
	return l
}

// object is an object that holds one path, one member a line.
func object(path []string, value string, l layout) string {
	in := l.deeper()
	return "{" + l.eol + in.indent + entry(path, value, in) + l.eol + l.indent + "}"
}

// entry is one member, with objects below it for the rest of the path.
func entry(path []string, value string, l layout) string {
	text := quoted(path[0]) + l.colon
	if len(path) == 1 {
		return text + quoted(value)
	}
	return text + object(path[1:], value, l)
}

// lineIndent is the white space at the begin of the line that holds offset.
func lineIndent(data []byte, offset int) string {
	start := bytes.LastIndexByte(data[:offset], '\n') + 1
	end := start
	for end < len(data) && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	return string(data[start:end])
}

// unitOf is one step of the file's indentation.
func unitOf(data []byte, root *hujson.Value) string {
	o, ok := root.Value.(*hujson.Object)
	if ok && len(o.Members) > 0 && bytes.IndexByte(o.Members[0].Name.BeforeExtra, '\n') >= 0 {
		if unit := lineIndent(data, o.Members[0].Name.StartOffset); unit != "" {
			return unit
		}
	}
	return "  "
}

// fillJSON puts the first member into an empty object, on a line of its own
// before what stands there.
func fillJSON(data []byte, at []*hujson.Value, path []string, value string) []byte {
	v := at[len(at)-1]
	eol, indent := newline(data), lineIndent(data, v.StartOffset)
	inner := string(data[v.StartOffset+1 : v.EndOffset-1])
	unit := unitOf(data, at[0])
	kept := strings.TrimRight(inner, " \t\r\n") // comments; one to the end of the line needs that end
	body := kept + eol + indent + unit + entry(path, value, layout{unit, eol, indent + unit, ": "}) + eol + indent
	return splice(data, v.StartOffset+1, v.EndOffset-1, body)
}

// appendJSON adds a member behind the last one.
func appendJSON(data []byte, at []*hujson.Value, path []string, value string) []byte {
	v := at[len(at)-1]
	o := v.Value.(*hujson.Object)
	last := &o.Members[len(o.Members)-1]
	colon := ":"
	if len(last.Value.BeforeExtra) > 0 {
		colon = ": "
	}
	before := last.Name.BeforeExtra
	var text string
	if bytes.IndexByte(before, '\n') >= 0 {
		indent := lineIndent(data, last.Name.StartOffset)
		text = newline(data) + indent + entry(path, value, layout{unitOf(data, at[0]), newline(data), indent, colon})
	} else {
		gap := ""
		if len(before) > 0 || len(o.Members) == 1 && colon == ": " {
			gap = " "
		}
		text = gap + entry(path, value, layout{colon: colon})
	}
	end := last.Value.EndOffset
	tail := v.EndOffset - 1 - len(o.AfterExtra)
	place := tail + len(bytes.TrimRight(o.AfterExtra, " \t\r\n"))
	// A comment to the end of its line would swallow a member that has none of
	// its own.
	swallowed := place > tail && !strings.HasPrefix(strings.TrimLeft(text, " \r"), "\n")
	if trailingComma(data, last, v, o) {
		if swallowed {
			place = tail
		}
		return splice(data, place, place, text+",")
	}
	if swallowed {
		place = end
	}
	out := splice(data, place, place, text)
	return splice(out, end, end, ",")
}

// trailingComma says whether a comma stands behind the last member.
func trailingComma(data []byte, last *hujson.ObjectMember, v *hujson.Value, o *hujson.Object) bool {
	between := data[last.Value.EndOffset+len(last.Value.AfterExtra) : v.EndOffset-1-len(o.AfterExtra)]
	return bytes.IndexByte(between, ',') >= 0
}

// unsetJSON takes a member out with the line and comma that came with it.
func unsetJSON(data []byte, path []string) ([]byte, error) {
	if blank(data) {
		return data, nil
	}
	at, err := walkJSON(data, path)
	if err != nil {
		return nil, err
	}
	if len(at) != len(path)+1 {
		return data, nil
	}
	owner := at[len(path)-1]
	o := owner.Value.(*hujson.Object)
	if len(o.Members) > 1 {
		return cutJSON(data, owner, member(o, path[len(path)-1])), nil
	}
	return splice(data, owner.StartOffset+1, owner.EndOffset-1, commentsOnly(data, owner, o)), nil
}

// innerJSON is what stands between the braces of an object without members;
// false for anything else.
func innerJSON(data []byte, path []string) (from, to int, empty bool) {
	if blank(data) {
		return 0, 0, false
	}
	at, err := walkJSON(data, path)
	if err != nil || len(at) != len(path)+1 {
		return 0, 0, false
	}
	v := at[len(path)]
	o, ok := v.Value.(*hujson.Object)
	return v.StartOffset + 1, v.EndOffset - 1, ok && len(o.Members) == 0
}

// pruneJSON takes out a level that was made for a member and has become empty.
// A comment in it makes it somebody's.
func pruneJSON(data []byte, path []string) ([]byte, error) {
	from, to, empty := innerJSON(data, path)
	if !empty || !blank(data[from:to]) {
		return data, nil
	}
	return unsetJSON(data, path)
}

// refillJSON gives an object that has become empty again the white space and
// comments that stood in it.
func refillJSON(data []byte, path []string, inner string) ([]byte, error) {
	from, to, empty := innerJSON(data, path)
	if !empty || strings.TrimSpace(string(data[from:to])) != strings.TrimSpace(inner) {
		return data, nil
	}
	return splice(data, from, to, inner), nil
}

// commentsOnly is what stands between an object's braces without its only
// member and the comma behind it; nothing where that is white space alone.
func commentsOnly(data []byte, v *hujson.Value, o *hujson.Object) string {
	m := &o.Members[0]
	end := m.Value.EndOffset + len(m.Value.AfterExtra)
	after := data[m.Value.EndOffset:end]
	rest := data[end : v.EndOffset-1]
	rest = bytes.TrimPrefix(rest, []byte(","))
	before := bytes.TrimRight(m.Name.BeforeExtra, " \t\r\n")
	if lineComment(before) {
		before = append(bytes.Clone(before), newline(data)...)
	}
	left := string(before) + string(after) + string(rest)
	if strings.TrimSpace(left) == "" {
		return ""
	}
	return left
}

// cutJSON takes member i out of an object that has others.
func cutJSON(data []byte, v *hujson.Value, i int) []byte {
	o := v.Value.(*hujson.Object)
	m := &o.Members[i]
	from := m.Name.StartOffset - len(m.Name.BeforeExtra)
	from += len(bytes.TrimRight(m.Name.BeforeExtra, " \t\r\n"))
	end := m.Value.EndOffset
	if lineComment(m.Name.BeforeExtra) && !endsLine(data[end:]) {
		from = m.Name.StartOffset // the comment before it needs its line end
	}
	if i < len(o.Members)-1 || trailingComma(data, m, v, o) {
		comma := end + len(m.Value.AfterExtra)
		out := splice(data, comma, comma+1, "")
		if i == 0 && len(m.Name.BeforeExtra) == 0 { // {"k":1, "a":2}: the gap goes with it
			for end < len(out) && (out[end] == ' ' || out[end] == '\t') {
				end++
			}
		}
		return splice(out, from, end, "")
	}
	out := splice(data, from, end, "")
	prev := &o.Members[i-1]
	comma := prev.Value.EndOffset + len(prev.Value.AfterExtra)
	return splice(out, comma, comma+1, "")
}

// lineComment says whether the last comment runs to the end of its line.
func lineComment(extra []byte) bool {
	last := false
	for len(extra) > 0 {
		start := bytes.IndexByte(extra, '/')
		if start < 0 || start+1 == len(extra) {
			break
		}
		end := []byte("*/")
		if last = extra[start+1] == '/'; last {
			end = []byte("\n")
		}
		_, extra, _ = bytes.Cut(extra[start+2:], end)
	}
	return last
}

// endsLine says whether nothing but a comma follows on the line.
func endsLine(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t")
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(",")), " \t\r")
	return len(rest) > 0 && rest[0] == '\n'
}

func objectOf(v *hujson.Value) (*hujson.Object, bool) {
	o, ok := v.Value.(*hujson.Object)
	return o, ok
}

// count says how often a name stands in an object.
func count(o *hujson.Object, name string) int {
	n := 0
	for i := range o.Members {
		if key, ok := o.Members[i].Name.Value.(hujson.Literal); ok && key.String() == name {
			n++
		}
	}
	return n
}
