package agents

import (
	"errors"
	"strings"
	"testing"

	"agentop/agents/outline"
)

func configuredForTest(name string) bool {
	return name == "aider" || name == "my agent" || name == "models"
}

func TestSplitPath(t *testing.T) {
	for _, tc := range []struct {
		name, path string
		want       Split
	}{
		{"Claude Code", "/claude-code/v1/messages", Split{ClaudeCode, "", "/v1/messages"}},
		{"its probe", "/claude-code", Split{ClaudeCode, "", "/"}},
		{"its probe with a slash", "/claude-code/", Split{ClaudeCode, "", "/"}},
		{"its newer probe", "/claude-code/api/hello", Split{ClaudeCode, "", "/api/hello"}},
		{"a token count", "/claude-code/v1/messages/count_tokens", Split{ClaudeCode, "", "/v1/messages/count_tokens"}},
		{"Codex", "/codex/v1/responses", Split{Codex, "", "/v1/responses"}},
		{"Qwen Code", "/qwen-code/v1/chat/completions", Split{QwenCode, "", "/v1/chat/completions"}},
		{"OpenCode with a provider", "/opencode/anthropic/v1/messages", Split{OpenCode, "anthropic", "/v1/messages"}},
		{"OpenCode without a version", "/opencode/openai/responses", Split{OpenCode, "openai", "/responses"}},
		{"OpenCode, Claude's format without a version", "/opencode/anthropic/messages", Split{OpenCode, "anthropic", "/messages"}},
		{"OpenCode without a provider", "/opencode/v1/chat/completions", Split{OpenCode, "", "/v1/chat/completions"}},
		{"OpenCode with nothing else", "/opencode/lab", Split{OpenCode, "lab", "/"}},
		{"OpenCode alone", "/opencode", Split{OpenCode, "", "/"}},
		{"a provider with an escape", "/opencode/my%20lab/v1/models", Split{OpenCode, "my lab", "/v1/models"}},
		{"other", "/other/v1/chat/completions", Split{Other, "", "/v1/chat/completions"}},
		{"a configured agent", "/aider/v1/chat/completions", Split{"aider", "", "/v1/chat/completions"}},
		{"a configured agent with an escape", "/my%20agent/v1/models", Split{"my agent", "", "/v1/models"}},
		{"a configured name comes before an API path", "/models/v1/messages", Split{"models", "", "/v1/messages"}},
		{"an escaped name", "/claude%2Dcode/v1/messages", Split{ClaudeCode, "", "/v1/messages"}},
		{"escapes of the rest are kept", "/codex/v1/files/a%2Fb%20c%C3%A4/x%2e", Split{Codex, "", "/v1/files/a%2Fb%20c%C3%A4/x%2e"}},
		{"slashes of the rest are kept", "/codex//v1//responses/", Split{Codex, "", "//v1//responses/"}},
		{"a base URL that ends in a slash", "//claude-code//v1/messages", Split{ClaudeCode, "", "//v1/messages"}},
		{"bare: root", "/", Split{"", "", "/"}},
		{"bare: empty", "", Split{"", "", "/"}},
		{"bare: version", "/v1/messages", Split{"", "", "/v1/messages"}},
		{"bare: beta version", "/v1beta/models", Split{"", "", "/v1beta/models"}},
		{"bare: doubled slash", "//v1/messages", Split{"", "", "//v1/messages"}},
		{"bare: messages", "/messages", Split{"", "", "/messages"}},
		{"bare: responses", "/responses", Split{"", "", "/responses"}},
		{"bare: chat", "/chat/completions", Split{"", "", "/chat/completions"}},
		{"bare: models", "/api/hello", Split{"", "", "/api/hello"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := SplitPath(tc.path, configuredForTest)
			if err != nil || got != tc.want {
				t.Errorf("SplitPath(%q) = %+v, %v; want %+v", tc.path, got, err, tc.want)
			}
		})
	}
}

func TestSplitPathRefusesWhatNamesNothing(t *testing.T) {
	for path, segment := range map[string]string{
		"/claude/v1/messages":        "claude",
		"/Codex/v1/responses":        "Codex",
		"/favicon.ico":               "favicon.ico",
		"/v/x":                       "v",
		"/vx1/messages":              "vx1",
		"/-/healthy":                 "-",
		"/my%2Fagent/v1":             "my/agent",
		"/%zz/v1":                    "%zz",
		"*":                          "*",
		"v1/messages":                "v1",
		"/claude-code%00/v1/message": "claude-code\x00",
	} {
		got, err := SplitPath(path, configuredForTest)
		var unknown *UnknownAgentError
		if !errors.As(err, &unknown) || unknown.Segment != segment || got != (Split{}) {
			t.Errorf("SplitPath(%q) = %+v, %v; want an UnknownAgentError for %q", path, got, err, segment)
		}
	}
	if _, err := SplitPath("/aider/v1/models", nil); err == nil {
		t.Error("without a configuration aider is an agent")
	}
}

