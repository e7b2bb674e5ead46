// Package importer reads the servers of other tools that people come from:
// cc-switch and claude-code-router. It only reads, gives keys as secrets that
// do not print, and says of what it leaves out why. It knows nothing of a
// running proxy or of a command line. Start reading at Read.
package importer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentop/router/config"
	"agentop/router/credential"
)

// The tools that can be read.
const (
	CCSwitch = "cc-switch"
	CCR      = "ccr"
)

// Tools are the names of all tools that can be read.
var Tools = []string{CCSwitch, CCR}

// maxFile bounds what is read of a tool's files, in bytes.
const maxFile = 64 << 20

// Server is one server as another tool has it.
type Server struct {
	config.Server                   // its key source is set; a stored key is in Secret
	Secret        credential.Secret // the key, where the other tool holds it; zero else
	From          string            // its name there
	Notes         []string          // what the user should know, one line each
}

// Skipped is an entry that is not taken over.
type Skipped struct{ Name, Why string }

// Found is what a tool has.
type Found struct {
	File    string // where it was read
	Servers []Server
	Skipped []Skipped
}

// Read reads a tool's servers: from file, or where the tool keeps them under
// home when file is "". taken are names that are in use already. No error
// holds a key.
func Read(tool, home, file string, taken []string) (Found, error) {
	var (
		f   Found
		err error
	)
	switch tool {
	case CCSwitch:
		f, err = readCCSwitch(home, file)
	case CCR:
		f, err = readCCR(home, file)
	default:
		return f, fmt.Errorf("there is no tool %q to import from; there are %s", tool, strings.Join(Tools, " and "))
	}
	if err != nil {
		return f, err
	}
	f.settle(taken)
	return f, nil
}

// settle checks every server as config.yaml would, joins those that are one
// server for two agents, and gives each a name of its own.
func (f *Found) settle(taken []string) {
	taken = slices.Clone(taken)
	var kept []Server
	for _, s := range f.Servers {
		if f.holdsKey(s.URL) { // an address is shown
			f.Skipped = append(f.Skipped, Skipped{s.From, "a key stands in its address, where agentop has none"})
			continue
		}
		if i := slices.IndexFunc(kept, func(o Server) bool { return s.same(o) }); i >= 0 {
			for _, line := range s.Rename {
				if !slices.Contains(kept[i].Rename, line) {
					kept[i].Rename = append(kept[i].Rename, line)
				}
			}
			continue
		}
		s.Name = nameFor(s, taken)
		checked, err := config.CheckServer(s.Server)
		if err != nil {
			f.Skipped = append(f.Skipped, Skipped{s.From, err.Error()})
			continue
		}
		s.Server = checked
		taken = append(taken, s.Name)
		kept = append(kept, s)
	}
	f.Servers = kept
}

// minKey is how long a key is at least. What is shorter stands in for one where
// a server wants none, and may well be a part of its address: ollama, lm-studio.
const minKey = 12

// holdsKey says whether a text holds any of the keys that were read.
func (f *Found) holdsKey(text string) bool {
	return slices.ContainsFunc(f.Servers, func(s Server) bool {
		key := s.Secret.Reveal()
		return len(key) >= minKey && strings.Contains(text, key)
	})
}

// same says whether two entries are one server with one key.
func (s Server) same(o Server) bool {
	return s.URL == o.URL && s.Key.String() == o.Key.String() && s.Secret.Reveal() == o.Secret.Reveal() && s.StripV1 == o.StripV1
}

// nameFor makes a server's name of the other tool's, which may be any text:
// its letters that a name can have, or else the host.
func nameFor(s Server, taken []string) string {
	name := slug(s.From)
	if name == "" {
		host := strings.TrimPrefix(strings.TrimPrefix(s.URL, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		host, _, _ = strings.Cut(host, ":")
		name = slug(strings.TrimPrefix(host, "api."))
	}
	if name == "" || config.CheckName(name) != nil {
		name = "server"
	}
	unique := name
	for n := 2; slices.Contains(taken, unique); n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	return unique
}

// slug keeps of a text what a server's name may have, in lower case.
func slug(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_':
			b.WriteRune(c)
		default:
			b.WriteByte('-')
		}
	}
	name := b.String()
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	name = strings.Trim(name, "-._")
	return strings.TrimRight(name[:min(len(name), 40)], "-._")
}

// endpoints are the paths that other tools write at the end of an address.
var endpoints = []string{"/chat/completions", "/completions", "/messages", "/responses"}

// setURL takes an address that may be a whole endpoint. Where the endpoint
// stands right behind something else than /v1, the server's paths have none.
func (s *Server) setURL(address string) {
	address = strings.TrimRight(strings.TrimSpace(address), "/")
	for _, end := range endpoints {
		if base, found := strings.CutSuffix(address, end); found {
			s.URL = base
			s.StripV1 = !strings.HasSuffix(base, "/v1")
			return
		}
	}
	s.URL = address
}

// setBase takes an address to which the agent adds the last part of a path
// alone, as Codex and OpenCode do: what comes before it is all there is.
func (s *Server) setBase(address string) {
	if s.setURL(address); s.URL != "" {
		s.StripV1 = !strings.HasSuffix(s.URL, "/v1")
	}
}

// setKey takes a key as the other tool writes it: the key itself, or a
// reference to an environment variable.
func (s *Server) setKey(text string) {
	text = strings.TrimSpace(text)
	if name, found := strings.CutPrefix(text, "$"); found {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
		s.Key = config.KeySource{Kind: config.KeyEnv, Env: name}
		s.Notes = append(s.Notes, "its key is in the environment variable "+name+", which the proxy must have")
		return
	}
	key, err := credential.Clean(text)
	if err != nil {
		s.Key = config.KeySource{Kind: config.KeyNone}
		if text != "" {
			s.Notes = append(s.Notes, "its key "+err.Error()+", and was left out")
		}
		return
	}
	s.Key, s.Secret = config.KeySource{Kind: config.KeyStored}, key
}

// readFile reads a file of another tool.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%q has more than %d bytes", path, maxFile)
	}
	return os.ReadFile(path)
}

func under(home string, names ...string) string {
	return filepath.Join(append([]string{home}, names...)...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
