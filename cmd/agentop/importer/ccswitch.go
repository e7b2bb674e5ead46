package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"agentop/router/config"
)

// ccRow is one provider of cc-switch.
type ccRow struct {
	app      string // claude, codex, opencode, gemini, ...
	name     string
	settings string // JSON, by app
}

func readCCSwitch(home, file string) (Found, error) {
	if file == "" {
		file = under(home, ".cc-switch", "cc-switch.db")
		old := under(home, ".cc-switch", "config.json") // before it had a database
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Stat(old); err == nil {
				file = old
			}
		}
	}
	f := Found{File: file}
	rows, err := ccRows(file)
	if err != nil {
		return f, err
	}
	for _, row := range rows {
		s, why := row.server()
		if why != "" {
			f.Skipped = append(f.Skipped, Skipped{row.name, why})
			continue
		}
		f.Servers = append(f.Servers, s)
	}
	return f, nil
}

func ccRows(file string) ([]ccRow, error) {
	if strings.HasSuffix(file, ".json") {
		return ccOldRows(file)
	}
	return ccDatabase(file)
}

// ccDatabase reads the providers out of the database, in cc-switch's order.
// cc-switch may be running: nothing is written, and what it has not yet put
// into the database stands in the write-ahead log.
func ccDatabase(file string) ([]ccRow, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the database of cc-switch: %w", err)
	}
	wal, err := readFile(file + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the database of cc-switch: %w", err)
	}
	rows, err := ccSelect(data, wal)
	if err != nil {
		return nil, fmt.Errorf("%q is not a database of cc-switch as agentop knows it: %w", file, err)
	}
	return rows, nil
}

func ccSelect(data, wal []byte) ([]ccRow, error) {
	db, err := openDatabase(data, wal)
	if err != nil {
		return nil, err
	}
	root, columns, err := db.columnsOf("providers")
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, name := range []string{"app_type", "name", "settings_config", "sort_index", "created_at", "id"} {
		if at[name] = slices.Index(columns, name); at[name] < 0 {
			return nil, fmt.Errorf("its table of providers has no column %q", name)
		}
	}
	var found [][]value
	err = db.table(root, func(row []value) error {
		for len(row) < len(columns) {
			row = append(row, value{}) // the column was added after the row
		}
		if sort := &row[at["sort_index"]]; sort.kind == isNull {
			*sort = value{kind: isNumber, number: 999999}
		}
		found = append(found, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b []value) int {
		for _, name := range []string{"app_type", "sort_index", "created_at", "id"} {
			if c := a[at[name]].compare(b[at[name]]); c != 0 {
				return c
			}
		}
		return 0
	})
	rows := make([]ccRow, len(found))
	for i, row := range found {
		rows[i] = ccRow{row[at["app_type"]].text, row[at["name"]].text, row[at["settings_config"]].text}
	}
	return rows, nil
}

// ccOldRows reads the file that cc-switch had before its database.
func ccOldRows(file string) ([]ccRow, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of cc-switch: %w", err)
	}
	var apps map[string]json.RawMessage
	if err := json.Unmarshal(data, &apps); err != nil {
		return nil, fmt.Errorf("%q is not a configuration of cc-switch: %w", file, noText(err))
	}
	var rows []ccRow
	for _, app := range []string{"claude", "codex", "opencode", "gemini"} {
		var list struct {
			Providers map[string]struct {
				Name     string          `json:"name"`
				Settings json.RawMessage `json:"settingsConfig"`
			} `json:"providers"`
		}
		if json.Unmarshal(apps[app], &list) != nil {
			continue
		}
		for _, id := range sortedKeys(list.Providers) {
			p := list.Providers[id]
			rows = append(rows, ccRow{app, p.Name, string(p.Settings)})
		}
	}
	return rows, nil
}

