package agents

import (
	"encoding/json"
	"strings"
)

// recogniseCodex reads Codex's dialect. Codex names a thread (its conversation)
// and a session (the thread that the user sees, to which subagents' threads
// belong). Newer versions say in JSON, in a header and again in the body, what
// a request is; versions before 0.171 say less there, and 0.80 nothing at all.
func recogniseCodex(r Request) told {
	meta, odd := readTurnMetadata(r)
	session, parent := codexIDs(r, meta)
	turn, kind := codexTurn(r, meta, odd)
	return told{session: session, parent: parent, turn: turn, kind: kind}
}

// turnMetadata is what agentop reads of x-codex-turn-metadata. A field that is
// not there is nil: its absence says nothing, an unknown value says "side".
type turnMetadata struct {
	ThreadSource          *string  `json:"thread_source"`
	RequestKind           *string  `json:"request_kind"`
	HistoryInitialization *string  `json:"history_initialization"`
	WindowNumber          *float64 `json:"window_number"`
	WindowID              *string  `json:"window_id"`
	ParentThreadID        *string  `json:"parent_thread_id"`
	ForkedFromThreadID    *string  `json:"forked_from_thread_id"`
}

// readTurnMetadata reads the header, else its copy in the body. odd says that
// there is one, but not in a shape that agentop knows.
func readTurnMetadata(r Request) (meta turnMetadata, odd bool) {
	text := r.Header.Get("X-Codex-Turn-Metadata")
	if text == "" {
		text = r.Outline.TurnMetadata
	}
	if text == "" {
		return meta, false
	}
	err := json.Unmarshal([]byte(text), &meta)
	return meta, err != nil
}

// codexIDs: the session of agentop is Codex's thread. The parent is where a
// conversation's server can be learnt from: for a thread inside another
// session, that session, which is the main thread even when subagents spawn
// subagents; for a fork the thread that it was made of.
func codexIDs(r Request, meta turnMetadata) (session, parent id) {
	root := firstHeader(r, "Session-Id", "Session_id", "Conversation_id")
	session = firstHeader(r, "Thread-Id")
	if session.value == "" {
		session = root
	}
	if session.value == "" {
		session = id{r.Outline.PromptCacheKey, "prompt_cache_key"}
	}
	for _, candidate := range []id{
		root,
		firstHeader(r, "X-Codex-Parent-Thread-Id"),
		{text(meta.ParentThreadID), "parent_thread_id"},
		{text(meta.ForkedFromThreadID), "forked_from_thread_id"},
	} {
		if candidate.value != "" && candidate.value != session.value {
			return session, candidate
		}
	}
	return session, id{}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func codexTurn(r Request, meta turnMetadata, odd bool) (Turn, Kind) {
	o := r.Outline
	source, kind := text(meta.ThreadSource), text(meta.RequestKind)
	switch {
	case kind == "compaction", o.LastType == "compaction_trigger",
		begins(o.LastUser, "You are performing a CONTEXT CHECKPOINT"):
		return Side, KindCompaction
	case isSubagent(r), source == "subagent":
		return Side, KindSubagent
	case source == "thread_title":
		return Side, KindTitle
	case meta.ThreadSource != nil && source != "user", meta.RequestKind != nil && kind != "turn", odd:
		return Side, KindHelper
	}
	if hasHistory(o) || codexBegan(r, meta) {
		return mainTurn(true)
	}
	if !o.Stream || unexplainedThread(r, meta) {
		return Side, KindHelper
	}
	return mainTurn(false)
}

// codexBegan tells a conversation that began before, though its history is
// not in the request: Codex replaces it by a summary when it compacts.
func codexBegan(r Request, meta turnMetadata) bool {
	window := r.Header.Get("X-Codex-Window-Id")
	if window == "" {
		window = text(meta.WindowID)
	}
	how := text(meta.HistoryInitialization)
	const summary = "Another language model started to solve this problem"
	return meta.WindowNumber != nil && *meta.WindowNumber > 0 ||
		window != "" && !strings.HasSuffix(window, ":0") ||
		meta.HistoryInitialization != nil && how != "new" && how != "cleared" ||
		begins(r.Outline.FirstUser, summary) || begins(r.Outline.PriorUser, summary) || begins(r.Outline.LastUser, summary)
}

// unexplainedThread tells a thread inside another's session that Codex does
// not call the user's own: nothing says that it is a conversation.
func unexplainedThread(r Request, meta turnMetadata) bool {
	if r.Header.Get("X-Codex-Parent-Thread-Id") != "" || meta.ParentThreadID != nil {
		return true
	}
	thread, root := r.Header.Get("Thread-Id"), r.Header.Get("Session-Id")
	return thread != "" && root != "" && thread != root && meta.ThreadSource == nil
}
