// Package config is config.yaml: its schema, its checks (file, line, reason,
// what to write instead), edits that keep comments and layout, and hot reload
// with the last good configuration kept. It knows nothing of HTTP or
// placement. Start reading at Parse.
package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Config is a checked configuration. It is immutable once Parse has returned
// it; a reload makes a new one.
type Config struct {
	Listen  string            // loopback host:port
	Servers []Server          // in the file's order
	Agents  map[string]Choice // by agent name
	MaxBody int64             // bytes of a request body
	Titles  bool
	Token   string // secret path segment; "" = none
}

// Server is one configured inference server, or a pool of equal ones.
type Server struct {
	Name               string
	URL                string // "" for a pool
	Key                KeySource
	Rename             []Rename // in the file's order: first match wins
	StripV1            bool     // v1: strip
	KeepBillingBlock   bool
	SessionHeader      string
	Pool               []Member
	Headroom           float64
	CAFile             string
	InsecureSkipVerify bool
	FirstByteTimeout   time.Duration // 0 = none
}

// Member is one machine of a pool. Its name is its URL's host (with port
// where two members share a host).
type Member struct {
	Name     string
	URL      string
	Capacity int     // requests at once; 0 = no limit known
	Cost     float64 // cheaper is preferred; 1 when left out
}

// Rename maps model names that match Glob to Name.
type Rename struct{ Glob, Name string }

// KeySource says where a server's key comes from.
type KeySource struct {
	Kind    KeyKind
	Env     string   // for KeyEnv
	Command []string // for KeyCommand
}

// KeyKind is one of the ways to hold a key.
type KeyKind string

// The kinds of key sources.
const (
	KeyStored   KeyKind = "stored"   // keys.json
	KeyEnv      KeyKind = "env"      // an environment variable of the proxy
	KeyKeychain KeyKind = "keychain" // the system's keychain
	KeyCommand  KeyKind = "command"  // a command's output
	KeyClient   KeyKind = "client"   // the agent's own credential is passed on
	KeyNone     KeyKind = "none"     // no credential at all
)

// Choice is what config.yaml says of one agent.
type Choice struct {
	Server string // "" = not routed
	// Upstream overrides the agent's usual own upstream: by provider path
	// segment for OpenCode, under "" otherwise. UpstreamNone means that the
	// user has no own upstream.
	Upstream     map[string]string
	UpstreamNone bool
}

// What a configuration holds where the file says nothing.
const (
	DefaultListen   = "127.0.0.1:4780"
	DefaultMaxBody  = 256 << 20 // bytes
	DefaultHeadroom = 2.0       // of a pool
	DefaultCost     = 1.0       // of a pool's member
)

// Default gives the configuration of an empty or missing file: no servers and
// every agent unrouted.
func Default() *Config {
	return &Config{Listen: DefaultListen, MaxBody: DefaultMaxBody, Titles: true, Agents: map[string]Choice{}}
}

// Server finds a server by its name. What it points to belongs to the
// configuration and must not be changed.
func (c *Config) Server(name string) (*Server, bool) {
	for i := range c.Servers {
		if c.Servers[i].Name == name {
			return &c.Servers[i], true
		}
	}
	return nil, false
}

// Member finds a member of the pool by its name.
func (s *Server) Member(name string) (*Member, bool) {
	for i := range s.Pool {
		if s.Pool[i].Name == name {
			return &s.Pool[i], true
		}
	}
	return nil, false
}

// CAPath gives the file of CAFile, with home in the place of a leading "~";
// "" when there is none.
func (s *Server) CAPath(home string) string {
	if rest, found := strings.CutPrefix(s.CAFile, "~/"); found {
		return strings.TrimRight(home, "/") + "/" + rest
	}
	return s.CAFile
}

// Over gives s as it takes the place of old, the server of its name; nil if
// there is none. What the commands cannot say of a server is kept, a pool
// becomes one address, and the lines of s come after those that are there.
func (s Server) Over(old *Server) Server {
	if old == nil {
		return s
	}
	merged := *old
	merged.Pool, merged.Headroom = nil, 0
	merged.URL, merged.Key, merged.StripV1 = s.URL, s.Key, old.StripV1 || s.StripV1
	merged.Rename = slices.Clone(old.Rename)
	for _, line := range s.Rename {
		if !slices.Contains(merged.Rename, line) {
			merged.Rename = append(merged.Rename, line)
		}
	}
	return merged
}

// AgentsOf lists the agents whose new conversations go to the server, sorted.
func (c *Config) AgentsOf(server string) []string {
	var names []string
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		if server != "" && c.Agents[agent].Server == server {
			names = append(names, agent)
		}
	}
	return names
}

// Equal says whether two configurations mean the same.
func Equal(a, b *Config) bool { return reflect.DeepEqual(a, b) }

// clone copies a configuration deeply enough that the parts the edits change
// can be changed.
func (c *Config) clone() *Config {
	copied := *c
	copied.Servers = slices.Clone(c.Servers)
	copied.Agents = make(map[string]Choice, len(c.Agents))
	for agent, choice := range c.Agents {
		choice.Upstream = maps.Clone(choice.Upstream)
		copied.Agents[agent] = choice
	}
	return &copied
}

// String names the key source as config.yaml writes it, without a command's
// arguments, which may be private.
func (k KeySource) String() string {
	switch k.Kind {
	case KeyEnv:
		return "env:" + k.Env
	case "":
		return string(KeyNone)
	default:
		return string(k.Kind)
	}
}
