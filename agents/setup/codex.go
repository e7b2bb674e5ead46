package setup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Codex reads config.toml. Only the top-level openai_base_url is set: a thread
// keeps the id of its provider, so a provider of agentop's own would hide old
// threads, and strand new ones once it is gone. Who runs a provider of his own
// gets that one's base_url changed, and no other key.

var codexPath = []string{"openai_base_url"}

// codexBuiltIn are providers of Codex that have no base_url to change.
var codexBuiltIn = []string{"oss", "ollama", "lmstudio", "amazon-bedrock", "azure"}

func (w World) codexDir() string  { return w.dir("CODEX_HOME", ".codex") }
func (w World) codexFile() string { return filepath.Join(w.codexDir(), "config.toml") }

func (s *Setup) planCodex(p *Plan) error {
	tree, err := p.read(s.World.codexFile(), tomlSyntax)
	if err != nil {
		return err
	}
	path, err := codexKey(tree)
	if err != nil {
		return err
	}
	value, there := lookUp(tree, path...)
	before, isText := value.(string)
	if there && !isText {
		return fmt.Errorf("%s is not a string", dotted(path))
	}
	if before != "" && !s.Proxy.ours(codex, before) {
		p.Upstreams = append(p.Upstreams, *s.upstream("", before, "config.toml"))
	}
	p.want(path, s.Proxy.baseLike("/"+codex, before, true))
	for _, o := range s.World.codexOver() {
		p.Warnings = append(p.Warnings, o.String())
	}
	if shell := s.World.getenv("OPENAI_BASE_URL"); shell != "" && !s.Proxy.ours(codex, shell) {
		p.Notes = append(p.Notes, "OPENAI_BASE_URL is exported; Codex ignores it, so it is not taken over")
	}
	s.codexProxy(p)
	return nil
}

// codexProxy keeps requests to agentop off a proxy that a variable names, by a
// line in the file of variables that Codex loads. Where that cannot be edited
// the line is named.
func (s *Setup) codexProxy(p *Plan) {
	caught := s.World.caught(codex, s.codexEnv())
	if len(caught) == 0 {
		return
	}
	also := &Plan{Agent: codex}
	tree, err := also.read(s.codexEnv(), envSyntax)
	if err != nil {
		p.Warnings = append(p.Warnings, caught...)
		return
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		list := firstOf(text(tree, name), s.World.getenv(name))
		if list == "" && (name == "no_proxy" || len(also.wants) > 0) {
			continue // the other one is set, or is to be
		}
		value := WithLoopback(list)
		if !plainValue().MatchString(value) {
			p.Warnings = append(p.Warnings, caught...)
			return
		}
		also.want([]string{name}, value)
	}
	p.also, p.Moved = also, append(p.Moved, also.Moved...)
	p.Notes = append(p.Notes, "a proxy is set that would catch requests to agentop, credential included: "+s.codexEnv()+" keeps them off it")
}

// codexKey is the key that decides where Codex goes.
func codexKey(tree map[string]any) ([]string, error) {
	provider := text(tree, "model_provider")
	if provider == "" || provider == "openai" {
		return codexPath, nil
	}
	if _, own := lookUp(tree, "model_providers", provider); own {
		return []string{"model_providers", provider, "base_url"}, nil
	}
	if slices.Contains(codexBuiltIn, provider) {
		return nil, fmt.Errorf("%w: model_provider is %q, which Codex reaches in its own way", ErrNothing, provider)
	}
	return nil, fmt.Errorf("%w: model_provider is %q, and there is no [model_providers.%s]", ErrNothing, provider, provider)
}

// codexOver lists the settings that win over config.toml: profiles, and only
// when Codex is started with them.
func (w World) codexOver() []Override {
	var found []Override
	profiles, _ := filepath.Glob(filepath.Join(escapeGlob(w.codexDir()), "*.config.toml"))
	for _, name := range profiles {
		if address := readText(name, tomlSyntax, codexPath...); address != "" {
			profile := strings.TrimSuffix(filepath.Base(name), ".config.toml")
			found = append(found, Override{Where: name, Key: dotted(codexPath), Value: address, When: "with --profile " + profile})
		}
	}
	return found
}

// caught says which proxy variable would catch an agent's requests to
// agentop. envFile may hold variables too; "" = none.
func (w World) caught(agent, envFile string) []string {
	env := readEnvFile(envFile)
	get := func(name string) string { return firstOf(env[name], w.getenv(name)) }
	names := []string{"http_proxy", "HTTP_PROXY"}
	if agent == codex {
		names = append(names, "all_proxy", "ALL_PROXY")
	}
	for _, name := range names {
		if get(name) == "" {
			continue
		}
		list := firstOf(get("no_proxy"), get("NO_PROXY"))
		if WithLoopback(list) == list {
			return nil
		}
		return []string{fmt.Sprintf("%s is set, and would catch requests to agentop, credential included: put NO_PROXY=%s where %s is set", name, WithLoopback(list), name)}
	}
	return nil
}
