package agents

import (
	"net/http"
	"strings"
)

// agentOf tells by its headers which agent sent a request to a bare base URL;
// Other when nothing tells. Headers that only one agent sends come before
// User-Agent, since plugins of one agent borrow the User-Agent of another.
func agentOf(method, path string, h http.Header) Agent {
	ua := strings.ToLower(h.Get("User-Agent"))
	switch {
	case h.Get("X-Codex-Turn-Metadata") != "", hasPrefixFold(h.Get("Originator"), "codex"):
		return Codex
	case h.Get("X-Claude-Code-Session-Id") != "":
		return ClaudeCode
	case strings.HasPrefix(ua, "opencode"), h.Get("X-Session-Affinity") != "":
		return OpenCode
	case strings.HasPrefix(ua, "qwencode/"):
		return QwenCode
	case strings.HasPrefix(ua, "claude-cli/"), strings.HasPrefix(ua, "claude-code/"):
		return ClaudeCode
	case strings.HasPrefix(ua, "codex"):
		return Codex
	case method == http.MethodHead && (path == "/api/hello" || path == "/" && strings.HasPrefix(ua, "bun/")):
		// Claude Code's probe at start carries nothing of its own.
		return ClaudeCode
	}
	return Other
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Version is the client's version as its User-Agent states it, for display:
// what follows the first slash, at most 32 bytes of letters, digits and
// ".-+_". "" when there is none.
func Version(userAgent string) string {
	_, rest, found := strings.Cut(userAgent, "/")
	if !found {
		return ""
	}
	end := 0
	for end < len(rest) && isVersionByte(rest[end]) {
		end++
	}
	const limit = 32
	if end == 0 || end > limit || rest[0] < '0' || rest[0] > '9' {
		return ""
	}
	return rest[:end]
}

func isVersionByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '.' || c == '-' || c == '+' || c == '_'
}
