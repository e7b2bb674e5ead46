package setup

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// envSyntax is a file of NAME=value lines, which Codex loads into its
// environment: ~/.codex/.env. What takes more than one line is left alone.
var envSyntax = &syntax{
	name: "env", decode: decodeEnv, find: findEnv, set: setEnv, put: putEnv, unset: unsetEnv,
	prune:  func(data []byte, _ []string) ([]byte, error) { return data, nil }, // there are no levels
	refill: func(data []byte, _ []string, _ string) ([]byte, error) { return data, nil },
}

// envLine is one assignment.
type envLine struct {
	name      string
	line, raw span // the line without its end; the value as it is written
	value     string
}

// assignment finds the name and what follows it; a value is quoted as a whole,
// or ends before a comment.
var assignment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*('[^']*'|"(?:[^"\\]|\\.)*"|[^ \t'"#]*)[ \t]*(?:#.*)?$`)
})

// scanEnv reads every line; one that is no assignment, comment or blank is an
// error.
func scanEnv(data []byte) ([]envLine, error) {
	var list []envLine
	for at := 0; at < len(data); {
		end := lineEnd(data, at)
		text := strings.TrimRight(string(data[at:end]), "\r\n")
		if trimmed := strings.TrimSpace(text); trimmed != "" && trimmed[0] != '#' {
			m := assignment().FindStringSubmatchIndex(text)
			if m == nil {
				line, column := position(data, at)
				return nil, &SyntaxError{Line: line, Column: column, Reason: "this is no NAME=value line"}
			}
			list = append(list, envLine{
				name: text[m[2]:m[3]], line: span{at, at + len(text)}, raw: span{at + m[4], at + m[5]}, value: envValue(text[m[4]:m[5]]),
			})
		}
		at = end
	}
	return list, nil
}

// envValue is what a value stands for.
func envValue(raw string) string {
	switch {
	case strings.HasPrefix(raw, "'"):
		return strings.Trim(raw, "'")
	case strings.HasPrefix(raw, `"`):
		return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`).Replace(raw[1 : len(raw)-1])
	}
	return raw
}

func decodeEnv(data []byte) (map[string]any, error) {
	lines, err := scanEnv(data)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	for _, l := range lines {
		tree[l.name] = l.value
	}
	return tree, nil
}

// entryOf is the last line that sets a name, which counts; nil for none.
func entryOf(data []byte, path []string) (*envLine, error) {
	lines, err := scanEnv(data)
	if err != nil {
		return nil, err
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].name == path[0] {
			return &lines[i], nil
		}
	}
	return nil, nil
}

func findEnv(data []byte, path []string) (raw []byte, found bool, err error) {
	l, err := entryOf(data, path)
	if err != nil || l == nil {
		return nil, false, err
	}
	return data[l.raw.from:l.raw.to], true, nil
}

// plainValue needs no quotes, and has none in it.
var plainValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.,:*/\[\]@-]*$`) })

func setEnv(data []byte, path []string, value string) ([]byte, change, error) {
	if !plainValue().MatchString(value) {
		return nil, change{}, fmt.Errorf("%s would need quotes", path[0])
	}
	l, err := entryOf(data, path)
	if err != nil {
		return nil, change{}, err
	}
	if l != nil {
		return splice(data, l.raw.from, l.raw.to, value), change{Old: string(data[l.raw.from:l.raw.to])}, nil
	}
	line, eol := path[0]+"="+value, newline(data)
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		return splice(data, len(data), len(data), eol+line), change{Absent: true}, nil
	}
	return splice(data, len(data), len(data), line+eol), change{Absent: true}, nil
}

func putEnv(data []byte, path []string, raw string) ([]byte, error) {
	l, err := entryOf(data, path)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("%s is not there", path[0])
	}
	return splice(data, l.raw.from, l.raw.to, raw), nil
}

func unsetEnv(data []byte, path []string) ([]byte, error) {
	l, err := entryOf(data, path)
	if err != nil || l == nil {
		return data, err
	}
	from, to := l.line.from, lineEnd(data, l.line.to)
	if to == len(data) && from > 0 && data[to-1] != '\n' {
		from-- // the line end before it came with it
		if from > 0 && data[from-1] == '\r' {
			from--
		}
	}
	return splice(data, from, to, ""), nil
}
