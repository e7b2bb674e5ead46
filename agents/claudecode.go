package agents

import (
	"bytes"
	"encoding/json"
	"strings"

	"agentop/agents/outline"
)

// recogniseClaudeCode reads Claude Code's dialect. The session stands in
// metadata.user_id, in newer versions in a header too. Its subagents, titles,
// compactions and other helpers carry the id of the session they work for, and
// some of them come before its first turn: they are told from main turns by a
// class header (newer versions, where it is switched on), by a subagent's id,
// by the shape of the body and, last, by the first words of their texts. The
// words change with versions; a mark that is missing here costs an early
// placement of a session that nobody knew, never a move.
func recogniseClaudeCode(r Request) told {
	session := firstHeader(r, "X-Claude-Code-Session-Id")
	if session.value == "" {
		session = id{sessionOfUserID(r.Outline.UserID), "metadata.user_id"}
	}
	turn, kind := claudeTurn(r)
	return told{session: session, turn: turn, kind: kind}
}

// sessionOfUserID reads the session out of metadata.user_id: either JSON text
// with a session_id, or user_HASH_account_UUID_session_UUID. "" when it is
// neither: a user id of another client says nothing of a session.
func sessionOfUserID(userID string) string {
	if strings.HasPrefix(userID, "{") {
		var fields struct {
			SessionID string `json:"session_id"`
		}
		if json.Unmarshal([]byte(userID), &fields) != nil {
			return ""
		}
		return fields.SessionID
	}
	const mark = "_session_"
	at := strings.LastIndex(userID, mark)
	if at < 0 || !strings.HasPrefix(userID, "user_") {
		return ""
	}
	return userID[at+len(mark):]
}

func claudeTurn(r Request) (Turn, Kind) {
	o := r.Outline
	class := r.Header.Get("X-Claude-Code-Request-Class")
	switch {
	case isSubagent(r) || billedToSubagent(o.System):
		return Side, KindSubagent
	case class != "" && class != "main":
		return Side, claudeSideKind(class, o)
	case class == "" && (claudeOneShot(o) || claudeReplay(o)):
		return Side, claudeSideKind(class, o)
	}
	return mainTurn(hasHistory(o) ||
		r.Header.Get("X-Claude-Code-Context-Compacted") != "" ||
		begins(o.FirstUser, "This session is being continued"))
}

// billedToSubagent tells a subagent by the billing block that leads system.
func billedToSubagent(system []outline.Text) bool {
	return len(system) > 0 && isBilling(system[0]) &&
		bytes.Contains(system[0].Head, []byte("cc_is_subagent=true"))
}

func isBilling(t outline.Text) bool {
	return bytes.HasPrefix(t.Head, []byte("x-anthropic-billing-header"))
}

// claudeOneShot tells a helper that has its own short prompt, by its shape and
// by the texts that a main turn cannot have. No rule but the first few may
// look at requests with context_management: those that have it are the main
// conversation or repeat it.
func claudeOneShot(o *outline.Outline) bool {
	if o.MaxTokens == 1 || // the quota probe
		o.ToolChoice == "tool" || // a helper forces its one tool; a main turn leaves the choice
		o.Tools > 0 && o.Tools == o.ServerTools || // the web search helper
		o.OutputFormat && !o.ContextManagement ||
		o.Tools == 0 && !o.Stream ||
		o.Tools == 0 && o.LastRole == "assistant" { // a prefilled answer is no history
		return true
	}
	if o.ContextManagement {
		return false
	}
	if o.Tools == 0 && (onlyIdentity(o.System) || claudeMaterial(o)) {
		return true
	}
	return begins(o.System, claudeTitleMarks...) || begins(o.System,
		"Generate a short",
		"Extract any file paths",
		"You are an expert at analyzing git history",
		"Your task is to process Bash commands",
		summarizerMark)
}

// summarizerMark begins the system text of old compactions, in Claude Code
// and OpenCode alike.
const summarizerMark = "You are a helpful AI assistant tasked with summarizing"

// claudeTitleMarks begin the system text of requests for a title and of topic
// checks, which come just before the turn that they are about.
var claudeTitleMarks = []string{
	"Generate a concise",
	"You are naming a coding session",
	"Analyze if this message",
}

// onlyIdentity tells a system that is no more than the billing block and one
// line of who speaks; a main turn has its instructions there.
func onlyIdentity(system []outline.Text) bool {
	for _, text := range system {
		if isBilling(text) {
			continue
		}
		one := []outline.Text{text}
		if !begins(one, "You are Claude Code, Anthropic's official CLI for Claude.", "You are a Claude agent, built on") {
			return false
		}
		line := bytes.TrimSpace(text.Head)
		if len(text.Head) >= outline.HeadBytes || bytes.IndexByte(line, '\n') >= 0 {
			return false
		}
	}
	return len(system) > 0
}

// claudeMaterial tells a single message that hands a helper its material, or
// a probe's one word.
func claudeMaterial(o *outline.Outline) bool {
	if o.Count != 1 {
		return false
	}
	return is(o.FirstUser, "Hi", "quota") || begins(o.FirstUser,
		"<session>", "<conversation>", "<transcript>",
		"Web page content:", "Perform a web search", "Warmup")
}

// claudeReplay tells a helper that repeats the conversation and adds an
// instruction at its end, and an agent by its own system text.
func claudeReplay(o *outline.Outline) bool {
	return begins(o.LastUser, claudeReplayMarks...) || begins(o.AfterUser, claudeReplayMarks...) ||
		len(o.System) > 0 && begins(o.System[len(o.System)-1:], claudeAgentMarks...)
}

var claudeReplayMarks = []string{
	"CRITICAL: Respond with TEXT ONLY",
	"[SUGGESTION MODE:",
	"<system-reminder>This is a side question",
	"The user stepped away",
	"<fork-boilerplate>",
	"Your task is to create a detailed summary",
}

var claudeAgentMarks = []string{
	"You are evaluating a",
	"You are verifying a stop condition",
	"You are an agent for Claude Code",
	"You are a file search specialist",
	"You are a software architect and planning",
	"You are a subagent spawned",
}

// claudeSideKind is the word for a request that is known to be a side request.
func claudeSideKind(class string, o *outline.Outline) Kind {
	compaction := []string{"CRITICAL: Respond with TEXT ONLY", "Your task is to create a detailed summary"}
	agent := claudeAgentMarks[2:]
	switch {
	case class == "compaction", begins(o.System, summarizerMark), begins(o.LastUser, compaction...), begins(o.AfterUser, compaction...):
		return KindCompaction
	case class == "subagent", class == "workflow", begins(o.System, agent...), begins(o.LastUser, "<fork-boilerplate>", "Warmup"):
		return KindSubagent
	case begins(o.System, claudeTitleMarks...), begins(o.FirstUser, "<session>"):
		return KindTitle
	}
	return KindHelper
}
