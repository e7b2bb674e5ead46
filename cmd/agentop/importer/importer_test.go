package importer

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // what our reader is compared with

	"agentop/router/config"
)

// The providers table is the one of cc-switch 3.x:
// https://github.com/farion1231/cc-switch src-tauri/src/database/schema.rs.
// What stands in settings_config is what cc-switch writes to each agent: its
// presets in src/config/*ProviderPresets.ts and src/config/codexTemplates.ts.
const ccSchema = `CREATE TABLE IF NOT EXISTS providers (
	id TEXT NOT NULL, app_type TEXT NOT NULL, name TEXT NOT NULL, settings_config TEXT NOT NULL,
	website_url TEXT, category TEXT, created_at INTEGER, sort_index INTEGER, notes TEXT, icon TEXT, icon_color TEXT,
	meta TEXT NOT NULL DEFAULT '{}', is_current BOOLEAN NOT NULL DEFAULT 0, in_failover_queue BOOLEAN NOT NULL DEFAULT 0,
	PRIMARY KEY (id, app_type))`

var ccProviders = [][3]string{
	{"claude", "Zhipu GLM", `{"env":{"ANTHROPIC_BASE_URL":"https://open.bigmodel.cn/api/anthropic","ANTHROPIC_AUTH_TOKEN":"sk-fake-glm","ANTHROPIC_MODEL":"glm-5[1m]",` +
		`"ANTHROPIC_DEFAULT_HAIKU_MODEL":"glm-4.5-air","ANTHROPIC_DEFAULT_SONNET_MODEL":"glm-5","ANTHROPIC_DEFAULT_OPUS_MODEL":"glm-5","API_TIMEOUT_MS":"3000000"}}`},
	{"claude", "Claude Official", `{"env":{}}`},
	{"claude", "智谱", `{"env":{"ANTHROPIC_BASE_URL":"https://api.example.cn/anthropic/","ANTHROPIC_API_KEY":"sk-fake-cn"}}`},
	{"claude", "local proxy", `{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:15721","ANTHROPIC_AUTH_TOKEN":"PROXY_MANAGED"}}`},
	{"claude", "broken", `{"env":`},
	{"codex", "PackyCode", `{"auth":{"OPENAI_API_KEY":"sk-fake-packy"},"config":"model_provider = \"packycode\"\nmodel = \"gpt-5-codex\"\n\n[model_providers.packycode]\nname = \"packycode\"\nbase_url = \"https://codex-api.example.com/v1\"\nwire_api = \"responses\"\nrequires_openai_auth = true\n"}`},
	{"codex", "Codex Official", `{"auth":{"OPENAI_API_KEY":null},"config":""}`},
	{"codex", "by variable", `{"auth":{},"config":"model_provider = \"x\"\nmodel = \"glm-5\"\n[model_providers.x]\nbase_url = \"https://x.example.com/v1\"\nenv_key = \"X_KEY\"\n"}`},
	{"gemini", "Gemini", `{"env":{"GEMINI_API_KEY":"sk-fake-gemini"}}`},
	{"opencode", "Zhipu GLM", `{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"https://open.bigmodel.cn/api/paas/v4","apiKey":"{env:GLM_KEY}"},"models":{"glm-5":{"name":"GLM-5"}}}`},
}

