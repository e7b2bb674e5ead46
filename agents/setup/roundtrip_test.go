package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// absent is a settings file that is not there.
const absent = "\x00"

// lives are settings files as people have them.
var lives = map[string]map[string]string{
	claudeCode: {
		"absent":       absent,
		"empty":        "",
		"white space":  "\n  \n",
		"braces":       "{}",
		"braces, line": "{}\n",
		"open braces":  "{\n}\n",
		"model only":   "{\n  \"model\": \"opus\"\n}\n",
		"four spaces":  "{\n    \"model\": \"opus[1m]\",\n    \"permissions\": {\n        \"allow\": [\n            \"Bash(go test:*)\"\n        ]\n    }\n}",
		"tabs":         "{\n\t\"theme\": \"dark\",\n\t\"env\": {\n\t\t\"BASH_DEFAULT_TIMEOUT_MS\": \"60000\"\n\t}\n}\n",
		"crlf":         "{\r\n  \"env\": {\r\n    \"FOO\": \"bar\"\r\n  },\r\n  \"x\": 1\r\n}\r\n",
		"mark":         byteOrderMark + "{\n  \"model\": \"opus\"\n}\n",
		"one line":     `{"env":{"FOO":"bar"},"model":"opus"}`,
		"spaced line":  "{ \"env\": { \"FOO\": \"bar\" }, \"model\": \"opus\" }\n",
		"empty env":    "{\n  \"env\": {},\n  \"model\": \"opus\"\n}\n",
		"open env":     "{\n  \"env\": {\n  }\n}\n",
		"gateway":      "{\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"https://gw.corp.example/llm\",\n    \"ANTHROPIC_AUTH_TOKEN\": \"sk-fake-token\"\n  }\n}\n",
		"empty url":    "{\"env\": {\"ANTHROPIC_BASE_URL\": \"\"}}\n",
		"escaped":      "{\"\\u0065nv\": {\"ANTHROPIC\\u005fBASE_URL\": \"https:\\/\\/gw.corp.example\"}}\n",
		"twice":        "{\"env\": {\"ANTHROPIC_BASE_URL\": \"https://a.example\"}, \"env\": {\"B\": \"1\", \"ANTHROPIC_BASE_URL\": \"https://b.example\"}}\n",
		"hint set":     "{\n  \"env\": {\n    \"CLAUDE_CODE_GATEWAY_HINT_HEADERS\": \"1\"\n  }\n}\n",
		"big numbers":  "{\"n\": 123456789012345678901234567890.10, \"e\": 1E+2}",
		"unicode":      "{\n  \"outputStyle\": \"日本語 \u2028 ü\"\n}\n",
		"proxied":      "{\n  \"env\": {\n    \"HTTPS_PROXY\": \"http://user:pw@squid.example:3128\",\n    \"NO_PROXY\": \"corp.example\"\n  }\n}\n",
	},
	codex: {
		"absent":         absent,
		"empty":          "",
		"comment":        "# mine\n",
		"comment, open":  "# mine",
		"one key":        "model = \"gpt-6-codex\"\n",
		"one key, open":  "model = \"gpt-6-codex\"",
		"tables only":    "[tui]\nnotifications = true\n",
		"comment, table": "# all of it\n\n# the screen\n[tui]\nnotifications = true\n",
		"head, table":    "#:schema https://example.com/x.json\n[tui]\nnotifications = true\n",
		"whole": "# my settings\nmodel   = 'gpt-6'   # tail\napproval_policy = \"on-request\"\n\nnotify = [\n  \"a\", # one\n  \"b\",\n]\n\n# trusted\n" +
			"[projects.\"/home/u/x y\"]\ntrust_level = \"trusted\"\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs\"]\nenv = { A = \"b\", C = '''d''' }\n",
		"crlf":           "model = \"x\"\r\n\r\n[tui]\r\na = 1\r\n",
		"crlf, open":     "model = \"x\"\r\na = 1",
		"mark":           byteOrderMark + "model = \"x\"\n",
		"gateway":        "openai_base_url = \"https://gw.corp.example/v1\" # corp\nmodel = \"x\"\n",
		"literal":        "openai_base_url='https://gw.corp.example'\n[a]\nb=1",
		"long string":    "instructions = \"\"\"\n[not a table]\nopenai_base_url = \"no\"\n\"\"\"\n[a]\nb=1\n",
		"empty url":      "openai_base_url = \"\"\n",
		"own provider":   "model_provider = \"corp\"\n\n[model_providers.corp]\nname = \"Corp\"\nbase_url = \"https://gw.corp.example/openai\" # keep\nenv_key = \"CORP_KEY\"\n",
		"own, inline":    "model_provider = \"corp\"\nmodel_providers = { corp = { name = \"C\", base_url = \"https://gw.corp.example/v1\" } }\n",
		"own, dotted":    "model_provider = \"corp\"\nmodel_providers.corp.base_url = \"https://gw.corp.example/v1\"\nmodel_providers.corp.name = \"C\"\n",
		"own, quoted":    "model_provider = \"my corp\"\n[model_providers.\"my corp\"]\nbase_url = \"https://gw.corp.example/v1\"\n",
		"own, no url":    "model_provider = \"corp\"\n[model_providers.corp]\nname = \"C\"\n",
		"array of table": "model = \"x\"\n[[hooks]]\nopenai_base_url = \"no\"\n[[hooks]]\nx = 1\n",
	},
	openCode: {
		"absent":         absent,
		"empty":          "",
		"schema":         "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
		"comments":       "// mine\n{\n  // the theme\n  \"theme\": \"x\", // tail\n  /* block */\n}\n",
		"no comma":       "{\n  \"theme\": \"x\" // tail\n  // \"more\": 1\n}\n",
		"empty provider": "{\n  \"provider\": {}\n}\n",
		"one line":       `{"provider":{"anthropic":{"options":{"timeout":600000}}}}`,
		"tail, one line": "{\"provider\":{\"anthropic\":{}} // c\n}",
		"lab": "{\n\t\"provider\": {\n\t\t\"lab\": { // ours\n\t\t\t\"npm\": \"@ai-sdk/openai-compatible\",\n\t\t\t\"options\": {\n\t\t\t\t\"baseURL\": \"http://gpu.example:8000/v1\",\n\t\t\t\t\"apiKey\": \"{env:LAB_KEY}\",\n\t\t\t},\n\t\t},\n" +
			"\t\t\"anthropic\": {},\n\t\t\"amazon-bedrock\": {\"options\": {\"region\": \"eu-west-1\"}}\n\t},\n}\n",
		"api, env": "{\"provider\": {\"zed\": {\"api\": \"https://api.zed.example/paas/v4\", \"models\": {}}, \"corp\": {\"npm\": \"@ai-sdk/anthropic\", \"options\": {\"baseURL\": \"{env:CORP_URL}/x\"}}}}\n",
		"crlf":     "{\r\n  \"provider\": {\r\n    \"openai\": {\r\n      \"options\": {\r\n        \"baseURL\": \"https://gw.corp.example/openai/v1\"\r\n      }\r\n    }\r\n  }\r\n}\r\n",
	},
}

