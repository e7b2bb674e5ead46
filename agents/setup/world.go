package setup

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Override is a setting that wins over the one that agentop edits.
type Override struct {
	Where   string `json:"where"` // a file or a variable
	Key     string `json:"key"`
	Value   string `json:"value"`          // without user name, password and query
	When    string `json:"when,omitempty"` // "" = always
	Managed bool   `json:"managed,omitempty"`
}

// String says it in one line.
func (o Override) String() string {
	when := ""
	if o.When != "" {
		when = " " + o.When
	}
	return fmt.Sprintf("%s is stronger%s: it sets %s to %s", o.Where, when, o.Key, withoutSecrets(o.Value))
}

// files are the settings files that an agent may have been enabled in.
func (w World) files(agent string) []string {
	switch agent {
	case claudeCode:
		return []string{w.claudeFile()}
	case codex:
		return []string{w.codexFile()}
	case openCode:
		return w.openCodeFiles()
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// readTree reads a file that agentop only looks at; nil if it cannot be read.
func readTree(name string, s *syntax) map[string]any {
	c, err := readFile(name)
	if err != nil {
		return nil
	}
	_, data := cutMark(c.data)
	tree, err := s.decode(data)
	if err != nil {
		return nil
	}
	return tree
}

// readText is one string of such a file.
func readText(name string, s *syntax, path ...string) string {
	return text(readTree(name, s), path...)
}

// readEnvFile reads NAME=value lines; nothing from a file that is not there.
func readEnvFile(name string) map[string]string {
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	env := map[string]string{}
	for line := range strings.SplitSeq(string(data), "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, found := strings.Cut(line, "=")
		if !found || strings.HasPrefix(name, "#") {
			continue
		}
		env[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return env
}

func asSyntax(err error, bad **SyntaxError) bool { return errors.As(err, bad) }

// duplicates warns of a key that stands more than once: agents read the last.
func duplicates(data []byte, path []string) []string {
	_, data = cutMark(data)
	if blank(data) {
		return nil
	}
	root, err := parseJSON(data)
	if err != nil {
		return nil
	}
	var notes []string
	at := &root
	for i, name := range path {
		o, ok := objectOf(at)
		if !ok {
			break
		}
		last := member(o, name)
		if last < 0 {
			break
		}
		if count(o, name) > 1 {
			notes = append(notes, dotted(path[:i+1])+" stands more than once in the file; the last one counts, and is the one that is edited")
		}
		at = &o.Members[last].Value
	}
	return notes
}