// ccHome makes a home directory with a database in it; wal leaves what was
// written in the write-ahead log, as a running cc-switch does.
func ccHome(t *testing.T, wal bool) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".cc-switch"), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(home, ".cc-switch", "cc-switch.db"))
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	if wal {
		exec("PRAGMA journal_mode=WAL")
		exec("PRAGMA wal_autocheckpoint=0")
		t.Cleanup(func() { _ = db.Close() })
	}
	exec(ccSchema)
	for i, p := range ccProviders {
		exec("INSERT INTO providers (id, app_type, name, settings_config, sort_index) VALUES (?, ?, ?, ?, ?)", fmt.Sprint(i), p[0], p[1], p[2], i)
	}
	if !wal {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// shown is what a test compares: everything but the key's own text.
type shown struct {
	From, Name, URL, Key string
	StripV1              bool
	Rename               []config.Rename
}

func show(list []Server) []shown {
	var out []shown
	for _, s := range list {
		out = append(out, shown{s.From, s.Name, s.URL, s.Key.String(), s.StripV1, s.Rename})
	}
	return out
}

var ccWant = []shown{
	{"Zhipu GLM", "zhipu-glm", "https://open.bigmodel.cn/api/anthropic", "stored", false, []config.Rename{{Glob: "claude-*haiku*", Name: "glm-4.5-air"}, {Glob: "claude-*", Name: "glm-5"}}},
	{"智谱", "example.cn", "https://api.example.cn/anthropic", "stored", false, nil},
	{"PackyCode", "packycode", "https://codex-api.example.com/v1", "stored", false, nil},
	{"by variable", "by-variable", "https://x.example.com/v1", "env:X_KEY", false, []config.Rename{{Glob: "gpt-*", Name: "glm-5"}}},
	{"Zhipu GLM", "zhipu-glm-2", "https://open.bigmodel.cn/api/paas/v4", "env:GLM_KEY", true, nil},
}

func TestReadCCSwitch(t *testing.T) {
	for _, wal := range []bool{false, true} {
		home := ccHome(t, wal)
		before := listing(t, home)
		f, err := Read(CCSwitch, home, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(f.Servers); !reflect.DeepEqual(got, ccWant) {
			t.Errorf("wal %v: servers\n%+v, want\n%+v", wal, got, ccWant)
		}
		if got := f.Servers[0].Secret.Reveal(); got != "sk-fake-glm" {
			t.Errorf("wal %v: the first key is %q", wal, got)
		}
		want := []Skipped{
			{"Claude Official", "it has no address of its own: it is the agent's own upstream"},
			{"local proxy", "its address is cc-switch's own proxy"}, {"broken", "its settings cannot be read"},
			{"Codex Official", "it has no address of its own: it is the agent's own upstream"},
			{"Gemini", "it is for gemini, which agentop does not serve"},
		}
		if !reflect.DeepEqual(f.Skipped, want) {
			t.Errorf("wal %v: skipped\n%+v, want\n%+v", wal, f.Skipped, want)
		}
		if after := listing(t, home); after != before {
			t.Errorf("wal %v: the other tool's folder was changed:\n%s\nwas\n%s", wal, after, before)
		}
		if text := fmt.Sprintf("%v %+v %#v", f, f, f); strings.Contains(text, "sk-fake") {
			t.Errorf("a key prints: %s", text)
		}
	}
}

// TestReadOldCCSwitch reads the file of cc-switch before 3.7, by the README of
// its version 2 (version, claude and codex with providers and current).
func TestReadOldCCSwitch(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".cc-switch", "config.json"), `{"version":2,"claude":{"current":"a","providers":{"a":{"id":"a","name":"Zhipu GLM","settingsConfig":`+
		ccProviders[0][2]+`}}},"codex":{"providers":{"b":{"id":"b","name":"PackyCode","settingsConfig":`+ccProviders[5][2]+`}},"current":""}}`)
	f, err := Read(CCSwitch, home, "", []string{"packycode"})
	if err != nil {
		t.Fatal(err)
	}
	want := []shown{ccWant[0], ccWant[2]}
	want[1].Name = "packycode-2" // the name is in use
	if got := show(f.Servers); !reflect.DeepEqual(got, want) {
		t.Errorf("servers\n%+v, want\n%+v", got, want)
	}
}