func TestCutToken(t *testing.T) {
	for _, tc := range []struct {
		path, token, rest string
		ok                bool
	}{
		{"/s3cret/claude-code/v1/messages", "s3cret", "/claude-code/v1/messages", true},
		{"/s3cret", "s3cret", "/", true},
		{"//s3cret/v1", "s3cret", "/v1", true},
		{"/s3cre/claude-code", "s3cret", "/s3cre/claude-code", false},
		{"/S3cret/claude-code", "s3cret", "/S3cret/claude-code", false},
		{"/claude-code/s3cret", "s3cret", "/claude-code/s3cret", false},
		{"/v1", "", "/v1", false},
		{"/", "", "/", false},
	} {
		if rest, ok := CutToken(tc.path, tc.token); rest != tc.rest || ok != tc.ok {
			t.Errorf("CutToken(%q, %q) = %q, %v; want %q, %v", tc.path, tc.token, rest, ok, tc.rest, tc.ok)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		format, body outline.Format
		kind         Kind // of what is not inference
	}{
		{"POST", "/v1/messages", outline.Messages, outline.Messages, ""},
		{"POST", "/messages", outline.Messages, outline.Messages, ""},
		{"POST", "/v1/messages/", outline.Messages, outline.Messages, ""},
		{"POST", "//v1/messages", outline.Messages, outline.Messages, ""},
		{"POST", "/v1/responses", outline.Responses, outline.Responses, ""},
		{"POST", "/responses", outline.Responses, outline.Responses, ""},
		{"POST", "/responses/compact", outline.Responses, outline.Responses, ""},
		{"POST", "/api/v1/chat/completions", outline.ChatCompletions, outline.ChatCompletions, ""},
		{"POST", "/v1/messages/count_tokens", outline.NoFormat, outline.Messages, KindCount},
		{"POST", "/v1/responses/input_tokens", outline.NoFormat, outline.Responses, KindCount},
		{"POST", "/v1/messages/batches", outline.NoFormat, outline.NoFormat, KindOther},
		{"POST", "/v1/threads/t1/messages", outline.NoFormat, outline.NoFormat, KindOther},
		{"POST", "/v1/completions", outline.NoFormat, outline.NoFormat, KindOther},
		{"POST", "/v1/xmessages", outline.NoFormat, outline.NoFormat, KindOther},
		{"GET", "/v1/messages", outline.NoFormat, outline.NoFormat, KindOther},
		{"GET", "/v1/responses", outline.NoFormat, outline.NoFormat, KindOther},
		{"GET", "/v1/models", outline.NoFormat, outline.NoFormat, KindModels},
		{"GET", "/models/glm-5", outline.NoFormat, outline.NoFormat, KindModels},
		{"POST", "/v1/models", outline.NoFormat, outline.NoFormat, KindOther},
		{"HEAD", "/", outline.NoFormat, outline.NoFormat, KindOther},
	} {
		format, body := FormatOf(tc.method, tc.path), BodyFormatOf(tc.method, tc.path)
		if format != tc.format || body != tc.body {
			t.Errorf("%s %s: format %v body %v, want %v %v", tc.method, tc.path, format, body, tc.format, tc.body)
		}
		if tc.format != outline.NoFormat {
			continue
		}
		got, err := Recognise(Request{Method: tc.method, Path: tc.path, Outline: new(outline.Outline)})
		if err != nil || got.Kind != tc.kind || got.Unknown != NotInference {
			t.Errorf("%s %s: %v %q, %v; want none %q", tc.method, tc.path, got.Unknown, got.Kind, err, tc.kind)
		}
	}
}

// FuzzSplitPath holds that nothing of a path but whole first segments is lost.
func FuzzSplitPath(f *testing.F) {
	for _, path := range []string{
		"/claude-code/v1/messages", "/opencode/my%20lab/v1//x%2F", "/opencode/v1/messages", "//codex//v1/",
		"/v1/messages", "/messages", "", "/", "//", "*", "/%zz/%", "/nobody/v1", "/opencode/%2e%2e/v1",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		split, err := SplitPath(path, configuredForTest)
		if err != nil {
			if split != (Split{}) {
				t.Fatalf("SplitPath(%q) = %+v with error %v", path, split, err)
			}
			return
		}
		if !strings.HasPrefix(split.Path, "/") {
			t.Fatalf("SplitPath(%q): path %q has no slash in front", path, split.Path)
		}
		if split.Path != "/" && !strings.HasSuffix(path, split.Path) {
			t.Fatalf("SplitPath(%q): path %q is not the end of it", path, split.Path)
		}
		if split.Agent == "" && path != "" && split.Path != path {
			t.Fatalf("SplitPath(%q): bare path became %q", path, split.Path)
		}
		removed := strings.TrimSuffix(path, split.Path)
		if segments := strings.Count(strings.Trim(removed, "/"), "/"); segments > 1 && !strings.Contains(removed, "//") {
			t.Fatalf("SplitPath(%q) removed %q", path, removed)
		}
	})
}
