package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// The own upstreams of the agents that have one without being told.
const (
	anthropicUpstream = "https://api.anthropic.com"
	openaiUpstream    = "https://api.openai.com"
	// chatgptUpstream serves requests that bear a ChatGPT account
	// (chatgpt-account-id). Its paths have no /v1.
	chatgptUpstream = "https://chatgpt.com/backend-api/codex"
)

// OwnUpstream gives the address where the agent would go without agentop;
// false when there is none, be it that the user said so (`upstream: none`) or
// that nobody knows one for this agent and provider.
//
// provider is OpenCode's provider path segment, "" for other agents. chatgpt
// says that the request bears chatgpt-account-id: Codex and OpenCode then go
// to ChatGPT and not to OpenAI, unless one upstream is configured for both.
func (c *Config) OwnUpstream(agent, provider string, chatgpt bool) (string, bool) {
	choice := c.Agents[agent]
	if choice.UpstreamNone {
		return "", false
	}
	if agent == "codex" {
		provider = "openai"
		if chatgpt {
			provider = "chatgpt"
		}
	}
	for _, key := range []string{provider, ""} {
		if address, found := choice.Upstream[key]; found {
			return address, true
		}
	}
	return builtinUpstream(agent, provider, chatgpt)
}

// UpstreamWords is an agent's own upstream as lists show it: its address, an
// address for each provider that has one configured, "by provider" where the
// provider alone tells, or "none".
func (c *Config) UpstreamWords(agent string) string {
	choice := c.Agents[agent]
	if choice.UpstreamNone {
		return "none"
	}
	if address, found := c.OwnUpstream(agent, "", false); found {
		return address
	}
	var parts []string
	for _, provider := range slices.Sorted(maps.Keys(choice.Upstream)) {
		parts = append(parts, provider+": "+choice.Upstream[provider])
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case agent == "opencode":
		return "by provider"
	}
	return "none"
}

func builtinUpstream(agent, provider string, chatgpt bool) (string, bool) {
	switch {
	case agent == "claude-code", agent == "opencode" && provider == "anthropic":
		return anthropicUpstream, true
	case agent == "codex" && provider == "chatgpt", agent == "opencode" && provider == "openai" && chatgpt:
		return chatgptUpstream, true
	case agent == "codex", agent == "opencode" && provider == "openai":
		return openaiUpstream, true
	}
	return "", false
}

// upstreamStripsV1 says whether an own upstream's paths have no /v1: so it is
// with ChatGPT's, wherever its address comes from.
func upstreamStripsV1(address string) bool {
	return strings.TrimRight(address, "/") == chatgptUpstream
}

// JoinURL gives the address to which a request is sent. base is a server's or
// an upstream's URL as Config holds it. path is the agent's path, still
// percent-encoded, with the segments that name the agent removed. rawQuery is
// the query as it came, without the question mark.
//
// The rule:
//  1. base's path comes first, the agent's path second, exactly one slash
//     between them. Percent-encoding and query are left as they came.
//  2. Where base ends in /v1, the /v1 at the beginning of the agent's path is
//     the same one: it is written once. It is also written once where the
//     agent doubled it itself.
//  3. With stripV1 the /v1 at the beginning of the agent's path is left out.
//  4. Else an API path without /v1 gets it (OpenCode's openai base URL has
//     none, and a base URL with and without /v1 means the same server). Other
//     paths, such as /api/hello, get nothing.
//
// What stands in base is never taken away, so any address can be reached.
func JoinURL(base, path, rawQuery string, stripV1 bool) string {
	base = strings.TrimRight(base, "/")
	path = "/" + strings.TrimLeft(path, "/")
	rest, versioned := cutV1(path)
	switch {
	case versioned, !stripV1 && isAPIPath(rest):
		path = "/v1" + rest
		if stripV1 || endsInV1(base) {
			path = rest
		}
	}
	if path == "" && hasNoPath(base) {
		path = "/"
	}
	if rawQuery != "" {
		path += "?" + rawQuery
	}
	return base + path
}

// JoinUpstream gives the address at an agent's own upstream. Where that has a
// path, nothing is added to the agent's: without agentop the agent would ask
// for just this, and only an address that was taken over from the agent, or
// written by the user, has one. Else it is JoinURL's rule, with ChatGPT's
// address known as one without /v1.
func JoinUpstream(base, path, rawQuery string) string {
	strip := upstreamStripsV1(base)
	if _, versioned := cutV1("/" + strings.TrimLeft(path, "/")); versioned || strip || hasNoPath(strings.TrimRight(base, "/")) {
		return JoinURL(base, path, rawQuery, strip)
	}
	joined := strings.TrimRight(base, "/") + "/" + strings.TrimLeft(path, "/")
	if rawQuery != "" {
		joined += "?" + rawQuery
	}
	return joined
}

// cutV1 takes every leading /v1 segment off a path.
func cutV1(path string) (rest string, found bool) {
	for path == "/v1" || strings.HasPrefix(path, "/v1/") {
		path, found = strings.TrimPrefix(path, "/v1"), true
		if trimmed := strings.TrimLeft(path, "/"); trimmed != "" {
			path = "/" + trimmed
		}
	}
	return path, found
}

// apiRoots are the first segments, after /v1, of the three APIs' paths.
var apiRoots = []string{"messages", "complete", "responses", "chat", "completions", "models", "embeddings", "files",
	"batches", "images", "audio", "moderations", "conversations", "uploads", "vector_stores", "rerank"}

func isAPIPath(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains(apiRoots, first)
}

func endsInV1(base string) bool {
	return strings.HasSuffix(base, "/v1") && !strings.HasSuffix(base, "//v1")
}

func hasNoPath(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Path == ""
}