// ccrConfig follows the README of https://github.com/musistudio/claude-code-router.
const ccrConfig = `{
  "APIKEY": "sk-fake-own", "LOG": true,
  "Providers": [
    {"name": "openrouter", "api_base_url": "https://openrouter.ai/api/v1/chat/completions", "api_key": "$OPENROUTER_API_KEY", "models": ["anthropic/claude-sonnet-4"], "transformer": {"use": ["openrouter"]}},
    {"name": "deepseek", "api_base_url": "https://api.deepseek.com/chat/completions", "api_key": "sk-fake-deepseek", "models": ["deepseek-chat", "deepseek-reasoner"], "transformer": {"use": ["deepseek"], "deepseek-chat": {"use": ["tooluse"]}}},
    {"name": "ollama", "api_base_url": "http://localhost:11434/v1/chat/completions", "api_key": "ollama", "models": ["qwen2.5-coder:latest"]},
    {"name": "gemini", "api_base_url": "https://generativelanguage.googleapis.com/v1beta/models/", "api_key": "sk-fake-gemini", "models": ["gemini-2.5-flash"], "transformer": {"use": ["gemini"]}},
    {"name": "volcengine", "api_base_url": "https://ark.cn-beijing.volces.com/api/v3/chat/completions", "api_key": "${ARK_KEY}", "models": ["deepseek-v3"]},
    {"name": "direct", "api_base_url": "https://api.example.com/v1/messages", "api_key": "", "models": [], "transformer": {"use": ["Anthropic"]}},
    {"name": "bad", "api_base_url": "ftp://x", "api_key": "sk-fake-bad"},
    {"name": "empty"}
  ],
  "Router": {"default": "deepseek,deepseek-chat", "background": "ollama,qwen2.5-coder:latest", "think": "deepseek,deepseek-reasoner", "longContextThreshold": 60000}
}`

func TestReadCCR(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".claude-code-router", "config.json"), ccrConfig)
	before := listing(t, home)
	f, err := Read(CCR, home, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []shown{
		{"openrouter", "openrouter", "https://openrouter.ai/api/v1", "env:OPENROUTER_API_KEY", false, nil},
		{"deepseek", "deepseek", "https://api.deepseek.com", "stored", true, []config.Rename{{Glob: "claude-*", Name: "deepseek-chat"}}},
		{"ollama", "ollama", "http://localhost:11434/v1", "stored", false, []config.Rename{{Glob: "claude-*haiku*", Name: "qwen2.5-coder:latest"}}},
		{"volcengine", "volcengine", "https://ark.cn-beijing.volces.com/api/v3", "env:ARK_KEY", true, nil},
		{"direct", "direct", "https://api.example.com/v1", "none", false, nil},
	}
	if got := show(f.Servers); !reflect.DeepEqual(got, want) {
		t.Errorf("servers\n%+v, want\n%+v", got, want)
	}
	// Each address leads where claude-code-router sent its requests.
	for _, s := range f.Servers[:4] {
		joined := config.JoinURL(s.URL, "/v1/chat/completions", "", s.StripV1)
		if !strings.Contains(ccrConfig, `"`+joined+`"`) {
			t.Errorf("%s would be asked at %s", s.Name, joined)
		}
	}
	var names []string
	for _, s := range f.Skipped {
		names = append(names, s.Name)
	}
	if fmt.Sprint(names) != "[gemini empty bad]" {
		t.Errorf("skipped %+v", f.Skipped)
	}
	if after := listing(t, home); after != before {
		t.Errorf("the other tool's folder was changed:\n%s\nwas\n%s", after, before)
	}
	if text := fmt.Sprintf("%v %+v %#v", f, f, f); strings.Contains(text, "sk-fake") {
		t.Errorf("a key prints: %s", text)
	}
}

func TestReadWhatIsNotThere(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "no.db"), "this is no database, sk-fake-key")
	write(t, filepath.Join(home, "no.json"), `{"Providers":[{"api_key":"sk-fake-key"]}`)
	for _, c := range []struct{ tool, file string }{
		{CCSwitch, ""}, {CCR, ""}, {CCSwitch, filepath.Join(home, "no.db")}, {CCSwitch, filepath.Join(home, "no.json")},
		{CCR, filepath.Join(home, "no.json")}, {"other", ""},
	} {
		_, err := Read(c.tool, home, c.file, nil)
		if err == nil || strings.Contains(err.Error(), "sk-fake") {
			t.Errorf("%s %s: error %v, want one without a key", c.tool, c.file, err)
		}
	}
}

