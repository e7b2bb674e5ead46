// Package agents knows how each coding agent talks: from a request's method,
// path, headers and the outline of its body it tells which agent sent it,
// which conversation it belongs to and what kind of turn it is. One file an
// agent. It is pure, and knows nothing of servers, placement or files. Start
// reading at Recognise.
package agents

import (
	"net/http"

	"agentop/agents/outline"
)

// Agent is a coding agent's name as it stands in base URLs, config.yaml and
// every list.
type Agent string

// The agents that agentop knows; any other configured name is an agent too.
const (
	ClaudeCode Agent = "claude-code"
	Codex      Agent = "codex"
	OpenCode   Agent = "opencode"
	QwenCode   Agent = "qwen-code"
	Other      Agent = "other" // no agent could be told
)

// Turn is what a request is to its conversation.
type Turn uint8

// The turns. A main turn is an opening or a continuation.
const (
	NotInference Turn = iota // model lists, token counts, files: "none" in headers and the log
	Side                     // outside the line of turns: titles, compactions, subagents, probes
	Opening                  // the first turn of a conversation
	Continuation             // a later turn of one
)

// String is the word for t in headers, the log and lists.
func (t Turn) String() string {
	switch t {
	case Side:
		return "side"
	case Opening:
		return "opening"
	case Continuation:
		return "continuation"
	}
	return "none"
}

// Kind is the finer word for a side request, for people only: no rule looks
// at it but the wait of a title or topic check.
type Kind string

// The kinds that are told apart.
const (
	KindMain       Kind = "main"
	KindTitle      Kind = "title" // title or topic check: comes a moment before its opening
	KindCompaction Kind = "compaction"
	KindSubagent   Kind = "subagent"
	KindHelper     Kind = "helper" // any other side request
	KindCount      Kind = "count_tokens"
	KindModels     Kind = "models"
	KindOther      Kind = "other" // not inference, and none of the above
)

// Request is all that recognition may look at.
type Request struct {
	Agent   Agent // from the path segment; "" on a bare base URL
	Method  string
	Path    string // as sent, without the agent's segment(s), query cut off
	Header  http.Header
	Outline *outline.Outline // never nil; the zero value for a body that was not read
}

// Recognition is what a request is, as far as the request itself tells.
type Recognition struct {
	Agent   Agent
	Format  outline.Format
	Session string // as the agent states it; "" when it states none
	Parent  string // the session that this one was forked or spawned from, if stated
	// Unknown is the turn for a session that has no pin and no history:
	// Opening, Continuation, Side or NotInference.
	Unknown Turn
	Kind    Kind
}

// Turn is the request's turn: a main turn of a session that is already known
// is a continuation, whatever its body looks like.
func (r Recognition) Turn(known bool) Turn {
	if known && r.Unknown == Opening {
		return Continuation
	}
	return r.Unknown
}
