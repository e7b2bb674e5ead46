package setup

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// syntax is how one kind of settings file is read and edited. All functions
// take and give whole files without a byte order mark.
type syntax struct {
	name string // json, jsonc, toml or env, as the record has it
	// decode gives the file's values, the last of equal keys winning as it does
	// for the agents. An empty file has none.
	decode func(data []byte) (map[string]any, error)
	// find gives the value at a path as it is written.
	find func(data []byte, path []string) (raw []byte, found bool, err error)
	// set writes a string at a path, making the levels that are missing.
	set func(data []byte, path []string, value string) ([]byte, change, error)
	// put replaces the value at a path, which must be there, by raw bytes.
	put func(data []byte, path []string, raw string) ([]byte, error)
	// unset takes a key out with its line. A path that is not there is no error.
	unset func(data []byte, path []string) ([]byte, error)
	// prune takes out a level that set has made, if it is empty.
	prune func(data []byte, path []string) ([]byte, error)
	// refill puts back what stood in an object that was empty before.
	refill func(data []byte, path []string, inner string) ([]byte, error)
}

// change is what set did to one key, and all that is needed to undo it.
type change struct {
	Absent bool   // the key was not there
	Old    string // its value as written, when it was
	// Made counts the levels above the key that set created.
	Made int
	// Inner is what stood between the braces of the object that got the first
	// of the new members, if that was empty; nil if it was not.
	Inner *string
}

var syntaxes = map[string]*syntax{"json": strictJSON, "jsonc": looseJSON, "toml": tomlSyntax, "env": envSyntax}

const byteOrderMark = "\xef\xbb\xbf"

// cutMark takes the byte order mark off a file; edits put it back.
func cutMark(data []byte) (mark, rest []byte) {
	if bytes.HasPrefix(data, []byte(byteOrderMark)) {
		return data[:3], data[3:]
	}
	return nil, data
}

// newline is the line end that a file uses.
func newline(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// splice replaces data[from:to].
func splice(data []byte, from, to int, with string) []byte {
	out := make([]byte, 0, len(data)-(to-from)+len(with))
	out = append(out, data[:from]...)
	out = append(out, with...)
	return append(out, data[to:]...)
}

// position is the line and column of an offset, both from 1.
func position(data []byte, offset int) (line, column int) {
	before := data[:min(max(offset, 0), len(data))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// dotted is a path for people.
func dotted(path []string) string { return strings.Join(path, ".") }

// lookUp finds a value in decoded settings.
func lookUp(tree map[string]any, path ...string) (any, bool) {
	var at any = tree
	for _, name := range path {
		level, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = level[name]; !ok {
			return nil, false
		}
	}
	return at, true
}

// text finds a string in decoded settings; "" for anything else.
func text(tree map[string]any, path ...string) string {
	value, _ := lookUp(tree, path...)
	s, _ := value.(string)
	return s
}

// verify checks that an edit left a file that the agent reads, in which
// nothing but the wanted keys differs from before.
func (s *syntax) verify(before, after []byte, wants []want) error {
	old, err := s.decode(before)
	if err != nil {
		return err
	}
	got, err := s.decode(after)
	if err != nil {
		return fmt.Errorf("the edited file would not parse: %w", err)
	}
	for _, w := range wants {
		if err := setIn(old, w.path, w.value); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(old, got) {
		return fmt.Errorf("the edit would change more than %s", wanted(wants))
	}
	return nil
}

func wanted(wants []want) string {
	names := make([]string, len(wants))
	for i, w := range wants {
		names[i] = dotted(w.path)
	}
	return strings.Join(names, ", ")
}

// setIn sets a value in decoded settings.
func setIn(tree map[string]any, path []string, value string) error {
	for _, name := range path[:len(path)-1] {
		next, there := tree[name]
		if !there {
			next = map[string]any{}
			tree[name] = next
		}
		level, ok := next.(map[string]any)
		if !ok {
			return fmt.Errorf("%q is not an object", name)
		}
		tree = level
	}
	tree[path[len(path)-1]] = value
	return nil
}

// text is the string that raw stands for; "" where it is none.
func (s *syntax) text(raw []byte) string {
	value, _ := s.literal(raw)
	return value
}

// means says whether raw stands for the string value.
func (s *syntax) means(raw []byte, value string) bool {
	got, ok := s.literal(raw)
	return ok && got == value
}

// literal decodes one string as it is written.
func (s *syntax) literal(raw []byte) (string, bool) {
	value, ok := s.value(raw)
	if !ok {
		return "", false
	}
	text, ok := value.(string)
	return text, ok
}

// value decodes one value as it is written.
func (s *syntax) value(raw []byte) (any, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	if s.name == "env" {
		return envValue(string(raw)), true
	}
	wrapped := `{"v":` + string(raw) + `}`
	if s.name == "toml" {
		wrapped = "v = " + string(raw)
	}
	tree, err := s.decode([]byte(wrapped))
	if err != nil {
		return nil, false
	}
	value, ok := tree["v"]
	return value, ok
}
