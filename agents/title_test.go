package agents

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"agentop/agents/outline"
)

// bodyOf writes a Messages body with one system text and one user message.
func bodyOf(system string, user ...string) []byte {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var blocks []block
	for _, text := range user {
		blocks = append(blocks, block{"text", text})
	}
	body, err := json.Marshal(map[string]any{
		"system":   []block{{"text", system}},
		"messages": []any{map[string]any{"role": "user", "content": blocks}},
	})
	if err != nil {
		panic(err)
	}
	return body
}

func TestTitle(t *testing.T) {
	long := strings.Repeat("a", titleBytes-1)
	for _, tc := range []struct {
		name string
		user []string
		want string
	}{
		{"a prompt", []string{"fix the parser"}, "fix the parser"},
		{"lines and spaces", []string{"  fix\n\n\tthe   parser \r\n"}, "fix the parser"},
		{"reminders around it", []string{"<system-reminder>\nbe kind\n</system-reminder>", "fix it", "more"}, "fix it"},
		{"a reminder inside it", []string{"fix <system-reminder>x</system-reminder>it"}, "fix it"},
		{"a reminder that does not end", []string{"fix it<system-reminder>and on"}, "fix it"},
		{"nothing but reminders", []string{"<system-reminder>x</system-reminder>"}, ""},
		{"a command", []string{"<command-message>init</command-message>\n<command-name>/init</command-name>\n<command-args>fast</command-args>"}, "/init fast"},
		{"a shell command", []string{"<bash-input>ls -l</bash-input>", "<bash-stdout>x</bash-stdout>"}, "ls -l"},
		{"control characters", []string{"a\x1b[31mred\x07\u0085\u200b\u202e b"}, "a[31mred b"},
		{"cut between characters", []string{long + "語x"}, long},
		{"just short enough", []string{long + "b"}, long + "b"},
		{"no half word separator", []string{long + " b"}, long},
		{"wide characters", []string{"日本語の題"}, "日本語の題"},
		{"a lone surrogate", []string{`x`}, "x"},
		{"nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := bodyOf("You are Claude Code", tc.user...)
			var o outline.Outline
			o.Scan(outline.Messages, body, nil)
			if got := Title(&o, body, ClaudeCode); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTitleAndDirOfEachAgent(t *testing.T) {
	codexBody := []byte(`{"input":[{"role":"user","content":[{"type":"input_text","text":"# AGENTS.md instructions for /home/dev/app\n..."}]},` +
		`{"role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>\/home\/dev\/app</cwd>\n  <shell>bash</shell>\n</environment_context>"}]},` +
		`{"role":"user","content":[{"type":"input_text","text":"say hi"}]}]}`)
	chatBody := []byte(`{"messages":[{"role":"system","content":"You are opencode\n<env>\n  Working directory: /home/dev/app\n  Platform: linux\n</env>"},{"role":"user","content":"say hi"}]}`)
	qwenBody := []byte(`{"messages":[{"role":"system","content":"You are Qwen Code, a CLI agent"},{"role":"user","content":[` +
		`{"type":"text","text":"<system-reminder>\nI'm currently working in the directory: /home/dev/app\nHere is more\n</system-reminder>"},` +
		`{"type":"text","text":"<system-reminder>\nThe current date is: today\n</system-reminder>"},{"type":"text","text":"say hi"}]}]}`)
	for _, tc := range []struct {
		name   string
		agent  Agent
		format outline.Format
		body   []byte
		dir    string
	}{
		{"Claude Code", ClaudeCode, outline.Messages, bodyOf("# Environment\n - Primary working directory: /home/dev/app\n - Platform: linux", "say hi"), "/home/dev/app"},
		{"older Claude Code", ClaudeCode, outline.Messages, bodyOf("<env>\nWorking directory: /home/dev/äpp \"x\"\nPlatform: linux", "say hi"), `/home/dev/äpp "x"`},
		{"bare Claude Code", ClaudeCode, outline.Messages, bodyOf("CWD: /home/dev/app\nDate: today", "say hi"), "/home/dev/app"},
		{"Claude Code on Windows", ClaudeCode, outline.Messages, bodyOf("Working directory: C:\\Users\\dev\nPlatform: win32", "say hi"), `C:\Users\dev`},
		{"Claude Code speaks of one", ClaudeCode, outline.Messages, bodyOf("Working directory: none\nWorking directory: /a", "say hi"), "/a"},
		{"Claude Code without one", ClaudeCode, outline.Messages, bodyOf("You are Claude Code", "say hi"), ""},
		{"Codex", Codex, outline.Responses, codexBody, "/home/dev/app"},
		{"OpenCode", OpenCode, outline.ChatCompletions, chatBody, "/home/dev/app"},
		{"Qwen Code", QwenCode, outline.ChatCompletions, qwenBody, "/home/dev/app"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o outline.Outline
			o.Scan(tc.format, tc.body, nil)
			if got := Title(&o, tc.body, tc.agent); got != "say hi" {
				t.Errorf("title %q, want %q", got, "say hi")
			}
			if got := Dir(&o, tc.body, tc.agent); got != tc.dir {
				t.Errorf("dir %q, want %q", got, tc.dir)
			}
		})
	}
}

// TestTitleAndDirOfFixtures reads the openings whose prompts and directories
// are known: captures that keep both.
func TestTitleAndDirOfFixtures(t *testing.T) {
	prompts := []string{"hello there", "use a subagent please", "no tools at all", "give json"}
	seen := 0
	for name, data := range fixtureFiles(t) {
		if !strings.HasSuffix(name, "-scenes.json") && !strings.HasSuffix(name, "-scenes-hints.json") {
			continue
		}
		for _, row := range decodeFixtures(t, name, data) {
			if row.Label != "opening" {
				continue
			}
			seen++
			r := row.request(t, row.pathAgent(), nil)
			title, dir := Title(r.Outline, row.Request.Body, r.Agent), Dir(r.Outline, row.Request.Body, r.Agent)
			if !slices.Contains(prompts, title) {
				t.Errorf("%s row %d: title %q, want one of %q", name, row.N, title, prompts)
			}
			ownSystem := is(r.Outline.System, "You help.") // the user's system prompt took the directory's place
			if dir != "/home/dev/app" && !ownSystem {
				t.Errorf("%s row %d: dir %q", name, row.N, dir)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d openings seen", seen)
	}
}

// wellFormed tells whether a line may be printed as it is.
func wellFormed(line string) bool {
	return len(line) <= titleBytes && utf8.ValidString(line) && !strings.ContainsFunc(line, unicode.IsControl)
}

func TestTitleOf(t *testing.T) {
	for answer, want := range map[string]string{
		"Fix the parser\n":                     "Fix the parser",
		` {"title": "Fix\nthe \u001b parser"}`: "Fix the parser",
		`{"title": 7}`:                         "",
		`{"title"`:                             "",
		`{}`:                                   "",
		"":                                     "",
	} {
		if got := TitleOf(answer); got != want {
			t.Errorf("TitleOf(%q) = %q, want %q", answer, got, want)
		}
	}
}
