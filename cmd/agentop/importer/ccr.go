package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentop/router/config"
)

// ccrFile is claude-code-router's config.json, as its README describes it.
type ccrFile struct {
	Providers []struct {
		Name        string          `json:"name"`
		APIBaseURL  string          `json:"api_base_url"`
		APIKey      string          `json:"api_key"`
		Models      []string        `json:"models"`
		Transformer json.RawMessage `json:"transformer"`
	} `json:"Providers"`
	Router struct {
		Default    string `json:"default"`    // "provider,model"
		Background string `json:"background"` // the same
	} `json:"Router"`
}

func readCCR(home, file string) (Found, error) {
	if file == "" {
		file = under(home, ".claude-code-router", "config.json")
	}
	f := Found{File: file}
	data, err := readFile(file)
	if err != nil {
		return f, fmt.Errorf("read the configuration of claude-code-router: %w", err)
	}
	var c ccrFile
	if err := json.Unmarshal(data, &c); err != nil {
		return f, fmt.Errorf("%q is not a configuration of claude-code-router as its README has it: %w", file, noText(err))
	}
	for _, p := range c.Providers {
		s := Server{From: p.Name}
		switch {
		case p.APIBaseURL == "":
			f.Skipped = append(f.Skipped, Skipped{p.Name, "it has no api_base_url"})
			continue
		case strings.Contains(string(p.Transformer), `"gemini"`) || strings.Contains(string(p.Transformer), `"vertex-gemini"`):
			f.Skipped = append(f.Skipped, Skipped{p.Name, "it speaks Google's own API, which agentop does not carry"})
			continue
		}
		s.setURL(p.APIBaseURL)
		s.setKey(p.APIKey)
		s.Rename = c.rename(p.Name)
		if strings.HasSuffix(strings.TrimRight(p.APIBaseURL, "/"), "/chat/completions") {
			s.Notes = append(s.Notes, "claude-code-router translates Claude Code's requests for it, agentop does not: `agentop server test` shows which formats it speaks itself")
		}
		f.Servers = append(f.Servers, s)
	}
	return f, nil
}

// rename gives the lines that send to a provider what claude-code-router sent
// there.
func (c *ccrFile) rename(provider string) []config.Rename {
	var lines []config.Rename
	if name, model, found := strings.Cut(c.Router.Background, ","); found && name == provider {
		lines = append(lines, config.Rename{Glob: "claude-*haiku*", Name: strings.TrimSpace(model)})
	}
	if name, model, found := strings.Cut(c.Router.Default, ","); found && name == provider {
		lines = append(lines, config.Rename{Glob: "claude-*", Name: strings.TrimSpace(model)})
	}
	return lines
}

// noText is an error of package json without what it quotes of the file, which
// holds keys.
func noText(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("it is no JSON at byte %d", syntax.Offset)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s is not a %s", kind.Field, kind.Type)
	}
	return errors.New("it is no JSON")
}
