package config

import (
	"fmt"
	"slices"
	"strconv"
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

// checkToken never repeats the token.
func checkToken(text string) (string, *problem) {
	bad := strings.ContainsFunc(text, func(r rune) bool { return !isNameRune(r) })
	if bad || len(text) < minToken || strings.Trim(text, ".") == "" {
		return "", &problem{"the token is not usable as a secret path segment",
			fmt.Sprintf("use %d or more of letters, digits, \".\", \"_\" and \"-\"", minToken)}
	}
	return text, nil
}

func checkV1(text string) (bool, *problem) {
	switch text {
	case "keep":
		return false, nil
	case "strip":
		return true, nil
	}
	return false, &problem{fmt.Sprintf("v1 is %q", clip(text)), "write keep or strip"}
}

// unusableHeaders carry credentials or belong to the connection.
var unusableHeaders = []string{"authorization", "x-api-key", "api-key", "x-goog-api-key", "proxy-authorization", "cookie",
	"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "te", "trailer",
	"upgrade", "keep-alive", "expect", "accept", "accept-encoding", "user-agent", "x-agentop-route"}

func checkHeader(text string) (string, *problem) {
	name := strings.ToLower(strings.TrimSpace(text))
	token := name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !isNameRune(r) && !strings.ContainsRune("!#$%&'*+^`|~", r)
	})
	if !token {
		return "", &problem{fmt.Sprintf("session_header %q is not a header name", clip(text)), "write one such as x-dynamo-session-id"}
	}
	if slices.Contains(unusableHeaders, name) {
		return "", &problem{fmt.Sprintf("session_header %q has another meaning", name), "write one such as x-dynamo-session-id"}
	}
	return name, nil
}

func checkFile(text string) (string, *problem) {
	if !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "~/") || strings.ContainsRune(text, 0) {
		return "", &problem{fmt.Sprintf("%q is not the full path of a file", clip(text)), "begin it with / or ~/"}
	}
	return text, nil
}

func checkHeadroom(text string) (float64, *problem) {
	return checkNumber(text, 1, "write a number from 1, such as 2")
}

func checkCost(text string) (float64, *problem) {
	value, bad := checkNumber(text, 0, "write a number over 0, such as 1")
	if bad == nil && value == 0 {
		bad = &problem{"the cost is 0", "write a number over 0, such as 1"}
	}
	return value, bad
}

func checkNumber(text string, least float64, instead string) (float64, *problem) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= least) || value > 1e9 {
		return 0, &problem{fmt.Sprintf("%q is not such a number", clip(text)), instead}
	}
	return value, nil
}

func checkCapacity(text string) (int, *problem) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1_000_000 {
		return 0, &problem{fmt.Sprintf("the capacity is %q", clip(text)), "write how many requests it serves at once, or 0 if that is not known"}
	}
	return n, nil
}

// ParseKeySource reads a key source in the form that `key` has in config.yaml,
// but for a command: stored, env:NAME, keychain, client or none.
func ParseKeySource(text string) (KeySource, error) {
	source, bad := checkKeySource(strings.TrimSpace(text))
	return source, bad.err()
}
