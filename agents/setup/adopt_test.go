package setup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhereAnAgentWentBecomesItsOwnUpstream: where an agent went before becomes its own upstream, by the paths
// that the agent would have asked for.
func TestWhereAnAgentWentBecomesItsOwnUpstream(t *testing.T) {
	tests := []struct {
		name, agent, text string
		env               map[string]string
		upstreams         string
		value             string // that is written first
	}{
		{"nothing was set", claudeCode, `{}`, nil, "[]", "http://127.0.0.1:4780/claude-code"},
		{"in the file", claudeCode, `{"env":{"ANTHROPIC_BASE_URL":"https://gw.corp.example"}}`, nil,
			"[{ https://gw.corp.example settings.json false}]", "http://127.0.0.1:4780/claude-code"},
		{"in the shell", claudeCode, `{}`, map[string]string{"ANTHROPIC_BASE_URL": "https://gw.corp.example"},
			"[{ https://gw.corp.example your shell's environment false}]", ""},
		{"the file wins over the shell", claudeCode, `{"env":{"ANTHROPIC_BASE_URL":"https://a.example"}}`, map[string]string{"ANTHROPIC_BASE_URL": "https://b.example"},
			"[{ https://a.example settings.json false}]", ""},
		{"empty means the default", claudeCode, `{"env":{"ANTHROPIC_BASE_URL":""}}`, map[string]string{"ANTHROPIC_BASE_URL": "https://b.example"}, "[]", ""},
		{"another router", claudeCode, `{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:15721"}}`, nil,
			"[{ http://127.0.0.1:15721 settings.json true}]", ""},
		{"agentop itself, in the shell", claudeCode, `{}`, map[string]string{"ANTHROPIC_BASE_URL": "http://localhost:4780"}, "[]", ""},
		{"agentop itself, at another port", claudeCode, `{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9999/claude-code"}}`, nil, "[]", ""},
		{"codex, with the version", codex, `openai_base_url = "https://gw.corp.example/v1"`, nil,
			"[{ https://gw.corp.example/v1 config.toml false}]", "http://127.0.0.1:4780/codex/v1"},
		{"codex, without", codex, `openai_base_url = "https://gw.corp.example/openai/"`, nil,
			"[{ https://gw.corp.example/openai/ config.toml false}]", "http://127.0.0.1:4780/codex"},
		{"codex ignores its variable", codex, ``, map[string]string{"OPENAI_BASE_URL": "https://gw.corp.example/v1"}, "[]", "http://127.0.0.1:4780/codex/v1"},
		{"opencode, each provider", openCode, `{"provider":{"anthropic":{},"lab":{"options":{"baseURL":"http://gpu.example/api"}},"openai":{"options":{"baseURL":"{env:OAI}/v1"}}}}`,
			map[string]string{"OAI": "https://oai.example"},
			"[{lab http://gpu.example/api opencode.json false} {openai https://oai.example/v1 opencode.json false}]", "http://127.0.0.1:4780/opencode/anthropic/v1"},
		{"opencode, in the shell", openCode, `{"provider":{"anthropic":{}}}`, map[string]string{"ANTHROPIC_BASE_URL": "https://gw.corp.example"},
			"[{anthropic https://gw.corp.example your shell's environment false}]", "http://127.0.0.1:4780/opencode/anthropic/v1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			s.write(settingsFiles[tt.agent], tt.text)
			for name, value := range tt.env {
				s.env[name] = value
			}
			p := s.enable(tt.agent, Choices{})
			if got := fmt.Sprint(p.Upstreams); got != tt.upstreams {
				t.Errorf("taken over: %s, want %s", got, tt.upstreams)
			}
			if tt.value != "" && p.wants[0].value != tt.value {
				t.Errorf("written: %s, want %s", p.wants[0].value, tt.value)
			}
			again := s.enable(tt.agent, Choices{})
			if again.Changes() || len(again.Upstreams) > 0 {
				t.Errorf("the second time: changes %t, upstreams %v", again.Changes(), again.Upstreams)
			}
		})
	}
}

