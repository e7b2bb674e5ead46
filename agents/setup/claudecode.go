package setup

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Claude Code reads settings.json, strict JSON, and takes what stands under
// "env" over what the shell exports. It sends whatever credential the user
// has to ANTHROPIC_BASE_URL, so nothing but addresses is ever written here.

var (
	claudePath = []string{"env", "ANTHROPIC_BASE_URL"}
	hintPath   = []string{"env", "CLAUDE_CODE_GATEWAY_HINT_HEADERS"}
	searchPath = []string{"env", "ENABLE_TOOL_SEARCH"}
	haikuPath  = []string{"env", "ANTHROPIC_DEFAULT_HAIKU_MODEL"}
	noProxy    = []string{"env", "no_proxy"}
)

const (
	claudeBase = "ANTHROPIC_BASE_URL"
	hintOn     = "1"
	shellFrom  = "your shell's environment"
)

// claudeElsewhere are the variables that make Claude Code ignore
// ANTHROPIC_BASE_URL.
var claudeElsewhere = []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
	"CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST"}

func (w World) claudeFile() string {
	return filepath.Join(w.dir("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")
}

func (s *Setup) planClaude(p *Plan) error {
	tree, err := p.read(s.World.claudeFile(), strictJSON)
	if err != nil {
		return claudeSyntax(err)
	}
	for _, o := range s.World.claudeOver() {
		if o.Managed {
			return fmt.Errorf("%w: %s sets %s", ErrStronger, o.Where, claudeBase)
		}
		p.Warnings = append(p.Warnings, o.String())
	}
	p.Notes = append(p.Notes, duplicates(p.before.data, claudePath)...)
	for _, name := range claudeElsewhere {
		if s.World.getenv(name) != "" || text(tree, "env", name) != "" {
			p.Warnings = append(p.Warnings, name+" is set: Claude Code then does not use "+claudeBase)
		}
	}
	before, adopted := s.claudeBefore(tree)
	if adopted != nil {
		p.Upstreams = append(p.Upstreams, *adopted)
	}
	p.want(claudePath, s.Proxy.Base()+"/"+claudeCode)
	if text(tree, hintPath...) == "" {
		p.want(hintPath, hintOn)
	}
	s.claudeExtras(p, tree, before)
	s.claudeProxy(p, tree)
	return nil
}

// claudeSyntax says what a file that does not parse means.
func claudeSyntax(err error) error {
	var bad *SyntaxError
	if asSyntax(err, &bad) {
		bad.Reason += " (Claude Code skips the whole file; correct it first)"
	}
	return err
}

// claudeBefore is where Claude Code goes without agentop: the address, and the
// upstream to take over if it is not the usual one.
func (s *Setup) claudeBefore(tree map[string]any) (string, *Upstream) {
	value, set := lookUp(tree, claudePath...)
	inFile, _ := value.(string)
	switch {
	case inFile != "" && !s.Proxy.ours(claudeCode, inFile):
		return inFile, s.upstream("", inFile, "settings.json")
	case set: // enabled already, or "", which means the default whatever the shell says
		return "", nil
	}
	shell := s.World.getenv(claudeBase)
	if shell == "" || s.Proxy.ours(claudeCode, shell) {
		return "", nil
	}
	return shell, s.upstream("", shell, shellFrom)
}

// upstream is an address to take over.
func (s *Setup) upstream(provider, address, from string) *Upstream {
	_, local := loopback(address)
	return &Upstream{Provider: provider, Address: strings.TrimSpace(address), From: from, Router: local}
}

// claudeExtras gives back what Claude Code leaves out behind an address that
// is not Anthropic's, where a setting can.
func (s *Setup) claudeExtras(p *Plan, tree map[string]any, before string) {
	o := p.choices
	_, inFile := lookUp(tree, searchPath...)
	free := !inFile && s.World.getenv("ENABLE_TOOL_SEARCH") == ""
	anthropic := (before == "" || isAnthropic(before)) && !o.NoUpstream
	// What was offered when it was enabled first is not offered again.
	again := s.Proxy.ours(claudeCode, text(tree, claudePath...))
	switch {
	case !free, again && o.ToolSearch == nil:
	case o.ToolSearch != nil && *o.ToolSearch, o.ToolSearch == nil && anthropic && !o.Routed:
		p.want(searchPath, "true")
		p.Notes = append(p.Notes, "ENABLE_TOOL_SEARCH=true keeps tool search on, which Claude Code (up to 2.1.197 at least) turns off behind another address than Anthropic's; --tool-search=false leaves it out")
	case o.ToolSearch == nil && anthropic:
		p.Notes = append(p.Notes, "tool search: up to 2.1.197 at least, Claude Code turns it off here; --tool-search turns it on, if the server takes Anthropic's tool search blocks")
	}
	if o.Haiku != "" {
		p.want(haikuPath, o.Haiku)
		p.Notes = append(p.Notes, "ANTHROPIC_DEFAULT_HAIKU_MODEL pins the small model: change it when a newer one comes")
	}
	if o.NoUpstream && !s.claudeCredential(tree) {
		p.Notes = append(p.Notes, `without any credential Claude Code asks nobody: log in, or put "ANTHROPIC_AUTH_TOKEN": "none" under env yourself`)
	}
}

// claudeCredential says whether some credential is set where it can be seen
// without reading one.
func (s *Setup) claudeCredential(tree map[string]any) bool {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if s.World.getenv(name) != "" || text(tree, "env", name) != "" {
			return true
		}
	}
	return text(tree, "apiKeyHelper") != "" || exists(filepath.Join(filepath.Dir(s.World.claudeFile()), ".credentials.json"))
}