var settingsFiles = map[string]string{claudeCode: ".claude/settings.json", codex: ".codex/config.toml", openCode: ".config/opencode/opencode.json"}

// withLife makes a stage with one of the files.
func withLife(t *testing.T, agent, text string) *stage {
	t.Helper()
	s := newStage(t)
	s.env["ANTHROPIC_API_KEY"] = "sk-ant-fake-key"
	s.env["CORP_URL"] = "https://gw.corp.example"
	if text != absent {
		s.write(settingsFiles[agent], text)
	}
	return s
}

func eachLife(t *testing.T, run func(t *testing.T, agent, text string)) {
	for agent, files := range lives {
		for name, text := range files {
			t.Run(agent+"/"+name, func(t *testing.T) { run(t, agent, text) })
		}
	}
}

// TestKF_D4_OnlyOurKeysChange: an edit changes nothing but agentop's keys, a
// second one changes nothing at all, and undoing gives the same bytes back.
func TestKF_D4_OnlyOurKeysChange(t *testing.T) {
	eachLife(t, func(t *testing.T, agent, text string) {
		s := withLife(t, agent, text)
		before := tree(t, s.home)
		first := s.enable(agent, Choices{})
		if !first.Changes() {
			t.Fatal("nothing was changed")
		}
		path := filepath.Join(s.home, settingsFiles[agent])
		once, info := s.read(settingsFiles[agent]), stat(t, path)
		if text != absent {
			linesKept(t, text, once)
		}
		record := s.read(".agentop/agents/" + agent + ".json")
		if again := s.enable(agent, Choices{}); again.Changes() {
			t.Errorf("a second run changes it again:\n%s", again.Diff())
		}
		if twice := s.read(settingsFiles[agent]); twice != once || !stat(t, path).ModTime().Equal(info.ModTime()) {
			t.Errorf("a second run wrote the file: %q, want %q", twice, once)
		}
		if now := s.read(".agentop/agents/" + agent + ".json"); now != record {
			t.Errorf("a second run changed the record:\n%s\nwant\n%s", now, record)
		}
		s.disable(agent)
		sameTree(t, tree(t, s.home), before)
		if left, _ := filepath.Glob(filepath.Join(s.Dir, agent+"*[^k]")); len(left) > 0 { // but the lock
			t.Errorf("the records are still there: %v", left)
		}
	})
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// linesKept checks that every line without one of agentop's keys is there as
// it was, but for a comma at its end.
func linesKept(t *testing.T, before, after string) {
	t.Helper()
	have := map[string]bool{}
	for line := range strings.SplitSeq(after, "\n") {
		have[plainLine(line)] = true
	}
	if !strings.Contains(strings.TrimSpace(before), "\n") {
		return // all in one line
	}
	for line := range strings.SplitSeq(before, "\n") {
		if strings.Contains(line, "_base_url") || strings.Contains(line, "base_url") || strings.Contains(line, "BASE_URL") || strings.Contains(line, "baseURL") ||
			strings.Contains(line, "{}") || strings.Contains(line, "{\"provider\"") {
			continue
		}
		if !have[plainLine(line)] && strings.TrimSpace(line) != "" {
			t.Errorf("the line %q is not there any more in\n%s", line, after)
		}
	}
}

// plainLine is a line without what an edit may add at its end.
func plainLine(line string) string {
	return strings.ReplaceAll(strings.TrimSuffix(line, "\r"), ",", "")
}

// TestUndoByKeyGivesTheSameBytes: without the hashes, undoing by key alone
// gives the same bytes too while nobody else has changed the file.
func TestUndoByKeyGivesTheSameBytes(t *testing.T) {
	eachLife(t, func(t *testing.T, agent, text string) {
		s := withLife(t, agent, text)
		before := tree(t, s.home)
		s.enable(agent, Choices{})
		forgetHashes(t, s, agent)
		s.disable(agent)
		got := tree(t, s.home)
		for name := range got { // folders that were made stay when others might use them
			if _, there := before[name]; !there && strings.HasPrefix(got[name], "d") {
				delete(got, name)
			}
		}
		sameTree(t, got, before)
	})
}

// forgetHashes leaves undoing by key as the only way.
func forgetHashes(t *testing.T, s *stage, agent string) {
	t.Helper()
	r, err := s.load(agent)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Files {
		r.Files[i].ByKey = true
	}
	if err := s.save(r); err != nil {
		t.Fatal(err)
	}
}

// TestUndoAfterTheAgentRewroteItsFile: the agent writes its file anew, two
// spaces deep and env in front, and adds keys of its own. Nothing of agentop's
// may be left, and nothing of the user's may be gone.
func TestUndoAfterTheAgentRewroteItsFile(t *testing.T) {
	for name, text := range lives[claudeCode] {
		t.Run(name, func(t *testing.T) {
			if name == "twice" {
				return // writing anew drops one of the two
			}
			s := withLife(t, claudeCode, text)
			s.enable(claudeCode, Choices{})
			_, data := cutMark([]byte(s.read(settingsFiles[claudeCode])))
			var now map[string]any
			if err := json.Unmarshal(data, &now); err != nil {
				t.Fatal(err)
			}
			now["model"] = "sonnet" // as /model does
			s.write(settingsFiles[claudeCode], rewritten(t, now))
			if u := s.disable(claudeCode); u.Files[0].How != HowKeys {
				t.Errorf("it was %s", u.Files[0].How)
			}
			want := map[string]any{}
			if _, data := cutMark([]byte(text)); text != absent && !blank(data) {
				if err := json.Unmarshal(data, &want); err != nil {
					t.Fatal(err)
				}
			}
			want["model"] = "sonnet"
			got := s.read(settingsFiles[claudeCode])
			if name == "escaped" || name == "open env" { // what was there comes back as it was written
				got = rewritten(t, decoded(t, got))
			}
			if got != rewritten(t, want) {
				t.Errorf("got\n%s\nwant\n%s", got, rewritten(t, want))
			}
		})
	}
}

// rewritten is how Claude Code writes its file: env first.
func rewritten(t *testing.T, tree map[string]any) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	front := struct {
		Env   any `json:"env,omitempty"`
		Style any `json:"outputStyle,omitempty"`
		Perm  any `json:"permissions,omitempty"`
		Theme any `json:"theme,omitempty"`
		X     any `json:"x,omitempty"`
		N     any `json:"n,omitempty"`
		E     any `json:"e,omitempty"`
		Model any `json:"model"`
	}{tree["env"], tree["outputStyle"], tree["permissions"], tree["theme"], tree["x"], tree["n"], tree["e"], tree["model"]}
	if err := e.Encode(front); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}
