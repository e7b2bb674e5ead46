package config

import (
	"net/url"
	"strings"
	"testing"
)

func TestJoinURLByTheRule(t *testing.T) {
	for _, c := range []struct {
		name, base, path, query string
		strip                   bool
		want                    string
	}{
		{"plain", "http://a", "/v1/messages", "", false, "http://a/v1/messages"},
		{"query kept", "http://a", "/v1/messages", "beta=true", false, "http://a/v1/messages?beta=true"},
		{"equal keys, odd order, encoding", "http://a", "/v1/files", "b=2&a=%2F&b=1&&c", false, "http://a/v1/files?b=2&a=%2F&b=1&&c"},
		{"count_tokens", "http://a", "/v1/messages/count_tokens", "beta=true", false, "http://a/v1/messages/count_tokens?beta=true"},
		{"base ends in a slash", "http://a/", "/v1/messages", "", false, "http://a/v1/messages"},
		{"base ends in two", "http://a//", "/v1/messages", "", false, "http://a/v1/messages"},
		{"path begins with two", "http://a", "//v1/messages", "", false, "http://a/v1/messages"},
		{"path begins with none", "http://a", "v1/messages", "", false, "http://a/v1/messages"},
		{"base has v1", "http://a/v1", "/v1/messages", "", false, "http://a/v1/messages"},
		{"base has v1 and a slash", "http://a/v1/", "/v1/messages", "", false, "http://a/v1/messages"},
		{"only base has v1", "http://a/v1", "/responses", "", false, "http://a/v1/responses"},
		{"neither has v1", "http://a", "/responses", "", false, "http://a/v1/responses"},
		{"neither has v1, behind a path", "http://a/openai", "/responses", "", false, "http://a/openai/v1/responses"},
		{"agent doubled it", "http://a", "/v1/v1/messages", "", false, "http://a/v1/messages"},
		{"agent doubled it, base too", "http://a/v1", "/v1//v1/messages", "", false, "http://a/v1/messages"},
		{"strip", "http://a/openai", "/v1/responses", "", true, "http://a/openai/responses"},
		{"strip, agent has none", "http://a/openai", "/responses", "", true, "http://a/openai/responses"},
		{"strip keeps what is in the base", "http://a/v1", "/v1/responses", "", true, "http://a/v1/responses"},
		{"strip, another version", "https://a/api/paas/v4", "/v1/chat/completions", "", true, "https://a/api/paas/v4/chat/completions"},
		{"ChatGPT", "https://chatgpt.com/backend-api/codex", "/v1/responses", "", true, "https://chatgpt.com/backend-api/codex/responses"},
		{"ChatGPT's models", "https://chatgpt.com/backend-api/codex", "/v1/models", "client_version=0.171.0", true, "https://chatgpt.com/backend-api/codex/models?client_version=0.171.0"},
		{"path prefix", "https://h/glm/anthropic", "/v1/messages", "", false, "https://h/glm/anthropic/v1/messages"},
		{"prefix that begins like v1", "http://a/v11", "/v1/messages", "", false, "http://a/v11/v1/messages"},
		{"path that begins like v1", "http://a", "/v1beta/models", "", false, "http://a/v1beta/models"},
		{"path that is not an API's", "http://a/x", "/api/hello", "", false, "http://a/x/api/hello"},
		{"nothing", "http://a", "", "", false, "http://a/"},
		{"nothing but a slash", "http://a", "/", "", false, "http://a/"},
		{"v1 alone", "http://a", "/v1", "", false, "http://a/v1"},
		{"v1 alone, base has it", "http://a/v1", "/v1", "", false, "http://a/v1"},
		{"v1 alone, stripped", "http://a", "/v1", "", true, "http://a/"},
		{"trailing slash", "http://a/v1", "/v1/models/", "", false, "http://a/v1/models/"},
		{"encoded slash", "http://a", "/v1/models/zai%2Fglm-5%20x", "", false, "http://a/v1/models/zai%2Fglm-5%20x"},
		{"encoded v1 is not v1", "http://a/v1", "/%76%31/messages", "", false, "http://a/v1/%76%31/messages"},
		{"inner double slash stays", "http://a", "/v1/models//x", "", false, "http://a/v1/models//x"},
		{"IPv6", "http://[::1]:8000/v1", "/v1/chat/completions", "", false, "http://[::1]:8000/v1/chat/completions"},
		{"OpenCode's openai path", "https://api.openai.com", "/responses", "", false, "https://api.openai.com/v1/responses"},
		{"Claude Code's base in OpenCode", "https://api.anthropic.com", "/messages", "", false, "https://api.anthropic.com/v1/messages"},
	} {
		if got := JoinURL(c.base, c.path, c.query, c.strip); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestJoinUpstreamAsksForWhatTheAgentWouldHave(t *testing.T) {
	for _, c := range []struct{ name, base, path, query, want string }{
		{"another version", "https://a/api/paas/v4", "/chat/completions", "", "https://a/api/paas/v4/chat/completions"},
		{"a version inside", "https://a/v1beta/openai", "/chat/completions", "x=1", "https://a/v1beta/openai/chat/completions?x=1"},
		{"a path without a version", "https://a/codex/", "/responses", "", "https://a/codex/responses"},
		{"Claude Code adds it", "https://a/llm", "/v1/messages", "beta=true", "https://a/llm/v1/messages?beta=true"},
		{"both have it", "https://a/x/v1", "/v1/responses", "", "https://a/x/v1/responses"},
		{"the base has it", "https://a/x/v1", "/responses", "", "https://a/x/v1/responses"},
		{"no path", "https://api.openai.com", "/responses", "", "https://api.openai.com/v1/responses"},
		{"ChatGPT", "https://chatgpt.com/backend-api/codex", "/v1/responses", "", "https://chatgpt.com/backend-api/codex/responses"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := JoinUpstream(c.base, c.path, c.query); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOwnUpstreamByAgentAndLogin(t *testing.T) {
	bare := Default()
	set, err := Parse("", []byte(`agents:
  claude-code: {upstream: https://gw.corp/anthropic/}
  codex: {upstream: {chatgpt: https://gw.corp/chat}}
  opencode: {upstream: {zen: https://zen.example, openai: https://gw.corp/oa}}
  aider: {upstream: none}
`))
	if err != nil {
		t.Fatal(err)
	}
	none, _ := Parse("", []byte("agents: {codex: {upstream: none}, claude-code: {upstream: none}, opencode: {upstream: https://one}}"))
	for _, c := range []struct {
		name            string
		config          *Config
		agent, provider string
		chatgpt         bool
		want            string // "" = none
	}{
		{"claude-code", bare, "claude-code", "", false, "https://api.anthropic.com"},
		{"codex with a key", bare, "codex", "", false, "https://api.openai.com"},
		{"codex with a login", bare, "codex", "", true, "https://chatgpt.com/backend-api/codex"},
		{"opencode anthropic", bare, "opencode", "anthropic", false, "https://api.anthropic.com"},
		{"opencode openai", bare, "opencode", "openai", false, "https://api.openai.com"},
		{"opencode openai login", bare, "opencode", "openai", true, "https://chatgpt.com/backend-api/codex"},
		{"opencode other", bare, "opencode", "zen", false, ""},
		{"another agent", bare, "aider", "", false, ""},
		{"configured", set, "claude-code", "", false, "https://gw.corp/anthropic"},
		{"one half configured", set, "codex", "", true, "https://gw.corp/chat"},
		{"other half usual", set, "codex", "", false, "https://api.openai.com"},
		{"provider", set, "opencode", "zen", false, "https://zen.example"},
		{"provider, login", set, "opencode", "openai", true, "https://gw.corp/oa"},
		{"provider left out", set, "opencode", "anthropic", false, "https://api.anthropic.com"},
		{"none said", set, "aider", "", false, ""},
		{"none said, known agent", none, "codex", "", true, ""},
		{"one for all", none, "opencode", "whatever", false, "https://one"},
	} {
		got, ok := c.config.OwnUpstream(c.agent, c.provider, c.chatgpt)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, ok, c.want)
		}
	}
	if !upstreamStripsV1("https://chatgpt.com/backend-api/codex/") || upstreamStripsV1("https://api.openai.com") {
		t.Errorf("ChatGPT's paths alone have no /v1")
	}
}

func TestSendModelTakesTheFirstMatch(t *testing.T) {
	s := Server{Rename: []Rename{{"claude-*haiku*", "small"}, {"claude-*", "large"}, {"*/glm-?", "slash"}, {"gpt-*-codex", "code"}, {"ü?", "umlaut"}}}
	for asked, want := range map[string]string{
		"claude-haiku-4-5-20251001": "small", "claude-opus-5": "large", "claude-": "large", "claude": "claude",
		"openrouter/z-ai/glm-5": "slash", "glm-5": "glm-5", "z-ai/glm-51": "z-ai/glm-51",
		"gpt-6-codex": "code", "gpt-6-codex-mini": "gpt-6-codex-mini", "gpt--codex": "code",
		"Claude-opus": "Claude-opus", "": "", "üé": "umlaut", "ü": "ü",
	} {
		if got, renamed := s.SendModel(asked); got != want || renamed != (want != asked) {
			t.Errorf("%q: got %q, %v, want %q", asked, got, renamed, want)
		}
	}
	if !Match(strings.Repeat("*a", 40)+"*", strings.Repeat("a", 200)) || Match(strings.Repeat("*a", 40)+"b", strings.Repeat("a", 2000)) {
		t.Errorf("many stars are read wrong")
	}
}

func TestProposeByTheServersList(t *testing.T) {
	for _, c := range []struct {
		name   string
		models []string
		agents []string
		want   string
	}{
		{"nothing known", nil, nil, ""},
		{"glm", []string{"glm-5", "glm-4.6", "glm-5-air", "glm-4.6-air", "embedding-3"}, nil,
			"claude-*haiku*=glm-5-air claude-*=glm-5 gpt-*=glm-5"},
		{"for one agent", []string{"glm-5", "glm-5-air"}, []string{"codex"}, "gpt-*=glm-5"},
		{"for another", []string{"glm-5", "glm-5-air"}, []string{"claude-code"}, "claude-*haiku*=glm-5-air claude-*=glm-5"},
		{"one model", []string{"qwen3-coder"}, nil, "claude-*=qwen3-coder gpt-*=qwen3-coder"},
		{"sizes", []string{"qwen3-235b-a22b", "qwen3-8b", "qwen3-32b"}, nil, "claude-*haiku*=qwen3-8b claude-*=qwen3-235b-a22b gpt-*=qwen3-235b-a22b"},
		{"with paths", []string{"zai-org/GLM-5", "zai-org/GLM-5-Flash"}, nil, "claude-*haiku*=zai-org/GLM-5-Flash claude-*=zai-org/GLM-5 gpt-*=zai-org/GLM-5"},
		{"Anthropic's own", []string{"claude-opus-5-5", "claude-haiku-5-5"}, []string{"claude-code"}, ""},
		{"OpenAI's own", []string{"gpt-6", "gpt-6-mini"}, nil, "claude-*haiku*=gpt-6-mini claude-*=gpt-6"},
		{"gateway with both", []string{"gpt-6", "claude-opus-5-5"}, nil, ""},
		{"no chat models", []string{"bge-m3", "whisper-1"}, nil, ""},
		{"odd names", []string{"a*", "", "x\ny", "ok"}, nil, "claude-*=ok gpt-*=ok"},
		{"a market of all vendors", []string{"anthropic/claude-3-haiku", "anthropic/claude-haiku-5.5", "anthropic/claude-opus-4.5", "anthropic/claude-opus-5.5",
			"anthropic/claude-sonnet-5.5", "anthropic/claude-sonnet-5.5:thinking", "google/gemini-3-pro", "openai/gpt-4o-audio-preview", "openai/gpt-5", "openai/gpt-5-codex",
			"openai/gpt-5-mini", "openai/gpt-5.2", "openai/gpt-5.2-codex", "openai/gpt-5.2-pro", "openai/gpt-oss-120b", "z-ai/glm-5"}, nil,
			"claude-*haiku*=anthropic/claude-haiku-5.5 claude-*sonnet*=anthropic/claude-sonnet-5.5 claude-*=anthropic/claude-opus-5.5 gpt-*codex*=openai/gpt-5.2-codex gpt-*=openai/gpt-5.2"},
		{"one vendor's class alone", []string{"anthropic/claude-sonnet-5.5", "z-ai/glm-5"}, []string{"claude-code"}, "claude-*=anthropic/claude-sonnet-5.5"},
		{"regions in front", []string{"us.anthropic.claude-opus-5-5-v1:0", "us.anthropic.claude-haiku-5-5-v1:0"}, []string{"claude-code"},
			"claude-*haiku*=us.anthropic.claude-haiku-5-5-v1:0 claude-*=us.anthropic.claude-opus-5-5-v1:0"},
		{"open models under a vendor's name are no relatives", []string{"openai/gpt-oss-120b", "openai/gpt-oss-20b"}, []string{"codex"}, "gpt-*=openai/gpt-oss-120b"},
		{"mini is not gemini", []string{"gemini-3-pro", "gemini-3-flash"}, nil, "claude-*haiku*=gemini-3-flash claude-*=gemini-3-pro gpt-*=gemini-3-pro"},
	} {
		var parts []string
		for _, p := range Propose(c.models, c.agents...) {
			parts = append(parts, p.Glob+"="+p.Name)
			if p.Why == "" || checkGlob(p.Glob) != nil || checkTarget(p.Name) != nil {
				t.Errorf("%s: the line %+v is not usable", c.name, p)
			}
		}
		if got := strings.Join(parts, " "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestNearestIsOfTheSameClass(t *testing.T) {
	market := []string{"anthropic/claude-opus-4.8", "anthropic/claude-opus-5.5", "anthropic/claude-haiku-5.5", "anthropic/claude-sonnet-5.5", "openai/gpt-5-codex", "openai/gpt-5.2", "z-ai/glm-5"}
	own := []string{"claude-opus-7", "claude-sonnet-7", "claude-opus-5-5-20260901"}
	for _, c := range []struct {
		name   string
		models []string
		asked  string
		want   string
	}{
		{"the same, written with dots", market, "claude-opus-4-8", "anthropic/claude-opus-4.8"},
		{"the same, dated", market, "claude-haiku-5-5-20260901", "anthropic/claude-haiku-5.5"},
		{"the newest of its class", market, "claude-sonnet-4-5", "anthropic/claude-sonnet-5.5"},
		{"the newest of its family", market, "claude-mystery-1", "anthropic/claude-opus-5.5"},
		{"codex", market, "gpt-5.1-codex", "openai/gpt-5-codex"},
		{"gpt", market, "gpt-5.1", "openai/gpt-5.2"},
		{"under plain names", own, "claude-opus-4-8", "claude-opus-7"},
		{"the same, with its date", own, "claude-opus-5-5", "claude-opus-5-5-20260901"},
		{"served", own, "claude-opus-7", ""},
		{"of no family", market, "kimi", ""},
		{"of a family that is not there", []string{"glm-5"}, "claude-opus-4-8", ""},
		{"nothing known", nil, "claude-opus-4-8", ""},
	} {
		if got := Nearest(c.models, c.asked); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFieldsAreAllDescribedAndTheirExamplesParse(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Fields() {
		if seen[f.Path] || f.Doc == "" || f.Type == "" || f.Example == "" {
			t.Errorf("%q is described twice or not whole: %+v", f.Path, f)
		}
		seen[f.Path] = true
		for _, text := range []string{f.Example, f.Default} {
			if text == "" {
				continue
			}
			if _, err := Parse("c.yaml", []byte(inPlace(f.Path, text))); err != nil {
				t.Errorf("%s: %s does not parse: %v", f.Path, text, err)
			}
		}
	}
	if len(seen) != 22 {
		t.Errorf("got %d fields, want 22: is the list whole?", len(seen))
	}
}

// inPlace writes a configuration with one field.
func inPlace(path, text string) string {
	name := lastPart(path)
	switch {
	case path == "agents":
		return "servers: {glm: {url: http://a}}\nagents: " + text
	case !strings.Contains(path, "."):
		return name + ": " + text
	case strings.HasPrefix(path, "agents."):
		return "servers: {glm: {url: http://a}}\nagents:\n  opencode:\n    " + name + ": " + text
	case strings.Contains(path, "[]"):
		return "servers:\n  a:\n    pool:\n      - url: http://b\n      - url: http://c\n        " + strings.Replace(name+": "+text, "url: http://gpu1:8000", "cost: 1", 1)
	case name == "url" || name == "pool":
		return "servers:\n  a:\n    " + name + ": " + text
	case name == "headroom":
		return "servers:\n  a:\n    pool: [{url: http://b}]\n    headroom: " + text
	}
	return "servers:\n  a:\n    url: http://b\n    " + name + ": " + text
}

func TestMembersAreNamedByTheirHosts(t *testing.T) {
	c, err := Parse("", []byte("servers: {p: {pool: [{url: http://gpu1:8000}, {url: http://gpu2:8000}, {url: http://gpu2:8001}, {url: http://gw/a}, {url: http://gw/b}, {url: https://gw/b}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"gpu1", "gpu2:8000", "gpu2:8001", "gw.a", "http.gw.b", "https.gw.b"}
	for i, m := range c.Servers[0].Pool {
		if m.Name != want[i] {
			t.Errorf("%s: got %q, want %q", m.URL, m.Name, want[i])
		}
	}
}

func TestWarningsNameTheDanger(t *testing.T) {
	c, err := Parse("", []byte(`servers:
  a: {url: http://127.0.0.1:1}
  b: {url: http://gpu:8000}
  c: {url: "https://h/api/v4", insecure_skip_verify: on}
  d: {url: "https://h/api/v4", v1: strip}
agents: {aider: {upstream: none}}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.Warnings(), "\n")
	for _, want := range []string{"server b: gpu:8000 is plain http", "server c: insecure_skip_verify is on", "server c: its URL ends in /v4", "agent aider has neither"} {
		if !strings.Contains(got, want) {
			t.Errorf("no warning %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "server a") || strings.Contains(got, "server d") {
		t.Errorf("a warning too many:\n%s", got)
	}
}

func FuzzJoinURL(f *testing.F) {
	f.Add("/v1/messages", "beta=true", true)
	f.Add("//v1//v1/%2e%2e/x", "", false)
	f.Fuzz(func(t *testing.T, path, query string, strip bool) {
		const base = "https://h.example/p/v1"
		got := JoinURL(base, path, query, strip)
		if !strings.HasPrefix(got, base) || strings.HasPrefix(got, base+"//") || strings.HasPrefix(got, base+"/v1/") {
			t.Errorf("%q: got %q", path, got)
		}
		if u, err := url.Parse(got); err == nil && u.Host != "h.example" {
			t.Errorf("%q leads to the host %q", path, u.Host)
		}
	})
}

func TestUpstreamWords(t *testing.T) {
	c := Default()
	c.Agents["kilo"] = Choice{Upstream: map[string]string{"": "https://one"}}
	c.Agents["codex"] = Choice{UpstreamNone: true}
	for agent, want := range map[string]string{
		"claude-code": anthropicUpstream, "codex": "none", "opencode": "by provider", "qwen-code": "none", "kilo": "https://one",
	} {
		if got := c.UpstreamWords(agent); got != want {
			t.Errorf("%s: got %q, want %q", agent, got, want)
		}
	}
	c.Agents["opencode"] = Choice{Upstream: map[string]string{"openai": "https://b", "anthropic": "https://a"}}
	if got, want := c.UpstreamWords("opencode"), "anthropic: https://a, openai: https://b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
