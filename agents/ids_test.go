package agents

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentop/agents/outline"
)

// post is an inference request with headers "Name: value" and a body.
func post(t testing.TB, agent Agent, path, body string, headers ...string) Request {
	t.Helper()
	r := Request{Agent: agent, Method: "POST", Path: path, Header: http.Header{}, Outline: new(outline.Outline)}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	r.Outline.Scan(FormatOf("POST", path), []byte(body), nil)
	return r
}

func TestSessionAndParent(t *testing.T) {
	const (
		claudeBody = `{"metadata":{"user_id":%q},"messages":[{"role":"user","content":"hello"}],"tools":[{"name":"Bash"}],"stream":true}`
		codexBody  = `{"prompt_cache_key":"cache","stream":true,"input":"hello","client_metadata":{"x-codex-turn-metadata":%q}}`
		chatBody   = `{"messages":[{"role":"user","content":"hello"}],"stream":true}`
	)
	jsonUser := fmt.Sprintf(claudeBody, `{"device_id":"d","account_uuid":"","session_id":"s-json"}`)
	oldUser := fmt.Sprintf(claudeBody, "user_0a1b_account__session_s-old")
	for _, tc := range []struct {
		name            string
		r               Request
		session, parent string
	}{
		{"Claude Code: the header outranks metadata", post(t, ClaudeCode, "/v1/messages", jsonUser, "x-claude-code-session-id: s-header"), "s-header", ""},
		{"Claude Code: metadata as JSON", post(t, ClaudeCode, "/v1/messages", jsonUser), "s-json", ""},
		{"Claude Code: old metadata", post(t, ClaudeCode, "/v1/messages", oldUser), "s-old", ""},
		{"Claude Code: metadata of somebody else", post(t, ClaudeCode, "/v1/messages", fmt.Sprintf(claudeBody, "alice_session_x")), "", ""},
		{"Claude Code: metadata that is no JSON", post(t, ClaudeCode, "/v1/messages", fmt.Sprintf(claudeBody, "{session_id")), "", ""},
		{"Claude Code: session of another type", post(t, ClaudeCode, "/v1/messages", fmt.Sprintf(claudeBody, `{"session_id":7}`)), "", ""},
		{"the general header comes first", post(t, ClaudeCode, "/v1/messages", jsonUser, "x-claude-code-session-id: a", "x-dynamo-session-id: d"), "d", ""},
		{"an empty header counts for nothing", post(t, ClaudeCode, "/v1/messages", jsonUser, "x-claude-code-session-id: ", "x-dynamo-session-id: "), "s-json", ""},
		{"Codex: the thread comes first", post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, ""), "thread-id: t", "session-id: t"), "t", ""},
		{"Codex: a thread in another's session", post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, ""), "thread-id: t", "session-id: s"), "t", "s"},
		{
			"Codex: the main thread outranks a subagent that spawned one",
			post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, ""), "thread-id: t", "session-id: s", "x-codex-parent-thread-id: p"), "t", "s",
		},
		{
			"Codex: a parent without a session",
			post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, ""), "thread-id: t", "x-codex-parent-thread-id: p"), "t", "p",
		},
		{
			"Codex: a fork, by the header",
			post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, ""), "thread-id: t", "session-id: t", `x-codex-turn-metadata: {"forked_from_thread_id":"f"}`), "t", "f",
		},
		{
			"Codex: a fork, by the body",
			post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, `{"forked_from_thread_id":"f"}`), "thread-id: t", "session-id: t"), "t", "f",
		},
		{"Codex: 0.80", post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, ""), "session_id: s", "conversation_id: s"), "s", ""},
		{"Codex: conversation alone", post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, ""), "conversation_id: c"), "c", ""},
		{"Codex: the cache key", post(t, Codex, "/v1/responses", fmt.Sprintf(codexBody, "")), "cache", ""},
		{"OpenCode", post(t, OpenCode, "/v1/chat/completions", chatBody, "x-session-id: ses_1"), "ses_1", ""},
		{"OpenCode: affinity", post(t, OpenCode, "/v1/chat/completions", chatBody, "x-session-affinity: ses_1"), "ses_1", ""},
		{"OpenCode: the OpenAI provider", post(t, OpenCode, "/v1/responses", `{"input":"hello","stream":true}`, "session_id: ses_1"), "ses_1", ""},
		{"OpenCode: the cache key", post(t, OpenCode, "/v1/responses", `{"input":"hello","prompt_cache_key":"ses_1","stream":true}`), "ses_1", ""},
		{"OpenCode: a cache key that is no session", post(t, OpenCode, "/v1/responses", `{"input":"hello","prompt_cache_key":"mine","stream":true}`), "", ""},
		{"OpenCode: a subagent", post(t, OpenCode, "/v1/chat/completions", chatBody, "x-session-id: ses_2", "x-parent-session-id: ses_1"), "ses_2", "ses_1"},
		{"OpenCode: nothing", post(t, OpenCode, "/v1/chat/completions", chatBody), "", ""},
		{"OpenCode under the name of another's User-Agent", post(t, OpenCode, "/v1/messages", jsonUser, "user-agent: claude-cli/2.1.2 (external, cli)", "x-session-id: ses_1"), "ses_1", ""},
		{"other: nothing", post(t, Other, "/v1/chat/completions", chatBody, "x-session-id: x"), "", ""},
		{"other: the general header", post(t, "aider", "/v1/chat/completions", chatBody, "x-dynamo-session-id: d"), "d", ""},
		{"a configured name for Claude Code", post(t, "work", "/v1/messages", jsonUser, "user-agent: claude-cli/2.1.2 (external, cli)"), "s-json", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Recognise(tc.r)
			if err != nil || got.Session != tc.session || got.Parent != tc.parent || got.Agent != tc.r.Agent {
				t.Errorf("got %+v, %v; want session %q parent %q agent %q", got, err, tc.session, tc.parent, tc.r.Agent)
			}
		})
	}
}

