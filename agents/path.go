package agents

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"agentop/agents/outline"
)

// Split is a request's path, taken apart.
type Split struct {
	// Agent is the agent that the path names, "" on a bare base URL: then the
	// headers tell it (Recognise does that).
	Agent Agent
	// Provider is OpenCode's second segment, decoded; "" for every other
	// agent, and where OpenCode's path has none.
	Provider string
	// Path is what remains for the server, byte for byte as it was sent and
	// still escaped. It begins with a slash.
	Path string
}

// SplitPath takes the agent's segment (for OpenCode also the provider's) off
// the front of a path. escapedPath is the path as it was sent (the request
// URI without its query), with the secret segment already cut off where one
// is configured (see CutToken). configured says whether a name that agentop
// does not know is an agent of the configuration; nil means none is.
//
// It returns an *UnknownAgentError if the first segment names neither an agent
// nor an API.
func SplitPath(escapedPath string, configured func(name string) bool) (Split, error) {
	if escapedPath == "" {
		escapedPath = "/"
	}
	first, rest := cutSegment(escapedPath)
	name := unescape(first)
	agent, known := agentNamed(name, configured)
	switch {
	case known && agent == OpenCode:
		provider, after := cutSegment(rest)
		if provider == "" || isAPI(unescape(provider)) {
			return Split{Agent: agent, Path: rest}, nil
		}
		return Split{Agent: agent, Provider: unescape(provider), Path: after}, nil
	case known:
		return Split{Agent: agent, Path: rest}, nil
	case escapedPath[0] == '/' && (name == "" || isAPI(name)):
		return Split{Path: escapedPath}, nil
	}
	return Split{}, &UnknownAgentError{Segment: name}
}

// agentNamed finds the agent of a path segment.
func agentNamed(name string, configured func(string) bool) (Agent, bool) {
	agent := Agent(name)
	if agent == Other || known(agent) != nil || name != "" && configured != nil && configured(name) {
		return agent, true
	}
	return "", false
}

// cutSegment takes the first segment off path, passing over empty ones (a base
// URL with a slash at its end makes a path that begins with two). rest begins
// with a slash.
func cutSegment(path string) (segment, rest string) {
	trimmed := strings.TrimLeft(path, "/")
	end := strings.IndexByte(trimmed, '/')
	if end < 0 {
		return trimmed, "/"
	}
	return trimmed[:end], trimmed[end:]
}

// CutToken takes the secret segment off the front of path and says whether it
// was there. The comparison takes the same time for every wrong token of the
// right length.
func CutToken(escapedPath, token string) (rest string, ok bool) {
	first, rest := cutSegment(escapedPath)
	if token == "" || subtle.ConstantTimeCompare([]byte(unescape(first)), []byte(token)) != 1 {
		return escapedPath, false
	}
	return rest, true
}

// unescape decodes a segment for comparison; a segment that cannot be decoded
// stands for itself.
func unescape(segment string) string {
	if decoded, err := url.PathUnescape(segment); err == nil {
		return decoded
	}
	return segment
}

// isAPI tells whether a first segment begins an API path: what clients append
// to a base URL, with or without a version.
func isAPI(segment string) bool {
	switch segment {
	case "messages", "responses", "chat", "completions", "embeddings", "models", "files", "api":
		return true
	}
	return len(segment) > 1 && segment[0] == 'v' && segment[1] >= '0' && segment[1] <= '9'
}

// FormatOf is the API format of an inference request, NoFormat for everything
// else. path has no query; a version in front does not matter (OpenCode sends
// Claude's format without one).
func FormatOf(method, path string) outline.Format {
	if method != http.MethodPost {
		return outline.NoFormat
	}
	path = strings.TrimRight(path, "/")
	switch {
	case strings.Contains(path, "/threads/"):
		// A thread's messages are an API of their own: they run nothing.
		return outline.NoFormat
	case strings.HasSuffix(path, "/messages"):
		return outline.Messages
	case strings.HasSuffix(path, "/responses"), isRemoteCompaction(path):
		return outline.Responses
	case strings.HasSuffix(path, "/chat/completions"):
		return outline.ChatCompletions
	}
	return outline.NoFormat
}

// BodyFormatOf is the format that a request's body is written in: FormatOf,
// and for a token count the format of what is counted.
func BodyFormatOf(method, path string) outline.Format {
	if method == http.MethodPost {
		switch path := strings.TrimRight(path, "/"); {
		case strings.HasSuffix(path, "/messages/count_tokens"):
			return outline.Messages
		case strings.HasSuffix(path, "/responses/input_tokens"):
			return outline.Responses
		}
	}
	return FormatOf(method, path)
}

// isRemoteCompaction tells a compaction that has a path of its own. It is run
// by a model over a whole conversation, so it counts as inference.
func isRemoteCompaction(path string) bool {
	return strings.HasSuffix(path, "/responses/compact")
}

// kindOfPath is the kind of a request that is not inference.
func kindOfPath(method, path string) Kind {
	trimmed := strings.TrimRight(path, "/")
	switch {
	case method == http.MethodPost && BodyFormatOf(method, path) != outline.NoFormat:
		return KindCount
	case method == http.MethodGet && (strings.HasSuffix(trimmed, "/models") || strings.Contains(trimmed, "/models/")):
		return KindModels
	}
	return KindOther
}
