package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These tests let `agent enable` point the real agents at agentop, in homes
// with settings as people have them, and hold that each then works through it
// and has its settings back, byte for byte, after `agent disable`.

// enabled is one agent in a scratch home.
type enabled struct {
	agent string
	home  string
	env   []string
	file  string // its settings, below home
	text  string // what they hold; "" = the file is not there
	ask   func(t *testing.T, s *stage, e *enabled, prompt string)
}

// sh runs one agentop command as the user of the scratch home.
func (e *enabled) sh(t *testing.T, s *stage, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = e.home
	cmd.Env = append(cleanEnv(), append([]string{"AGENTOP_HOME=" + s.home, "HOME=" + e.home}, e.env...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("agentop %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (e *enabled) path() string { return filepath.Join(e.home, e.file) }

func (e *enabled) write(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(e.path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if e.text == "" {
		return
	}
	if err := os.WriteFile(e.path(), []byte(e.text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEnabledClaudeCodeWorksAndIsUndone(t *testing.T) {
	t.Parallel()
	program := claude.install(t)
	ask := func(t *testing.T, s *stage, e *enabled, prompt string) {
		t.Helper()
		out := s.client(e.home, append([]string{"HOME=" + e.home}, e.env...), program, "-p", prompt, "--output-format", "json")
		var result struct {
			IsError bool `json:"is_error"`
		}
		if err := json.NewDecoder(strings.NewReader(out[max(0, strings.Index(out, "{")):])).Decode(&result); err != nil || result.IsError {
			t.Fatalf("claude answered %s (%v)", out, err)
		}
	}
	env := []string{"ANTHROPIC_API_KEY=sk-ant-fake-key", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1"}
	for name, text := range map[string]string{
		"no settings": "",
		"other env":   "{\n    \"env\": {\n        \"BASH_DEFAULT_TIMEOUT_MS\": \"60000\"\n    },\n    \"includeCoAuthoredBy\": false\n}",
		"tabs, crlf":  "{\r\n\t\"cleanupPeriodDays\": 20,\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\"Bash(go test:*)\"]\r\n\t}\r\n}\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			e := &enabled{agent: "claude-code", home: agentDir(t), env: env, file: ".claude/settings.json", text: text, ask: ask}
			e.holds(t)
		})
	}
	t.Run("dotfiles and a proxy variable", func(t *testing.T) {
		// The variable names a proxy that nobody serves: without no_proxy in its
		// settings Claude Code would ask that one.
		e := &enabled{agent: "claude-code", home: agentDir(t), env: append([]string{"HTTPS_PROXY=http://127.0.0.1:1"}, env...), file: "dot/claude.json", text: "{\n  \"cleanupPeriodDays\": 20\n}\n", ask: ask}
		if err := os.MkdirAll(filepath.Join(e.home, ".claude"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../dot/claude.json", filepath.Join(e.home, ".claude", "settings.json")); err != nil {
			t.Fatal(err)
		}
		e.holds(t)
		if to, err := os.Readlink(filepath.Join(e.home, ".claude", "settings.json")); err != nil || to != "../dot/claude.json" {
			t.Errorf("the link leads to %q (%v)", to, err)
		}
	})
}

func TestEnabledCodexWorksAndIsUndone(t *testing.T) {
	t.Parallel()
	program := codex.install(t)
	ask := func(t *testing.T, s *stage, e *enabled, prompt string) {
		t.Helper()
		s.client(e.home, append([]string{"HOME=" + e.home}, e.env...), program, "exec", "--skip-git-repo-check", "--json", prompt)
	}
	for name, text := range map[string]string{
		"no settings": "",
		"comments":    "# my settings\nmodel_reasoning_effort = 'low'   # tail\nnotify = [\n  \"true\", # one\n]\n\n# the screen\n[tui]\nnotifications = false\n\n[shell_environment_policy]\nset = { A = \"b\", C = '''d''' }\n",
	} {
		t.Run(name, func(t *testing.T) {
			e := &enabled{agent: "codex", home: agentDir(t), env: []string{"CODEX_API_KEY=sk-fake-key"}, file: ".codex/config.toml", text: text, ask: ask}
			e.holds(t)
		})
	}
	t.Run("a provider of his own", func(t *testing.T) {
		e := &enabled{agent: "codex", home: agentDir(t), env: []string{"CORP_KEY=sk-fake-key"}, file: ".codex/config.toml", ask: ask,
			text: "model_provider = \"corp\"\n\n[model_providers.corp]\nname = \"Corp\"\nbase_url = \"http://gw.example:8000/v1\" # keep\nenv_key = \"CORP_KEY\"\n"}
		e.holds(t)
	})
}

func TestEnabledOpenCodeWorksAndIsUndone(t *testing.T) {
	t.Parallel()
	program := opencode.install(t)
	ask := func(t *testing.T, s *stage, e *enabled, prompt string) {
		t.Helper()
		s.client(e.home, append([]string{"HOME=" + e.home}, e.env...), program, "run", "--format", "json", prompt)
	}
	env := []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "LAB_KEY=sk-fake-key"}
	lab := "// mine\n{\n\t\"$schema\": \"https://opencode.ai/config.json\",\n\t\"model\": \"lab/test-large\",\n\t\"provider\": {\n\t\t\"lab\": { // ours\n\t\t\t\"npm\": \"@ai-sdk/openai-compatible\",\n\t\t\t\"name\": \"Lab\",\n\t\t\t\"options\": {\n" +
		"\t\t\t\t\"baseURL\": \"http://gpu.example:8000/v1\", /* the box */\n\t\t\t\t\"apiKey\": \"{env:LAB_KEY}\",\n\t\t\t},\n\t\t\t\"models\": {\"test-large\": {\"name\": \"Test\"}},\n\t\t},\n\t},\n}\n"
	for name, e := range map[string]*enabled{
		"jsonc":     {file: ".config/opencode/opencode.jsonc", text: lab, env: env},
		"anthropic": {file: ".config/opencode/opencode.json", text: "{\"$schema\":\"https://opencode.ai/config.json\",\"model\":\"anthropic/claude-sonnet-4-5\"}", env: append([]string{"ANTHROPIC_API_KEY=sk-ant-fake-key"}, env...)},
		"openai":    {file: ".config/opencode/opencode.json", text: "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"model\": \"openai/gpt-5\",\n  \"provider\": { \"openai\": {} }\n}\n", env: append([]string{"OPENAI_API_KEY=sk-fake-key"}, env...)},
	} {
		t.Run(name, func(t *testing.T) {
			e.agent, e.home, e.ask = "opencode", agentDir(t), ask
			e.holds(t)
		})
	}
}

// holds is the life of an agent at agentop: enabled, used, disabled.
func (e *enabled) holds(t *testing.T) {
	t.Helper()
	s := newStage(t)
	e.write(t)
	if diff := e.sh(t, s, "agent", "enable", e.agent, "--dry-run"); !strings.Contains(diff, s.address) {
		t.Errorf("the dry run shows %s", diff)
	}
	e.same(t, "the dry run")
	e.sh(t, s, "agent", "enable", e.agent, "--yes")
	data, err := os.ReadFile(e.path())
	if err != nil || !strings.Contains(string(data), s.address) {
		t.Fatalf("the settings hold %q (%v)", data, err)
	}
	if status := e.sh(t, s, "agent", "status", e.agent); !strings.Contains(status, "not seen yet") {
		t.Errorf("before its first request the status is %s", status)
	}
	s.restart() // which must not touch an agent's file
	if again, err := os.ReadFile(e.path()); err != nil || string(again) != string(data) {
		t.Errorf("after a restart of the proxy the settings hold %q (%v), want %q", again, err, data)
	}
	// What the user had is the own upstream now; here nobody serves it.
	s.mark()
	e.ask(t, s, e, "hello")
	s.expectAll("a turn of an enabled agent", "a")
	if status := e.sh(t, s, "agent", "status", e.agent); strings.Contains(status, "not seen yet") {
		t.Errorf("after its first request the status is %s", status)
	}
	now, err := os.ReadFile(e.path())
	if err != nil {
		t.Fatal(err)
	}
	e.sh(t, s, "agent", "disable", e.agent)
	if string(now) == string(data) {
		e.same(t, "disable")
	} else {
		t.Logf("the agent has changed its settings to %s", now)
		left, err := os.ReadFile(e.path())
		if err == nil && strings.Contains(string(left), s.address) {
			t.Errorf("after disable the settings are %s", left)
		}
	}
}

// same asserts that the settings are as the user has them.
func (e *enabled) same(t *testing.T, after string) {
	t.Helper()
	data, err := os.ReadFile(e.path())
	if e.text == "" {
		if !os.IsNotExist(err) {
			t.Errorf("after %s the settings are %q (%v), want none", after, data, err)
		}
		return
	}
	if err != nil || string(data) != e.text {
		t.Errorf("after %s the settings are %q (%v), want %q", after, data, err, e.text)
	}
}