// TestOpenCodeProviders: those that speak one of the three formats are moved,
// the others are left with the reason.
func TestOpenCodeProviders(t *testing.T) {
	s := newStage(t)
	s.write(".local/share/opencode/auth.json", `{"anthropic":{"type":"api","key":"sk-fake"},"github-copilot":{"type":"oauth"}}`)
	s.write(".config/opencode/opencode.json", `{"provider":{"weak":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://weak.example/v1"}}}}`)
	s.write(".config/opencode/opencode.jsonc", `{
  // mine
  "provider": {
    "bedrock": {"npm": "@ai-sdk/amazon-bedrock", "options": {"baseURL": "https://x.example"}},
    "google": {"options": {"baseURL": "https://x.example"}},
    "built-in": {},
    "no env": {"options": {"baseURL": "https://x.example"}},
    "unset": {"options": {"baseURL": "{env:NOT_SET}"}},
    "odd": {"options": [], "api": "https://x.example"},
    "messages": {"options": {"baseURL": "https://x.example"}},
    "claude": {"npm": "@ai-sdk/anthropic", "options": {"baseURL": "https://gw.corp.example/v1"}},
  },
}
`)
	p := s.enable(openCode, Choices{})
	if got := strings.Join(p.Moved, " "); got != "anthropic claude weak" {
		t.Errorf("moved %s", got)
	}
	want := []string{"github-copilot: ", "bedrock: ", "built-in: ", "google: ", "messages: ", "no env: ", "odd: ", "unset: "}
	for _, w := range want {
		if !slices.ContainsFunc(p.Left, func(l string) bool { return strings.HasPrefix(l, w) }) {
			t.Errorf("%q is not among %q", w, p.Left)
		}
	}
	if len(p.Left) != len(want) {
		t.Errorf("left %q", p.Left)
	}
	if filepath.Base(p.File) != "opencode.jsonc" {
		t.Errorf("the file is %s, want the strongest", p.File)
	}
	_, data := cutMark([]byte(s.read(".config/opencode/opencode.jsonc")))
	tree, err := looseJSON.decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"anthropic": "http://127.0.0.1:4780/opencode/anthropic/v1",
		"claude":    "http://127.0.0.1:4780/opencode/claude/v1",
		"weak":      "http://127.0.0.1:4780/opencode/weak/v1",
	} {
		if got := text(tree, "provider", id, "options", "baseURL"); got != want {
			t.Errorf("%s goes to %q, want %q", id, got, want)
		}
	}
}

