package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"agentop/cmd/agentop/home"
)

// script is the play: conversations of three agents that go on while their
// agent's server is switched.
type script struct {
	base string // of the proxy
	dir  home.Home
	pace time.Duration
}

// life is one scripted conversation.
type life struct {
	agent string
	id    string
	topic string
	after int  // pauses before it begins
	late  bool // it begins only once the agents have been switched
	turns int
	send  func(ctx context.Context, s script, l life, said []exchange) (string, error)
}

// exchange is one turn that is over.
type exchange struct{ user, assistant string }

var lives = []life{
	{agent: "claude-code", id: "6f1c2a3e-demo-0001", topic: "Fix the parser for nested lists", turns: 30, send: sendMessages},
	{agent: "claude-code", id: "a90b77d1-demo-0002", topic: "Why is the nightly build slow?", after: 1, turns: 30, send: sendMessages},
	{agent: "codex", id: "0199c0de-demo-0003", topic: "Port the importer to the new schema", turns: 30, send: sendResponses},
	{agent: "opencode", id: "ses_demo_0004", topic: "Write tests for the retry queue", after: 1, turns: 30, send: sendChat},
	{agent: "claude-code", id: "c0ffee00-demo-0005", topic: "Review the migration plan", late: true, turns: 30, send: sendMessages},
	{agent: "codex", id: "0199feed-demo-0006", topic: "Add a dry-run flag", late: true, after: 1, turns: 30, send: sendResponses},
}

// runScript plays all lives, and switches two agents to beta on the way: what
// runs stays on alpha, what begins later goes to beta.
func runScript(ctx context.Context, s script) {
	for _, l := range lives {
		if !l.late {
			go s.live(ctx, l)
		}
	}
	if !s.pause(ctx, 3) {
		return
	}
	_, _ = client(s.dir).Use(ctx, "claude-code", "beta") // the list shows whether it took
	_, _ = client(s.dir).Use(ctx, "codex", "beta")
	for _, l := range lives {
		if l.late {
			go s.live(ctx, l)
		}
	}
}

// pause waits n paces; false when the demo has ended.
func (s script) pause(ctx context.Context, n int) bool {
	timer := time.NewTimer(time.Duration(n) * s.pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s script) live(ctx context.Context, l life) {
	if l.after > 0 && !s.pause(ctx, l.after) {
		return
	}
	var said []exchange
	for turn := range l.turns {
		text := l.topic
		if turn > 0 {
			text = fmt.Sprintf("Go on with step %d.", turn+1)
		}
		answer, err := l.send(ctx, s, l, append(said, exchange{user: text}))
		if err == nil {
			said = append(said, exchange{text, answer})
		}
		if !s.pause(ctx, 1) {
			return
		}
	}
}

func sendMessages(ctx context.Context, s script, l life, said []exchange) (string, error) {
	body := map[string]any{
		"model": "claude-opus-5-5", "max_tokens": 32000, "stream": true,
		"context_management": map[string]any{"edits": []any{}},
		"system":             []any{map[string]any{"type": "text", "text": "You are a demo of a coding agent."}},
		"tools":              tools("input_schema"),
		"messages":           dialogue(said),
	}
	answer, err := s.post(ctx, "/claude-code/v1/messages", body, map[string]string{
		"User-Agent": "claude-cli/2.1.332 (external, cli)", "X-Claude-Code-Session-Id": l.id,
		"X-Claude-Code-Request-Class": "main", "Anthropic-Version": "2023-06-01",
	})
	return textOf(answer, "delta", "text"), err
}

func sendResponses(ctx context.Context, s script, l life, said []exchange) (string, error) {
	body := map[string]any{
		"model": "gpt-6-codex", "stream": true, "instructions": "You are a demo of a coding agent.",
		"prompt_cache_key": l.id, "input": dialogue(said), "tools": tools("parameters"),
	}
	meta := fmt.Sprintf(`{"session_id":%q,"request_kind":"turn","thread_source":"user","history_initialization":"new","window_number":0}`, l.id)
	answer, err := s.post(ctx, "/codex/v1/responses", body, map[string]string{
		"User-Agent": "codex_cli_rs/0.171.0", "Originator": "codex_cli_rs", "Session-Id": l.id, "Thread-Id": l.id,
		"X-Codex-Turn-Metadata": meta,
	})
	return textOf(answer, "", "delta"), err
}

func sendChat(ctx context.Context, s script, l life, said []exchange) (string, error) {
	messages := append([]any{map[string]any{"role": "system", "content": "You are a demo of a coding agent."}}, dialogue(said)...)
	body := map[string]any{
		"model": "beta-large", "stream": true, "stream_options": map[string]any{"include_usage": true},
		"messages": messages, "tools": tools("parameters"),
	}
	answer, err := s.post(ctx, "/opencode/lab/v1/chat/completions", body, map[string]string{
		"User-Agent": "opencode/1.18.33", "X-Session-Id": l.id, "X-Session-Affinity": l.id,
	})
	return textOf(answer, "choices", "content"), err
}

func dialogue(said []exchange) []any {
	var list []any
	for _, e := range said {
		list = append(list, map[string]any{"role": "user", "content": e.user})
		if e.assistant != "" {
			list = append(list, map[string]any{"role": "assistant", "content": e.assistant})
		}
	}
	return list
}

func tools(schema string) []any {
	var list []any
	for _, name := range []string{"Read", "Edit", "Bash", "Search"} {
		list = append(list, map[string]any{"name": name, "description": "a demo tool", schema: map[string]any{"type": "object"}})
	}
	return list
}

func (s script) post(ctx context.Context, path string, body any, header map[string]string) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// textOf puts a streamed answer's text together: the strings under field, of
// events that hold key (or of text deltas, for an empty key).
func textOf(answer []byte, key, field string) string {
	var text strings.Builder
	for _, line := range bytes.Split(answer, []byte("\n")) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var event map[string]any
		if json.Unmarshal(data, &event) != nil {
			continue
		}
		switch part := event[key].(type) {
		case map[string]any: // Messages: {"delta":{"text":...}}
			add(&text, part[field])
		case []any: // Chat Completions: {"choices":[{"delta":{"content":...}}]}
			for _, c := range part {
				choice, _ := c.(map[string]any)
				delta, _ := choice["delta"].(map[string]any)
				add(&text, delta[field])
			}
		default: // Responses: {"type":"response.output_text.delta","delta":...}
			if event["type"] == "response.output_text.delta" {
				add(&text, event[field])
			}
		}
	}
	return text.String()
}

func add(text *strings.Builder, value any) {
	if s, ok := value.(string); ok {
		text.WriteString(s)
	}
}
