package config

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// keyForms is what every message about a bad key source ends with.
const keyForms = "write stored, env:NAME, keychain, command:[program, argument], client or none; a key itself is given with `agentop server add`"

// keySource reads `key`. No message repeats the value: people paste keys here.
func (p *parser) keySource(n *yaml.Node, to *KeySource) {
	if n.Kind == yaml.MappingNode {
		p.keyCommand(n, to)
		return
	}
	text, ok := p.text(n)
	if !ok {
		return
	}
	source, bad := checkKeySource(strings.TrimSpace(text))
	if bad != nil {
		p.fail(n, bad)
		return
	}
	*to = source
}

// keyCommand reads the form that also fits between braces:
// `key: {command: [program, argument]}`.
func (p *parser) keyCommand(n *yaml.Node, to *KeySource) {
	entries := p.entries(n, "key")
	if len(entries) != 1 || entries[0][0].Value != "command" {
		p.fail(n, &problem{"this is not a key source", keyForms})
		return
	}
	argv, bad := commandOf(entries[0][1])
	if bad != nil {
		p.fail(entries[0][1], bad)
		return
	}
	*to = KeySource{Kind: KeyCommand, Command: argv}
}

func checkKeySource(text string) (KeySource, *problem) {
	switch kind := KeyKind(text); kind {
	case KeyStored, KeyKeychain, KeyClient, KeyNone:
		return KeySource{Kind: kind}, nil
	}
	if name, found := strings.CutPrefix(text, "env:"); found {
		name = strings.TrimPrefix(strings.TrimSpace(name), "$")
		if !isEnvName(name) {
			return KeySource{}, &problem{"env: must be followed by the name of an environment variable", "write it as env:GLM_KEY"}
		}
		return KeySource{Kind: KeyEnv, Env: name}, nil
	}
	if rest, found := strings.CutPrefix(text, "command:"); found {
		root, err := readNodes("", []byte(rest))
		if err != nil || root == nil {
			return KeySource{}, badCommand
		}
		argv, bad := commandOf(root)
		return KeySource{Kind: KeyCommand, Command: argv}, bad
	}
	return KeySource{}, &problem{"this is not a key source", keyForms}
}

var badCommand = &problem{"command: must be followed by a list, the program first", `write it as command:[pass, show, glm]; it is run without a shell`}

func commandOf(n *yaml.Node) ([]string, *problem) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, badCommand
	}
	var argv []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || isNull(item) || strings.ContainsRune(item.Value, 0) {
			return nil, badCommand
		}
		argv = append(argv, item.Value)
	}
	if strings.TrimSpace(argv[0]) == "" {
		return nil, badCommand
	}
	return argv, nil
}

func isEnvName(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// ParseKeySource reads a key source in the form that `key` has in config.yaml,
// but for a command: stored, env:NAME, keychain, client or none.
func ParseKeySource(text string) (KeySource, error) {
	source, bad := checkKeySource(strings.TrimSpace(text))
	return source, bad.err()
}