// TestClaudeCodeGetsBackWhatItLeavesOut: what Claude Code leaves out behind another address is
// given back where that is right, and nothing that is set is touched.
func TestClaudeCodeGetsBackWhatItLeavesOut(t *testing.T) {
	yes, no := true, false
	const proxied = `{"env":{"NO_PROXY":"corp.example,localhost","HTTPS_PROXY":"http://p.example"}}`
	tests := []struct {
		name, text string
		env        map[string]string
		choices    Choices
		want       string // the keys that are written
	}{
		{"Anthropic", `{}`, nil, Choices{}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS ENABLE_TOOL_SEARCH=true"},
		{"a gateway of his own", `{"env":{"ANTHROPIC_BASE_URL":"https://gw.example"}}`, nil, Choices{}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS"},
		{"routed", `{}`, nil, Choices{Routed: true}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS"},
		{"routed, asked for", `{}`, nil, Choices{Routed: true, ToolSearch: &yes}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS ENABLE_TOOL_SEARCH=true"},
		{"not wanted", `{}`, nil, Choices{ToolSearch: &no}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS"},
		{"set in the shell", `{}`, map[string]string{"ENABLE_TOOL_SEARCH": "auto"}, Choices{}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS"},
		{"set in the file", `{"env":{"ENABLE_TOOL_SEARCH":"false","CLAUDE_CODE_GATEWAY_HINT_HEADERS":"0"}}`, nil, Choices{ToolSearch: &yes}, "ANTHROPIC_BASE_URL"},
		{"a small model", `{}`, nil, Choices{ToolSearch: &no, Haiku: "glm-air"}, "ANTHROPIC_BASE_URL ANTHROPIC_DEFAULT_HAIKU_MODEL=glm-air CLAUDE_CODE_GATEWAY_HINT_HEADERS"},
		{"a proxy in the file", proxied, nil, Choices{ToolSearch: &no}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS no_proxy=corp.example,localhost,127.0.0.1,::1"},
		{"a proxy in the shell", `{}`, map[string]string{"http_proxy": "http://p.example"}, Choices{ToolSearch: &no}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS no_proxy=127.0.0.1,localhost,::1"},
		{"a proxy that leaves loopback", `{}`, map[string]string{"http_proxy": "http://p.example", "no_proxy": "::1,localhost 127.0.0.1"}, Choices{ToolSearch: &no}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS"},
		{"no proxy for anything", `{}`, map[string]string{"http_proxy": "http://p.example", "no_proxy": "*"}, Choices{ToolSearch: &no}, "ANTHROPIC_BASE_URL CLAUDE_CODE_GATEWAY_HINT_HEADERS"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			s.write(settingsFiles[claudeCode], tt.text)
			for name, value := range tt.env {
				s.env[name] = value
			}
			s.enable(claudeCode, tt.choices)
			before, after := decoded(t, tt.text), decoded(t, s.read(settingsFiles[claudeCode]))
			var got []string
			env, _ := after["env"].(map[string]any)
			for name, value := range env {
				if text(before, "env", name) == value {
					continue
				}
				if name == "ENABLE_TOOL_SEARCH" || name == "no_proxy" || name == "ANTHROPIC_DEFAULT_HAIKU_MODEL" {
					name += fmt.Sprint("=", value)
				}
				got = append(got, name)
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tt.want {
				t.Errorf("written: %s, want %s", strings.Join(got, " "), tt.want)
			}
		})
	}
}

// TestStatusTellsWhatIsSetAndWhoIsStronger: what is set, and who is stronger.
func TestStatusTellsWhatIsSetAndWhoIsStronger(t *testing.T) {
	s := newStage(t)
	s.World.Work = filepath.Join(s.home, "project")
	state := func(agent string, want State) Status {
		t.Helper()
		st := s.Status(agent)
		if st.State != want {
			t.Errorf("%s is %q (%s), want %q", agent, st.State, st.Error, want)
		}
		return st
	}
	for _, agent := range Agents {
		state(agent, StateOff)
	}
	state("gemini", StateUnknown)
	s.env["ANTHROPIC_API_KEY"] = "sk-ant-fake-key"
	for _, agent := range Agents {
		s.enable(agent, Choices{})
		if st := state(agent, StateOn); !st.Record || st.Enabled.IsZero() || len(st.Trouble) > 0 {
			t.Errorf("%s: %+v", agent, st)
		}
	}
	s.write("project/.claude/settings.local.json", `{"env":{"ANTHROPIC_BASE_URL":"https://user:pw@project.example/x?key=1"}}`)
	s.write(".codex/work.config.toml", `openai_base_url = "https://profile.example/v1"`)
	s.write("project/opencode.json", `{"provider":{"anthropic":{"options":{"baseURL":"https://project.example"}}}}`)
	for agent, want := range map[string]string{
		claudeCode: "settings.local.json is stronger: it sets env.ANTHROPIC_BASE_URL to https://project.example/x",
		codex:      "work.config.toml is stronger with --profile work: it sets openai_base_url to https://profile.example/v1",
		openCode:   "opencode.json is stronger: it sets provider.anthropic.options.baseURL to https://project.example",
	} {
		st := state(agent, StateOn)
		if len(st.Over) != 1 || !strings.HasSuffix(st.Over[0].String(), want) {
			t.Errorf("%s: stronger is %v, want %q", agent, st.Over, want)
		}
	}
	s.Proxy = Proxy{Listen: "127.0.0.1:4999"}
	for _, agent := range Agents {
		if st := state(agent, StateStale); len(st.Trouble) == 0 || st.Trouble[0].Fix != "agentop agent enable "+agent {
			t.Errorf("%s: trouble is %+v", agent, st.Trouble)
		}
	}
	s.write(settingsFiles[claudeCode], "{,}")
	if st := state(claudeCode, StateBroken); !strings.Contains(st.Error, "settings.json:1:2") {
		t.Errorf("the error is %q", st.Error)
	}
}

// TestTheTokenIsNotShown: the secret path segment is written and not listed.
func TestTheTokenIsNotShown(t *testing.T) {
	s := newStage(t)
	s.Proxy.Token = "fake-token"
	p := s.enable(claudeCode, Choices{})
	if got := text(decoded(t, s.read(settingsFiles[claudeCode])), claudePath...); got != "http://127.0.0.1:4780/fake-token/claude-code" {
		t.Errorf("written: %s", got)
	}
	if st := s.Status(claudeCode); strings.Contains(fmt.Sprint(st), "fake-token") || st.State != StateOn {
		t.Errorf("the status is %+v", st)
	}
	if again := s.enable(claudeCode, Choices{}); again.Changes() {
		t.Errorf("a second run changes %s", again.Diff())
	}
	_ = p
	s.Proxy.Token = "another"
	if st := s.Status(claudeCode); st.State != StateStale {
		t.Errorf("with another token it is %s", st.State)
	}
}

// TestDiffHidesSecrets: the lines around a change may hold credentials.
func TestDiffHidesSecrets(t *testing.T) {
	s := newStage(t)
	s.write(settingsFiles[claudeCode], "{\n  \"apiKeyHelper\": \"cat /secret-1\",\n  \"env\": {\n    \"ANTHROPIC_AUTH_TOKEN\": \"secret-2\",\n    \"HTTPS_PROXY\": \"http://u:secret-3@p.example\",\n    \"ANTHROPIC_CUSTOM_HEADERS\": \"X: secret-4\"\n  }\n}\n")
	s.write(settingsFiles[codex], "model = \"x\"\nexperimental_bearer_token = 'secret-5'\n[model_providers.x]\nhttp_headers = { Authorization = \"Bearer secret-6\" }\n")
	for _, agent := range []string{claudeCode, codex} {
		p, err := s.Plan(agent, Choices{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := p.Diff(); strings.Contains(diff, "secret-") || !strings.Contains(diff, "4780") {
			t.Errorf("the diff of %s is\n%s", agent, diff)
		}
	}
}

// TestLosses: what Claude Code leaves out depends on its version and on what
// is set.
func TestLosses(t *testing.T) {
	no := false
	tests := []struct {
		name, version string
		choices       Choices
		env           map[string]string
		want          []string // the begin of each
	}{
		{"an old one", "2.1.100", Choices{ToolSearch: &no}, nil, []string{"this version turns tool search off", "this version takes 200k", "titles"}},
		{"with tool search", "2.1.197", Choices{}, nil, []string{"this version takes 200k", "titles"}},
		{"one in between", "2.1.250", Choices{ToolSearch: &no}, nil, []string{"Claude Code up to 2.1.197, and perhaps later, turns", "Claude Code up to 2.1.197, and perhaps later, takes", "titles"}},
		{"not installed", "", Choices{}, nil, []string{"Claude Code up to 2.1.197", "titles"}},
		{"a new one", "2.1.332", Choices{ToolSearch: &no}, nil, []string{"titles"}},
		{"a small model", "2.2.0", Choices{Haiku: "glm-air"}, nil, nil},
		{"a small model in the shell", "2.2.0", Choices{}, map[string]string{"ANTHROPIC_SMALL_FAST_MODEL": "x"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			if lost := s.Losses(tt.version); lost != nil {
				t.Errorf("not enabled: %q", lost)
			}
			for name, value := range tt.env {
				s.env[name] = value
			}
			s.enable(claudeCode, tt.choices)
			got := s.Losses(tt.version)
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}