// usable holds what Read promises of what it gives: servers that config.yaml
// takes, each with a name of its own, and no key in any text.
func usable(t *testing.T, found Found, err error) {
	t.Helper()
	if err != nil && len(found.Servers) > 0 {
		t.Errorf("%d servers beside the error %v", len(found.Servers), err)
	}
	names := map[string]bool{"taken": true}
	texts := fmt.Sprint(err)
	var keys []string
	for _, skipped := range found.Skipped {
		texts += "\n" + skipped.Why
	}
	for _, s := range found.Servers {
		if _, err := config.CheckServer(s.Server); err != nil {
			t.Errorf("%+v is no server: %v", s.Server, err)
		}
		if names[s.Name] {
			t.Errorf("the name %q is given twice", s.Name)
		}
		names[s.Name] = true
		texts += "\n" + strings.Join(s.Notes, "\n") + fmt.Sprintf("%+v", s.Server)
		if key := s.Secret.Reveal(); strings.HasPrefix(key, "sk-fake-") && len(key) >= minKey {
			keys = append(keys, key)
		}
		if (s.Key.Kind == config.KeyStored) == s.Secret.IsZero() {
			t.Errorf("%s: key %s, and a secret: %v", s.Name, s.Key, !s.Secret.IsZero())
		}
	}
	for _, key := range keys {
		if strings.Contains(texts, key) {
			t.Errorf("the key %s stands in %s", key, texts)
		}
	}
}

// fuzzFile fuzzes a whole file of a tool.
func fuzzFile(f *testing.F, tool, name string) {
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Read(tool, "", path, []string{"taken"})
		usable(t, found, err)
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, data) {
			t.Errorf("the file was changed: %v", err)
		}
	})
}

func FuzzReadCCR(f *testing.F) {
	f.Add([]byte(ccrConfig))
	f.Add([]byte(`{"Providers":[{"name":"\u0000","api_base_url":"http://h","api_key":"$"}]}`))
	f.Add([]byte(`{"Providers":[{"name":"taken","api_base_url":"http://h/x/chat/completions","api_key":"sk-fake-0123456789"},{"name":"taken","api_base_url":"http://h?key=sk-fake-0123456789","api_key":"sk-fake-0123456789"}]}`))
	fuzzFile(f, CCR, "config.json")
}

func FuzzReadOldCCSwitch(f *testing.F) {
	var old strings.Builder
	for i, p := range ccProviders {
		if p[1] != "broken" {
			fmt.Fprintf(&old, `,%q:{"providers":{"%d":{"name":%q,"settingsConfig":%s}}}`, p[0], i, p[1], p[2])
		}
	}
	f.Add([]byte("{" + old.String()[1:] + "}"))
	f.Add([]byte(`{"claude":{"providers":{"1":{"name":"x","settingsConfig":{"env":{"ANTHROPIC_BASE_URL":"http://h","ANTHROPIC_API_KEY":"sk-fake-0123456789"}}}}}}`))
	fuzzFile(f, CCSwitch, "config.json")
}

// FuzzReadCCSwitch damages a database: SQLite's own pages, and what stands in
// them.
func FuzzReadCCSwitch(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		f.Fatal(err)
	}
	for _, query := range []string{"PRAGMA page_size=512", ccSchema,
		`INSERT INTO providers (id, app_type, name, settings_config) VALUES ('1', 'claude', 'GLM', '{"env":{"ANTHROPIC_BASE_URL":"http://h","ANTHROPIC_API_KEY":"sk-fake-0123456789"}}')`,
		`INSERT INTO providers (id, app_type, name, settings_config) VALUES ('2', 'codex', 'GLM', '{"auth":{"OPENAI_API_KEY":"sk-fake-0123456789"},"config":"model_provider=\"x\"\n[model_providers.x]\nbase_url=\"http://h\""}')`,
	} {
		if _, err := db.Exec(query); err != nil {
			f.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte("SQLite format 3\x00"))
	fuzzFile(f, CCSwitch, "cc-switch.db")
}

// FuzzProvider reads one provider's settings, as each agent has them.
func FuzzProvider(f *testing.F) {
	for _, p := range ccProviders {
		f.Add(p[0], p[1], p[2])
	}
	f.Add("opencode", "x", `{"options":{"baseURL":" http://h/v1/messages/ ","apiKey":"{env:"}}`)
	f.Fuzz(func(t *testing.T, app, name, settings string) {
		var found Found
		if s, why := (ccRow{app, name, settings}).server(); why == "" {
			found.Servers = append(found.Servers, s)
		} else {
			found.Skipped = append(found.Skipped, Skipped{name, why})
		}
		found.settle([]string{"taken"})
		usable(t, found, nil)
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listing is every file under dir with its size, time and content.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", data)
		}
		fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
