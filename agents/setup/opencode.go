package setup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// OpenCode reads up to three global files, JSON with comments, the later
// winning key by key. Each provider has its own base URL, so each has its own
// path here. openai's has no /v1: with a ChatGPT login OpenCode sends what has
// one around it.

func (w World) openCodeDir() string {
	return filepath.Join(w.dir("XDG_CONFIG_HOME", ".config"), "opencode")
}

// openCodeFiles are the global files, the weakest first.
func (w World) openCodeFiles() []string {
	dir := w.openCodeDir()
	return []string{filepath.Join(dir, "config.json"), filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
}

// openCodeFile is the strongest global file that is there: an edit in a weaker
// one could be overridden.
func (w World) openCodeFile() string {
	files := w.openCodeFiles()
	for i := len(files) - 1; i >= 0; i-- {
		if exists(files[i]) {
			return files[i]
		}
	}
	return files[1]
}

const openCodeSeed = "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n"

// dialect is the API format that a provider's package speaks.
type dialect int

const (
	foreign    dialect = iota // none of the three, or not known
	messages                  // Anthropic's
	responses                 // OpenAI's newer
	compatible                // OpenAI's older, which others speak too
)

// openCodeOwn are built-in providers with packages of their own.
var openCodeOwn = []string{"opencode", "github-copilot", "amazon-bedrock", "azure", "azure-cognitive-services", "google", "google-vertex",
	"google-vertex-anthropic", "gitlab", "cohere", "mistral", "xai", "groq", "perplexity", "vercel", "sap-ai-core", "openrouter",
	"cerebras", "togetherai", "deepinfra", "v0", "cloudflare-workers-ai", "cloudflare-ai-gateway"}

// dialectOf tells from a provider's id and settings what it speaks.
func dialectOf(id string, settings map[string]any) dialect {
	switch text(settings, "npm") {
	case "@ai-sdk/anthropic":
		return messages
	case "@ai-sdk/openai":
		return responses
	case "@ai-sdk/openai-compatible":
		return compatible
	case "":
	default:
		return foreign
	}
	switch {
	case id == "anthropic":
		return messages
	case id == "openai":
		return responses
	case slices.Contains(openCodeOwn, id):
		return foreign
	}
	return compatible
}

func (s *Setup) planOpenCode(p *Plan) error {
	own, err := p.read(s.World.openCodeFile(), looseJSON)
	if err != nil {
		return err
	}
	p.seed = openCodeSeed
	all, err := s.World.openCodeProviders(own, p.File)
	if err != nil {
		return err
	}
	for _, id := range s.openCodeNames(p, all) {
		s.moveProvider(p, id, all[id])
	}
	if len(p.wants) == 0 {
		left := ""
		if len(p.Left) > 0 {
			left = " (" + strings.Join(p.Left, "; ") + ")"
		}
		return fmt.Errorf("%w: OpenCode's files name no provider that speaks one of the three API formats%s; log in with OpenCode, add a provider, or name one with --provider", ErrNothing, left)
	}
	for _, o := range s.World.openCodeOver(slices.Sorted(maps.Keys(all))) {
		p.Warnings = append(p.Warnings, o.String())
	}
	p.Warnings = append(p.Warnings, s.World.caught(openCode, "")...)
	return nil
}

// openCodeProviders merges what the global files say of each provider.
func (w World) openCodeProviders(own map[string]any, ownFile string) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for _, name := range w.openCodeFiles() {
		tree := own
		if name != ownFile {
			c, err := readFile(name)
			if err != nil {
				return nil, err
			}
			_, data := cutMark(c.data)
			if tree, err = looseJSON.decode(data); err != nil {
				return nil, inFile(name, err)
			}
		}
		value, _ := lookUp(tree, "provider")
		providers, _ := value.(map[string]any)
		for id, value := range providers {
			settings, _ := value.(map[string]any)
			if all[id] == nil {
				all[id] = map[string]any{}
			}
			overlay(all[id], settings)
		}
	}
	return all, nil
}

// overlay merges settings as OpenCode does, key by key.
func overlay(under, over map[string]any) {
	for name, value := range over {
		a, isObject := under[name].(map[string]any)
		b, isToo := value.(map[string]any)
		if isObject && isToo {
			merged := maps.Clone(a)
			overlay(merged, b)
			under[name] = merged
		} else {
			under[name] = value
		}
	}
}