// server makes a server of a provider; why says why there is none.
func (r ccRow) server() (s Server, why string) {
	s.From = r.name
	switch r.app {
	case "claude":
		why = s.fromClaude(r.settings)
	case "codex":
		why = s.fromCodex(r.settings)
	case "opencode":
		why = s.fromOpenCode(r.settings)
	default:
		why = "it is for " + r.app + ", which agentop does not serve"
	}
	if why == "" && s.URL == "" {
		why = "it has no address of its own: it is the agent's own upstream"
	}
	if strings.HasPrefix(s.URL, "http://127.0.0.1:15721") || strings.HasPrefix(s.URL, "http://localhost:15721") {
		why = "its address is cc-switch's own proxy"
	}
	return s, why
}

// fromClaude reads the settings of Claude Code that cc-switch would write.
func (s *Server) fromClaude(settings string) string {
	var q struct {
		Env map[string]any `json:"env"`
	}
	if err := json.Unmarshal([]byte(settings), &q); err != nil {
		return "its settings cannot be read"
	}
	get := func(names ...string) string {
		for _, name := range names {
			if text, ok := q.Env[name].(string); ok && text != "" {
				return text
			}
		}
		return ""
	}
	s.setURL(get("ANTHROPIC_BASE_URL"))
	s.setKey(get("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"))
	// [1m] is a word to the client, and no part of the name that it sends.
	model := func(names ...string) string { return strings.TrimSuffix(get(names...), "[1m]") }
	main := model("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL")
	for _, line := range []config.Rename{
		{Glob: "claude-*haiku*", Name: model("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL")},
		{Glob: "claude-*sonnet*", Name: model("ANTHROPIC_DEFAULT_SONNET_MODEL")},
		{Glob: "claude-*opus*", Name: model("ANTHROPIC_DEFAULT_OPUS_MODEL")},
		{Glob: "claude-*", Name: main},
	} {
		if line.Name != "" && (line.Name != main || line.Glob == "claude-*") && !strings.HasPrefix(line.Name, "claude-") {
			s.Rename = append(s.Rename, line)
		}
	}
	return ""
}

// fromCodex reads what cc-switch would write to Codex's auth.json and
// config.toml.
func (s *Server) fromCodex(settings string) string {
	var q struct {
		Auth   map[string]any `json:"auth"`
		Config string         `json:"config"`
	}
	if err := json.Unmarshal([]byte(settings), &q); err != nil {
		return "its settings cannot be read"
	}
	var c struct {
		Provider  string `toml:"model_provider"`
		Model     string `toml:"model"`
		Providers map[string]struct {
			BaseURL string `toml:"base_url"`
			EnvKey  string `toml:"env_key"`
			WireAPI string `toml:"wire_api"`
		} `toml:"model_providers"`
	}
	if err := toml.Unmarshal([]byte(q.Config), &c); err != nil {
		return "its config.toml cannot be read"
	}
	p := c.Providers[c.Provider]
	s.setBase(p.BaseURL)
	key, _ := q.Auth["OPENAI_API_KEY"].(string)
	if key == "" && p.EnvKey != "" {
		key = "$" + p.EnvKey
	}
	s.setKey(key)
	if c.Model != "" && !strings.HasPrefix(c.Model, "gpt-") {
		s.Rename = append(s.Rename, config.Rename{Glob: "gpt-*", Name: c.Model})
	}
	return ""
}

// fromOpenCode reads a provider of OpenCode's configuration.
func (s *Server) fromOpenCode(settings string) string {
	var q struct {
		Options struct {
			BaseURL string `json:"baseURL"`
			APIKey  string `json:"apiKey"`
		} `json:"options"`
	}
	if err := json.Unmarshal([]byte(settings), &q); err != nil {
		return "its settings cannot be read"
	}
	s.setBase(q.Options.BaseURL)
	key := q.Options.APIKey
	if name, found := strings.CutPrefix(key, "{env:"); found { // OpenCode's way to name a variable
		key = "$" + strings.TrimSuffix(name, "}")
	}
	s.setKey(key)
	return ""
}
