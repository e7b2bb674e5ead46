package agents

import (
	"fmt"
	"strings"
	"testing"
)

// claudeBody is the body of a main turn, with parts replaced: each part is
// "key=JSON"; an empty JSON leaves the key out.
func claudeBody(parts ...string) string {
	fields := map[string]string{
		"system":   `[{"type":"text","text":"You are an interactive agent"}]`,
		"messages": `[{"role":"user","content":[{"type":"text","text":"fix it"}]}]`,
		"tools":    `[{"name":"Bash"},{"name":"Read"},{"name":"Edit"},{"name":"Agent"}]`,
		"stream":   `true`,
	}
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		fields[key] = value
	}
	var members []string
	for key, value := range fields {
		if value != "" {
			members = append(members, fmt.Sprintf("%q:%s", key, value))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestClaudeCodeMarks changes one thing at a time in the body of a first turn.
func TestClaudeCodeMarks(t *testing.T) {
	const (
		kept  = `context_management={"edits":[]}`
		class = "x-claude-code-request-class: "
	)
	user := func(text string) string {
		return fmt.Sprintf(`messages=[{"role":"user","content":[{"type":"text","text":"fix it"},{"type":"text","text":%q}]}]`, text)
	}
	after := func(text string) string {
		return fmt.Sprintf(`messages=[{"role":"user","content":"fix it"},{"role":"system","content":%q}]`, text)
	}
	system := func(text string) string {
		return fmt.Sprintf(`system=[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1;"},{"type":"text","text":%q}]`, text)
	}
	for _, tc := range []struct {
		name    string
		parts   []string
		headers []string
		want    Turn
		kind    Kind
	}{
		{"nothing", nil, nil, Opening, KindMain},
		{"one token", []string{"max_tokens=1"}, nil, Side, KindHelper},
		{"a forced tool", []string{`tool_choice={"type":"tool","name":"Bash"}`}, nil, Side, KindHelper},
		{"a free choice", []string{`tool_choice={"type":"auto"}`}, nil, Opening, KindMain},
		{"server tools only", []string{`tools=[{"type":"web_search_1","name":"web_search"}]`}, nil, Side, KindHelper},
		{"a server tool among others", []string{`tools=[{"type":"web_search_1","name":"web_search"},{"name":"Bash"}]`}, nil, Opening, KindMain},
		{"an output format", []string{`output_config={"format":{}}`}, nil, Side, KindHelper},
		{"an output format of a main turn", []string{`output_config={"format":{}}`, kept}, nil, Opening, KindMain},
		{"no tools and no stream", []string{"tools=[]", "stream=", kept}, nil, Side, KindHelper},
		{"no tools", []string{"tools=[]"}, nil, Opening, KindMain},
		{"no stream", []string{"stream="}, nil, Opening, KindMain},
		{"a prefilled answer", []string{"tools=[]", `messages=[{"role":"user","content":"x"},{"role":"assistant","content":"{"}]`}, nil, Side, KindHelper},
		{"nothing but an identity", []string{"tools=[]", system("You are Claude Code, Anthropic's official CLI for Claude.")}, nil, Side, KindHelper},
		{"an identity and more", []string{"tools=[]", system("You are Claude Code, Anthropic's official CLI for Claude.\nYou fix.")}, nil, Opening, KindMain},
		{"a page", []string{"tools=[]", `messages=[{"role":"user","content":"\nWeb page content:\n..."}]`}, nil, Side, KindHelper},
		{"a probe's word", []string{"tools=[]", `messages=[{"role":"user","content":"Hi"}]`}, nil, Side, KindHelper},
		{"more than the probe's word", []string{"tools=[]", `messages=[{"role":"user","content":"Hi you"}]`}, nil, Opening, KindMain},
		{"a probe's word with tools", []string{`messages=[{"role":"user","content":"Hi"}]`}, nil, Opening, KindMain},
		{"a title's system", []string{system("You are naming a coding session")}, nil, Side, KindTitle},
		{"a title's system in a main turn", []string{system("You are naming a coding session"), kept}, nil, Opening, KindMain},
		{"a rename", []string{system("Generate a short kebab-case name")}, nil, Side, KindHelper},
		{"an agent's system", []string{system("You are an agent for Claude Code, ..."), kept}, nil, Side, KindSubagent},
		{"a hook", []string{system("You are verifying a stop condition"), kept}, nil, Side, KindHelper},
		{"a replay", []string{user("[SUGGESTION MODE: ..."), kept}, nil, Side, KindHelper},
		{"a replay's mark in a system message", []string{after("<system-reminder>This is a side question"), kept}, nil, Side, KindHelper},
		{"a compaction", []string{user("CRITICAL: Respond with TEXT ONLY."), kept}, nil, Side, KindCompaction},
		{"a mark within a text", []string{user("say [SUGGESTION MODE: ...")}, nil, Opening, KindMain},
		{"after a compaction", []string{user("This session is being continued from a previous conversation")}, nil, Continuation, KindMain},
		{"history", []string{`messages=[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]`}, nil, Continuation, KindMain},
		{"a subagent's billing", []string{`system=[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cc_is_subagent=true;"}]`}, nil, Side, KindSubagent},
		{"the words of a subagent's billing elsewhere", []string{`system=[{"type":"text","text":"cc_is_subagent=true"}]`}, nil, Opening, KindMain},
		{"class main", nil, []string{class + "main"}, Opening, KindMain},
		{"class main outranks shape and text", []string{"tools=[]", "stream=", user("[SUGGESTION MODE: ...")}, []string{class + "main"}, Opening, KindMain},
		{"class main of a subagent", nil, []string{class + "main", "x-claude-code-agent-id: a"}, Side, KindSubagent},
		{"class main after a compaction", nil, []string{class + "main", "x-claude-code-context-compacted: manual"}, Continuation, KindMain},
		{"class auxiliary", nil, []string{class + "auxiliary"}, Side, KindHelper},
		{"class compaction", nil, []string{class + "compaction"}, Side, KindCompaction},
		{"class of the future", nil, []string{class + "dream"}, Side, KindHelper},
		{"the coarser class says nothing", nil, []string{"x-claude-1p-request-class: auxiliary"}, Opening, KindMain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := post(t, ClaudeCode, "/v1/messages", claudeBody(tc.parts...), append(tc.headers, "x-claude-code-session-id: s")...)
			if r.Outline.Err != nil {
				t.Fatal(r.Outline.Err)
			}
			got, err := Recognise(r)
			if err != nil || got.Unknown != tc.want || got.Kind != tc.kind {
				t.Errorf("got %v %q, %v; want %v %q", got.Unknown, got.Kind, err, tc.want, tc.kind)
			}
		})
	}
}

// TestCodexMarks does the same for Codex's metadata.
func TestCodexMarks(t *testing.T) {
	const body = `{"stream":true,"input":[{"role":"user","content":"fix it"}]}`
	meta := func(json string) []string {
		return []string{"x-codex-turn-metadata: {" + json + "}", "thread-id: t", "session-id: t"}
	}
	for _, tc := range []struct {
		name    string
		body    string
		headers []string
		want    Turn
		kind    Kind
	}{
		{"no metadata", body, nil, Opening, KindMain},
		{"a turn of the user's", body, meta(`"request_kind":"turn","thread_source":"user","history_initialization":"new","window_number":0,"window_id":"t:0"`), Opening, KindMain},
		{"a cleared thread", body, meta(`"history_initialization":"cleared"`), Opening, KindMain},
		{"a resume", body, meta(`"history_initialization":"cold_resume"`), Continuation, KindMain},
		{"a start of the future", body, meta(`"history_initialization":"teleported"`), Continuation, KindMain},
		{"a later window", body, meta(`"window_number":1`), Continuation, KindMain},
		{"a later window by its id", body, append(meta(""), "x-codex-window-id: t:2"), Continuation, KindMain},
		{"a later window by the metadata's id", body, meta(`"window_id":"t:10"`), Continuation, KindMain},
		{"a title", body, meta(`"thread_source":"thread_title"`), Side, KindTitle},
		{"a subagent", body, meta(`"thread_source":"subagent"`), Side, KindSubagent},
		{"a side chat", body, meta(`"thread_source":"tui_side_chat"`), Side, KindHelper},
		{"a warm-up", body, meta(`"request_kind":"prewarm"`), Side, KindHelper},
		{"a compaction", body, meta(`"request_kind":"compaction"`), Side, KindCompaction},
		{"a remote compaction", `{"stream":true,"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}`, nil, Side, KindCompaction},
		{"a review", body, []string{"x-openai-subagent: review"}, Side, KindSubagent},
		{"a thread inside a session, unexplained", body, []string{"thread-id: t", "session-id: s"}, Side, KindHelper},
		{"a thread inside a session, the user's", body, []string{"thread-id: t", "session-id: s", `x-codex-turn-metadata: {"thread_source":"user"}`}, Opening, KindMain},
		{"a spawned thread, whatever its source", body, meta(`"thread_source":"user","parent_thread_id":"p"`), Side, KindHelper},
		{"no stream", `{"input":"fix it"}`, nil, Side, KindHelper},
		{"a string as input", `{"input":"fix it","stream":true}`, nil, Opening, KindMain},
		{"an answer named", `{"input":"go on","stream":true,"previous_response_id":"resp_1"}`, nil, Continuation, KindMain},
		{"nothing but an answer named", `{"stream":true,"previous_response_id":"resp_1"}`, nil, Continuation, KindMain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Recognise(post(t, Codex, "/v1/responses", tc.body, tc.headers...))
			if err != nil || got.Unknown != tc.want || got.Kind != tc.kind {
				t.Errorf("got %v %q, %v; want %v %q", got.Unknown, got.Kind, err, tc.want, tc.kind)
			}
		})
	}
	if got, _ := Recognise(post(t, Codex, "/v1/responses/compact", body)); got.Unknown != Side || got.Kind != KindCompaction {
		t.Errorf("a compaction on its own path: %v %q", got.Unknown, got.Kind)
	}
}