// openCodeNames are the providers to look at: those in the files, those that
// the user named, and the two built-in ones if he has a credential for them.
func (s *Setup) openCodeNames(p *Plan, all map[string]map[string]any) []string {
	names := slices.Collect(maps.Keys(all))
	names = append(names, p.choices.Providers...)
	logins := s.World.openCodeLogins()
	for id, variable := range map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"} {
		if slices.Contains(logins, id) || s.World.getenv(variable) != "" {
			names = append(names, id)
		}
	}
	for _, id := range logins {
		if _, inFile := all[id]; !inFile && id != "anthropic" && id != "openai" {
			p.Left = append(p.Left, id+": its address is built in")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// openCodeLogins are the providers that the user has logged in to. Only their
// names are looked at.
func (w World) openCodeLogins() []string {
	c, err := readFile(filepath.Join(w.dir("XDG_DATA_HOME", ".local", "share"), "opencode", "auth.json"))
	if err != nil {
		return nil
	}
	tree, err := strictJSON.decode(c.data)
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(tree))
}

// providerName is what can be a path segment here and a name in config.yaml.
var providerName = lazily(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// apiWords are path segments that would not be taken for a provider.
var apiWords = []string{"messages", "responses", "chat", "completions", "embeddings", "models", "files", "api"}

// moveProvider points one provider at agentop, or says why not.
func (s *Setup) moveProvider(p *Plan, id string, settings map[string]any) {
	leave := func(why string) { p.Left = append(p.Left, id+": "+why) }
	speaks := dialectOf(id, settings)
	address, known := s.World.openCodeAddress(id, settings)
	mine := s.Proxy.ours(openCode, address)
	switch {
	case speaks == foreign:
		leave("it has an API of its own")
		return
	case !providerName().MatchString(id) || slices.Contains(apiWords, id) || isVersion(id):
		leave("its name cannot be a part of a base URL")
		return
	case !known:
		leave("its base URL names a variable or file that is empty here")
		return
	case address == "" && speaks == compatible && !slices.Contains(p.choices.Providers, id):
		leave("its address is built in")
		return
	}
	for depth := 1; depth <= 3; depth++ {
		path := []string{"provider", id, "options"}[:depth]
		tree, _ := p.syntax.decode(p.afterMark())
		if value, there := lookUp(tree, path...); there {
			if _, ok := value.(map[string]any); !ok {
				leave(dotted(path) + " is not an object")
				return
			}
		}
	}
	from := filepath.Base(p.File)
	if shell := s.World.getenv(claudeBase); address == "" && id == "anthropic" && shell != "" && !s.Proxy.ours(claudeCode, shell) {
		address, from = shell, shellFrom
	}
	if address != "" && !mine {
		p.Upstreams = append(p.Upstreams, *s.upstream(id, address, from))
	}
	like := address
	if from == shellFrom {
		like = "" // it is written for Claude Code, which adds the /v1 itself
	}
	path := "/" + openCode + "/" + id
	value := s.Proxy.Base() + path
	if speaks != responses {
		value = s.Proxy.baseLike(path, like, true)
	}
	p.wants = append(p.wants, want{[]string{"provider", id, "options", "baseURL"}, value})
	p.Moved = append(p.Moved, id)
}

// afterMark is the settings file without a byte order mark.
func (p *Plan) afterMark() []byte {
	_, data := cutMark(p.before.data)
	return data
}

// openCodeAddress is where a provider goes by the files, with variables and
// files in it filled in; false where one of them is empty.
func (w World) openCodeAddress(id string, settings map[string]any) (string, bool) {
	address := firstOf(text(settings, "options", "baseURL"), text(settings, "api"))
	full := filled().ReplaceAllStringFunc(address, func(part string) string {
		kind, name, _ := strings.Cut(strings.Trim(part, "{}"), ":")
		if kind == "env" {
			return w.getenv(name)
		}
		if rest, home := strings.CutPrefix(name, "~/"); home {
			name = filepath.Join(w.Home, rest)
		} else if !filepath.IsAbs(name) {
			name = filepath.Join(w.openCodeDir(), name)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(data))
	})
	return full, address == "" || strings.TrimSpace(full) != ""
}

// filled are the parts of a value that OpenCode replaces.
var filled = lazily(`\{(env|file):[^}]*\}`)

// openCodeOver lists the files that win over the global ones.
func (w World) openCodeOver(providers []string) []Override {
	var names []string
	if name := w.getenv("OPENCODE_CONFIG"); name != "" {
		names = append(names, name)
	}
	if w.Work != "" {
		for _, dir := range []string{w.Work, filepath.Join(w.Work, ".opencode")} {
			names = append(names, filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"))
		}
	}
	if dir := w.getenv("OPENCODE_CONFIG_DIR"); dir != "" {
		names = append(names, filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"))
	}
	var found []Override
	look := func(where string, tree map[string]any) {
		value, _ := lookUp(tree, "provider")
		all, _ := value.(map[string]any)
		for _, id := range slices.Sorted(maps.Keys(all)) {
			path := []string{"provider", id, "options", "baseURL"}
			if address := text(tree, path...); address != "" {
				found = append(found, Override{Where: where, Key: dotted(path), Value: address})
			}
		}
	}
	for _, name := range names {
		if slices.Contains(w.openCodeFiles(), name) {
			continue
		}
		look(name, readTree(name, looseJSON))
	}
	if content := w.getenv("OPENCODE_CONFIG_CONTENT"); content != "" {
		if tree, err := looseJSON.decode([]byte(content)); err == nil {
			look("OPENCODE_CONFIG_CONTENT", tree)
		}
	}
	return found
}
