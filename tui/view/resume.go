package view

import "strings"

// Resume is the command that continues a conversation in its agent, safe to
// paste into a shell. False when there is none: the agent is not known to have
// one, or the conversation has no id that the agent knows.
func Resume(agent, id, dir string) (string, bool) {
	if id == "" || !shellSafe(id) {
		return "", false
	}
	var command string
	switch agent {
	case "claude-code":
		command = "claude --resume " + shellQuote(id)
	case "codex":
		command = "codex resume " + shellQuote(id)
	case "opencode":
		command = "opencode -s " + shellQuote(id)
	case "qwen-code":
		command = "qwen --resume " + shellQuote(id)
	default:
		return "", false
	}
	if dir != "" && shellSafe(dir) {
		command = "cd " + shellQuote(dir) + " && " + command
	}
	return command, true
}

// shellSafe reports whether text can be shown as it is: a command that is
// shown otherwise than it is must not be offered.
func shellSafe(s string) bool {
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\ufffd' {
			return false
		}
	}
	return len(s) < 4096 && !strings.HasPrefix(s, "-") && (&Theme{}).clean(s) == s
}

// shellQuote makes one word of text for a POSIX shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,", r)
	}
	if strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