func TestSessionIDsThatCannotBeKeys(t *testing.T) {
	long := strings.Repeat("x", MaxSessionID)
	body := `{"input":"hello","stream":true,"prompt_cache_key":%q}`
	for _, tc := range []struct {
		name   string
		r      Request
		source string // "" if the id is good
	}{
		{"256 bytes", post(t, Codex, "/v1/responses", "{}", "thread-id: "+long), ""},
		{"257 bytes", post(t, Codex, "/v1/responses", "{}", "thread-id: "+long+"x"), "thread-id"},
		{"257 bytes in the general header", post(t, Other, "/v1/responses", "{}", "x-dynamo-session-id: "+long+"x"), "x-dynamo-session-id"},
		{"256 bytes in a body", post(t, Codex, "/v1/responses", fmt.Sprintf(body, long)), ""},
		{"257 bytes in a body", post(t, Codex, "/v1/responses", fmt.Sprintf(body, long+"x")), "prompt_cache_key"},
		{"a parent of 257 bytes", post(t, OpenCode, "/v1/responses", "{}", "x-session-id: s", "x-parent-session-id: "+long+"x"), "x-parent-session-id"},
		{"a tab", post(t, ClaudeCode, "/v1/messages", "{}", "x-claude-code-session-id: a\tb"), "x-claude-code-session-id"},
		{"a control character in a body", post(t, Codex, "/v1/responses", `{"prompt_cache_key":"a\u0001b"}`), "prompt_cache_key"},
		{"a C1 control character", post(t, Codex, "/v1/responses", "{}", "thread-id: a\u0085b"), "thread-id"},
		{"bytes that are not UTF-8", post(t, Codex, "/v1/responses", "{}", "thread-id: a\xffb"), "thread-id"},
		{"letters beyond ASCII", post(t, Codex, "/v1/responses", "{}", "thread-id: äß語"), ""},
		{"an id that is outranked does not matter", post(t, Codex, "/v1/responses", "{}", "x-dynamo-session-id: d", "thread-id: "+long+"x"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Recognise(tc.r)
			var refused *SessionIDError
			switch {
			case tc.source == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case tc.source != "" && (!errors.As(err, &refused) || refused.Source != tc.source):
				t.Errorf("got error %v, want a SessionIDError about %s", err, tc.source)
			case tc.source != "" && !strings.Contains(err.Error(), "256"):
				t.Errorf("error %q does not say the limit", err)
			}
		})
	}
}

