// Package config is config.yaml: its schema, its checks (file, line, reason,
// what to write instead), edits that keep comments and layout, and hot reload
// with the last good configuration kept. It knows nothing of HTTP or
// placement. Start reading at Parse.
package config

import "time"

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