// TestClientsThatSayNothingOfThemselves holds what is done with clients that say nothing of
// themselves.
func TestClientsThatSayNothingOfThemselves(t *testing.T) {
	const dynamo = "x-dynamo-session-id: d"
	for _, tc := range []struct {
		name    string
		body    string
		headers []string
		want    Turn
	}{
		{"a chat", `{"messages":[{"role":"user","content":"hello"}],"stream":true}`, []string{dynamo}, Opening},
		{"a chat that goes on", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, nil, Continuation},
		{"neither tools nor stream: known by content, it places but itself", `{"messages":[{"role":"user","content":"hello"}]}`, nil, Opening},
		{"neither tools nor stream under a session", `{"messages":[{"role":"user","content":"hello"}]}`, []string{dynamo}, Side},
		{"a title", `{"messages":[{"role":"system","content":"You are a title generator"},{"role":"user","content":"hello"}],"stream":true}`, nil, Side},
		{"a class", `{"messages":[{"role":"user","content":"hello"}],"stream":true}`, []string{"x-claude-code-request-class: auxiliary"}, Side},
		{"an agent id", `{"messages":[{"role":"user","content":"hello"}],"stream":true}`, []string{"x-claude-code-agent-id: a"}, Side},
		{"no messages", `{"model":"glm-5"}`, nil, Side},
		{"no JSON", `{"messages":[`, nil, Side},
		{"an array", `[]`, nil, Side},
		{"nothing", ``, nil, Side},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Recognise(post(t, "aider", "/v1/chat/completions", tc.body, tc.headers...))
			if err != nil || got.Unknown != tc.want || got.Agent != "aider" {
				t.Errorf("got %v of %q, %v; want %v", got.Unknown, got.Agent, err, tc.want)
			}
		})
	}
}