func isAnthropic(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "api.anthropic.com" || strings.HasSuffix(u.Hostname(), ".anthropic.com"))
}

// claudeProxy keeps loopback out of an HTTP proxy: Claude Code would send it
// there, credential included.
func (s *Setup) claudeProxy(p *Plan, tree map[string]any) {
	variable := s.World.proxyVariable(tree, "http_proxy", "https_proxy", "all_proxy")
	if variable == "" {
		return
	}
	list := firstOf(text(tree, noProxy...), text(tree, "env", "NO_PROXY"), s.World.getenv("no_proxy"), s.World.getenv("NO_PROXY"))
	full := WithLoopback(list)
	if full == list {
		return
	}
	p.want(noProxy, full)
	p.Notes = append(p.Notes, variable+" is set: no_proxy keeps Claude Code from sending agentop's address there")
}

// loopbackNames must each be in a no_proxy list: Claude Code knows no ranges.
var loopbackNames = []string{"127.0.0.1", "localhost", "::1"}

// WithLoopback adds the names of this machine that a no_proxy list lacks.
func WithLoopback(list string) string {
	if strings.TrimSpace(list) == "*" {
		return list
	}
	parts := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range loopbackNames {
		if slices.Contains(parts, name) {
			continue
		}
		if list != "" {
			list += ","
		}
		list += name
	}
	return list
}

// proxyVariable names the proxy variable that is in force, in either spelling,
// in the environment or in a file's env; "" for none.
func (w World) proxyVariable(tree map[string]any, names ...string) string {
	for _, name := range names {
		for _, n := range []string{name, strings.ToUpper(name)} {
			if w.getenv(n) != "" || text(tree, "env", n) != "" {
				return n
			}
		}
	}
	return ""
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// want adds a key to the plan.
func (p *Plan) want(path []string, value string) {
	p.wants = append(p.wants, want{path, value})
	if slices.Equal(path, claudePath) || p.Agent != claudeCode {
		p.Moved = append(p.Moved, dotted(path))
	}
}

// claudeOver lists the settings that win over the user's file.
func (w World) claudeOver() []Override {
	managed := "/etc/claude-code"
	if w.os() == "darwin" {
		managed = "/Library/Application Support/ClaudeCode"
	}
	managed = filepath.Join(w.Root, managed)
	var found []Override
	drops, _ := filepath.Glob(filepath.Join(escapeGlob(managed), "managed-settings.d", "*.json"))
	for _, name := range append([]string{filepath.Join(managed, "managed-settings.json")}, drops...) {
		if address := readText(name, strictJSON, claudePath...); address != "" {
			found = append(found, Override{Where: name, Key: dotted(claudePath), Value: address, Managed: true})
		}
	}
	if w.Work == "" {
		return found
	}
	for _, name := range []string{"settings.local.json", "settings.json"} {
		file := filepath.Join(w.Work, ".claude", name)
		if file == w.claudeFile() {
			continue
		}
		if address := readText(file, strictJSON, claudePath...); address != "" {
			found = append(found, Override{Where: file, Key: dotted(claudePath), Value: address})
		}
	}
	return found
}
