package agents

import (
	"net/http"
	"slices"
	"strings"
)

type product struct {
	agent  Agent
	prefix string
}

// products are how the agents' User-Agents begin, in lower case.
var products = []product{
	{OpenCode, "opencode"},
	{QwenCode, "qwencode/"},
	{ClaudeCode, "claude-cli/"},
	{ClaudeCode, "claude-code/"},
	{Codex, "codex"},
}

// productOf tells whose User-Agent that is; Other for a program that is none
// of the agents.
func productOf(userAgent string) Agent {
	for _, p := range products {
		if hasPrefixFold(userAgent, p.prefix) {
			return p.agent
		}
	}
	return Other
}

// agentOf tells by its headers which agent sent a request to a bare base URL;
// Other when nothing tells. Headers that only one agent sends come before
// User-Agent, since plugins of one agent borrow the User-Agent of another.
func agentOf(method, path string, h http.Header) Agent {
	switch {
	case h.Get("X-Codex-Turn-Metadata") != "", hasPrefixFold(h.Get("Originator"), "codex"):
		return Codex
	case h.Get("X-Claude-Code-Session-Id") != "":
		return ClaudeCode
	case h.Get("X-Session-Affinity") != "":
		return OpenCode
	}
	ua := h.Get("User-Agent")
	agent := productOf(ua)
	if agent == Other && method == http.MethodHead && (path == "/api/hello" || path == "/" && hasPrefixFold(ua, "bun/")) {
		return ClaudeCode // its probe at start carries nothing of its own
	}
	return agent
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Version is the agent's version as a User-Agent of its own states it, for
// display: what follows the first slash, at most 32 bytes of letters, digits
// and ".-+_". "" when there is none, or when the User-Agent of a known agent's
// request is another program's: a script's, a probe's, a borrowed one.
func Version(agent Agent, userAgent string) string {
	if own := productOf(userAgent); own != agent && (own != Other || isKnown(agent)) {
		return ""
	}
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

// isKnown reports whether it is known how agent's User-Agent begins.
func isKnown(agent Agent) bool {
	return slices.ContainsFunc(products, func(p product) bool { return p.agent == agent })
}

func isVersionByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '.' || c == '-' || c == '+' || c == '_'
}