func TestAgentOf(t *testing.T) {
	for _, tc := range []struct {
		name, method, path string
		headers            []string
		want               Agent
	}{
		{"Claude Code", "POST", "/v1/messages", []string{"user-agent: claude-cli/2.1.332 (external, cli)"}, ClaudeCode},
		{"Claude Code by its session", "POST", "/v1/messages", []string{"x-claude-code-session-id: s"}, ClaudeCode},
		{"Claude Code's probe", "HEAD", "/", []string{"user-agent: Bun/1.4.0"}, ClaudeCode},
		{"Claude Code's newer probe", "HEAD", "/api/hello", nil, ClaudeCode},
		{"a probe of somebody", "HEAD", "/", []string{"user-agent: curl/8"}, Other},
		{"Codex", "POST", "/v1/responses", []string{"user-agent: codex_exec/0.171.0 (Linux; x86_64)"}, Codex},
		{"Codex by its originator", "POST", "/v1/responses", []string{"originator: Codex Desktop"}, Codex},
		{"Codex by its metadata", "POST", "/v1/responses", []string{"x-codex-turn-metadata: {}"}, Codex},
		{"Qwen Code", "POST", "/v1/chat/completions", []string{"user-agent: QwenCode/0.24.4 (linux; x64)"}, QwenCode},
		{"OpenCode", "POST", "/v1/messages", []string{"user-agent: opencode/1.18.33 ai-sdk"}, OpenCode},
		{"OpenCode with a borrowed User-Agent", "POST", "/v1/messages", []string{"user-agent: claude-cli/2.1.2", "x-session-affinity: ses_1"}, OpenCode},
		{"nobody", "POST", "/v1/messages", nil, Other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := post(t, "", tc.path, "{}", tc.headers...)
			r.Method = tc.method
			if got, err := Recognise(r); err != nil || got.Agent != tc.want {
				t.Errorf("got %q, %v; want %q", got.Agent, err, tc.want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		agent    Agent
		ua, want string
	}{
		{ClaudeCode, "claude-cli/2.1.332 (external, cli)", "2.1.332"},
		{Codex, "codex_exec/0.171.0 (Linux; x86_64) term (codex_exec; 0.171.0)", "0.171.0"},
		{Codex, "codex-tui/0.172.0-alpha.3 (Mac)", "0.172.0-alpha.3"},
		{OpenCode, "opencode/1.18.33 ai-sdk/provider-utils/4.0.46", "1.18.33"},
		{QwenCode, "QwenCode/0.24.4 (linux; x64)", "0.24.4"},
		{ClaudeCode, "Bun/1.4.0", ""},   // its probe
		{ClaudeCode, "curl/7.88.1", ""}, // somebody's script
		{OpenCode, "claude-cli/2.1.2 (external, cli)", ""},
		{"script", "claude-cli/2.1.2 (external, cli)", ""},
		{"script", "curl/7.88.1", "7.88.1"},
		{"script", "curl", ""},
		{"script", "", ""},
		{"script", "x/", ""},
		{"script", "x/ 1", ""},
		{"script", "x/beta", ""},
		{"script", "x/1\x1b[31m", "1"},
		{"script", "x/" + strings.Repeat("1", 33), ""},
	} {
		if got := Version(c.agent, c.ua); got != c.want {
			t.Errorf("Version(%s, %q) = %q, want %q", c.agent, c.ua, got, c.want)
		}
	}
}
