package agents

import (
	"bytes"
	"strings"

	"agentop/agents/outline"
)

// recogniseOpenCode reads OpenCode's dialect. OpenCode states its session, and a subagent's parent, in headers; older
// versions state nothing, and their conversations are known by content alone.
// Helpers have no tools and say in their system text what they are.
func recogniseOpenCode(r Request) told {
	session := firstHeader(r, "X-Session-Id", "X-Session-Affinity")
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
	if o.Tools == 0 {
		switch {
		case says(o.System, "title generator"):
			return Side, KindTitle
		case says(o.System, "summarization"), says(o.System, "tasked with summarizing"):
			return Side, KindCompaction
		case !o.Stream:
			return Side, KindHelper
		}
	}
	return mainTurn(hasHistory(o))
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
