package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A player drives one real agent without a terminal.
type player struct {
	agent string
	// open begins a conversation with a prompt and returns a handle for resume.
	open func(prompt string) string
	// resume continues a conversation.
	resume func(handle, prompt string)
	// fork continues a conversation under a new id.
	fork func(handle, prompt string)
}

func TestClaudeCodeStaysOnItsServer(t *testing.T) {
	t.Parallel()
	stays(t, func(t *testing.T, s *stage) player { return claudePlayer(t, s) })
}

func TestCodexStaysOnItsServer(t *testing.T) {
	t.Parallel()
	stays(t, codexPlayer)
}

func TestOpenCodeStaysOnItsServer(t *testing.T) {
	t.Parallel()
	stays(t, openCodePlayer)
}

// TestQwenCodeStaysOnItsServer lives the life by content alone; in Messages,
// which states no session either, and in Responses, which does, in the long
// run only.
func TestQwenCodeStaysOnItsServer(t *testing.T) {
	t.Parallel()
	formats := []string{"openai"}
	if os.Getenv("AGENTOP_TEST_FULL") != "" {
		formats = append(formats, "openai-responses", "anthropic")
	}
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			stays(t, func(t *testing.T, s *stage) player { return qwenCodePlayer(t, s, format) })
		})
	}
}

// stays plays the whole life of two conversations: opened on a, switch,
// continued, another opened on b, kill -9, both continued, forked.
func stays(t *testing.T, newPlayer func(*testing.T, *stage) player) {
	s := newStage(t)
	p := newPlayer(t, s)

	s.mark()
	first := p.open("hello one")
	s.expectAll("open on a", "a")

	s.use(p.agent, "b")
	s.mark()
	p.resume(first, "go on with one")
	s.expectAll("continue after the switch", "a")
	s.expectHistory("continue after the switch", "a", 1)

	s.mark()
	second := p.open("hello two")
	s.expectAll("open another on b", "b")

	s.restart()
	s.mark()
	p.resume(first, "one after the crash")
	s.expectAll("continue the first after kill -9", "a")
	s.expectHistory("continue the first after kill -9", "a", 2)
	s.mark()
	p.resume(second, "two after the crash")
	s.expectAll("continue the second after kill -9", "b")
	s.expectHistory("continue the second after kill -9", "b", 1)

	s.mark()
	p.fork(first, "the fork goes its own way")
	s.expectAll("fork of the first", "a")
	s.expectHistory("fork of the first", "a", 2)

	// With the pins lost, the log still knows.
	s.losePins()
	s.mark()
	p.resume(first, "one without the pins")
	s.expectAll("continue with pins.json deleted", "a")
}

func claudePlayer(t *testing.T, s *stage, more ...string) player {
	program, home, dir := claude.install(t), agentDir(t), agentDir(t)
	env := append(claudeEnv(s, home), more...)
	ask := func(args ...string) string {
		t.Helper()
		out := s.client(dir, env, program, append(args, "--output-format", "json")...)
		var result struct {
			SessionID string `json:"session_id"`
			IsError   bool   `json:"is_error"`
		}
		line := out[strings.Index(out, "{"):]
		if err := json.NewDecoder(strings.NewReader(line)).Decode(&result); err != nil || result.IsError {
			t.Fatalf("claude %v answered %s (%v)", args, out, err)
		}
		return result.SessionID
	}
	return player{
		agent:  "claude-code",
		open:   func(prompt string) string { return ask("-p", prompt) },
		resume: func(handle, prompt string) { ask("-p", prompt, "--resume", handle) },
		fork:   func(handle, prompt string) { ask("-p", prompt, "--resume", handle, "--fork-session") },
	}
}

func claudeEnv(s *stage, home string) []string {
	return []string{
		"HOME=" + home, "ANTHROPIC_BASE_URL=" + s.base("/claude-code"), "ANTHROPIC_API_KEY=sk-ant-fake-key",
		"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1",
	}
}

