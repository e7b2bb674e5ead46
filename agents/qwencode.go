package agents

import (
	"strings"

	"agentop/agents/outline"
)

// recogniseQwenCode reads Qwen Code's dialect. It states a session only where
// it speaks Responses, as a prompt_cache_key; in the other two formats its
// conversations are known by content alone. No header tells what a request is:
// a helper has no tools, or does not stream, or its system text or last
// message says what it is.
func recogniseQwenCode(r Request) told {
	var session id
	if value, found := strings.CutPrefix(r.Outline.PromptCacheKey, "qwen-code:"); found {
		session = id{value, "prompt_cache_key"}
	}
	turn, kind := qwenCodeTurn(r, session.value != "" || r.Header.Get("X-Dynamo-Session-Id") != "")
	return told{session: session, turn: turn, kind: kind}
}

func qwenCodeTurn(r Request, statesSession bool) (Turn, Kind) {
	o := r.Outline
	switch {
	case isSubagent(r):
		return Side, KindSubagent
	case begins(o.LastUser, qwenCodeSummary), begins(o.System, qwenCodeSummary):
		return Side, KindCompaction
	case begins(o.LastUser, "[SUGGESTION MODE:"), begins(o.System, qwenCodeReviewers...):
		return Side, KindHelper
	case begins(o.System, "Generate a concise, sentence-case title"):
		return Side, KindTitle
	case !o.Stream, o.Tools == 0:
		return Side, KindHelper
	case statesSession && !qwenCodeMain(o):
		// A subagent states the session of who called it. After a loss it may be
		// what is seen first of that, and must not place it. Without a session it
		// is a conversation of its own, for nothing leads to its caller's.
		return Side, KindSubagent
	}
	return mainTurn(hasHistory(o))
}

// qwenCodeSummary begins a compaction: as a user's message where the main
// conversation's cache is to serve it, else as the system text.
const qwenCodeSummary = "You are the component that summarizes"

// qwenCodeReviewers begin the system texts of those that look back at a
// conversation after a turn. They have tools, and the conversation's messages.
var qwenCodeReviewers = []string{
	"You are now acting as the managed memory", "You are performing a managed memory", "You are reviewing this conversation",
}

// qwenCodeMain tells the main conversation by its own system text or, where
// the user has replaced that, by the date that stands before his prompts.
func qwenCodeMain(o *outline.Outline) bool {
	const date = "<system-reminder>\nThe current date is"
	return begins(o.System, "You are Qwen Code,") || begins(o.FirstUser, date) || begins(o.LastUser, date)
}
