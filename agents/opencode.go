package agents

import (
	"bytes"
	"strings"

	"agentop/agents/outline"
)

// recogniseOpenCode reads OpenCode's dialect. OpenCode states its session, and
// a subagent's parent, in headers; which ones depends on version and provider,
// and old versions state nothing to some: their conversations are known by
// content alone. Helpers have no tools and say in their system text what they
// are.
func recogniseOpenCode(r Request) told {
	session := firstHeader(r, "X-Session-Id", "X-Session-Affinity", "Session_id")
	if session.value == "" && strings.HasPrefix(r.Outline.PromptCacheKey, "ses_") {
		session = id{r.Outline.PromptCacheKey, "prompt_cache_key"}
	}
	turn, kind := openCodeTurn(r)
	return told{session, firstHeader(r, "X-Parent-Session-Id"), turn, kind}
}

func openCodeTurn(r Request) (Turn, Kind) {
	o := r.Outline
	if isSubagent(r) {
		return Side, KindSubagent
	}
	if kind := openCodeHelper(o); kind != "" {
		return Side, kind
	}
	if o.Tools == 0 && !o.Stream {
		return Side, KindHelper
	}
	return mainTurn(hasHistory(o))
}

// openCodeHelper is the kind of a helper, "" for what is none.
func openCodeHelper(o *outline.Outline) Kind {
	if o.Tools > 0 {
		return ""
	}
	for _, system := range [][]outline.Text{o.System, o.Leading} {
		switch {
		case says(system, "title generator"):
			return KindTitle
		case says(system, "summarization"), says(system, "tasked with summarizing"):
			return KindCompaction
		}
	}
	return ""
}

// says tells whether a system text has words among its first 80 bytes.
func says(system []outline.Text, words string) bool {
	for _, text := range system {
		if bytes.Contains(text.Head[:min(len(text.Head), 80)], []byte(words)) {
			return true
		}
	}
	return false
}