func codexPlayer(t *testing.T, s *stage) player {
	program, home, dir := codex.install(t), agentDir(t), agentDir(t)
	config := "openai_base_url = \"" + s.base("/codex/v1") + "\"\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "CODEX_HOME=" + home, "CODEX_API_KEY=sk-fake-key"}
	ask := func(args ...string) string {
		t.Helper()
		out := s.client(dir, env, program, append([]string{"exec", "--skip-git-repo-check", "--json"}, args...)...)
		for _, line := range strings.Split(out, "\n") {
			var event struct {
				Type     string `json:"type"`
				ThreadID string `json:"thread_id"`
			}
			if json.Unmarshal([]byte(line), &event) == nil && event.ThreadID != "" {
				return event.ThreadID
			}
		}
		t.Fatalf("codex %v told no thread:\n%s", args, out)
		return ""
	}
	return player{
		agent:  "codex",
		open:   func(prompt string) string { return ask(prompt) },
		resume: func(handle, prompt string) { ask("resume", handle, prompt) },
		fork:   func(handle, prompt string) { ask("fork", handle, prompt) },
	}
}

func openCodePlayer(t *testing.T, s *stage) player {
	program, home, dir := opencode.install(t), agentDir(t), agentDir(t)
	config := `{"$schema":"https://opencode.ai/config.json","model":"lab/test-large","provider":{"lab":{"npm":"@ai-sdk/openai-compatible","name":"Lab",` +
		`"options":{"baseURL":"` + s.base("/opencode/lab/v1") + `","apiKey":"sk-fake-key"},"models":{"test-large":{"name":"Test"}}}}}`
	path := filepath.Join(home, ".config", "opencode")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "opencode.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
	ask := func(args ...string) string {
		t.Helper()
		out := s.client(dir, env, program, append([]string{"run", "--format", "json"}, args...)...)
		for _, line := range strings.Split(out, "\n") {
			var event struct {
				SessionID string `json:"sessionID"`
			}
			if json.Unmarshal([]byte(line), &event) == nil && event.SessionID != "" {
				return event.SessionID
			}
		}
		t.Fatalf("opencode %v told no session:\n%s", args, out)
		return ""
	}
	return player{
		agent:  "opencode",
		open:   func(prompt string) string { return ask(prompt) },
		resume: func(handle, prompt string) { ask("--session", handle, prompt) },
		fork:   func(handle, prompt string) { ask("--session", handle, "--fork", prompt) },
	}
}

func qwenCodePlayer(t *testing.T, s *stage, format string) player {
	program, home, dir := qwencode.install(t), agentDir(t), agentDir(t)
	settings := `{"general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}}`
	if err := os.MkdirAll(filepath.Join(home, ".qwen"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".qwen", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{
		"HOME=" + home,
		"OPENAI_API_KEY=sk-fake-key", "OPENAI_MODEL=test-large", "OPENAI_BASE_URL=" + s.base("/qwen-code/v1"),
		"ANTHROPIC_API_KEY=sk-ant-fake-key", "ANTHROPIC_MODEL=test-large", "ANTHROPIC_BASE_URL=" + s.base("/qwen-code"),
	}
	stated := regexp.MustCompile(`"session_id":"([^"]+)"`)
	ask := func(args ...string) string {
		t.Helper()
		out := s.client(dir, env, program, append(args, "--auth-type", format, "--output-format", "json")...)
		found := stated.FindStringSubmatch(out)
		if found == nil || !strings.Contains(out, `"is_error":false`) {
			t.Fatalf("qwen %v answered %s", args, out)
		}
		return found[1]
	}
	return player{
		agent:  "qwen-code",
		open:   func(prompt string) string { return ask("-p", prompt) },
		resume: func(handle, prompt string) { ask("-p", prompt, "--resume", handle) },
		fork:   func(handle, prompt string) { ask("-p", prompt, "--resume", handle, "--fork-session") },
	}
}
