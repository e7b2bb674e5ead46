package control

import "time"

// Status is the proxy as a whole: what the header of the TUI and `agentop
// status` show.
type Status struct {
	Version     string        `json:"version"`
	PID         int           `json:"pid"`
	Started     time.Time     `json:"started"`
	Home        string        `json:"home"`
	Listen      []string      `json:"listen"` // addresses bound
	ConfigFile  string        `json:"config_file"`
	ConfigError string        `json:"config_error,omitempty"` // why the file on disk is not in force
	Warnings    []string      `json:"warnings,omitempty"`     // one line each, with what to do
	Store       Store         `json:"store"`
	Log         Log           `json:"log"`
	Agents      []AgentStatus `json:"agents"`
	Servers     []Server      `json:"servers"`
	Running     int           `json:"running"` // conversations with a main turn in the last 24 hours or a stream now
	Streams     int           `json:"streams"` // requests in flight
	Draining    []Draining    `json:"draining,omitempty"`
}

// Draining is an older worker that accepts nothing more and finishes the
// requests that it has.
type Draining struct {
	PID     int       `json:"pid"`
	Version string    `json:"version,omitempty"`
	Streams int       `json:"streams"` // requests in flight, not counted in Status.Streams
	Since   time.Time `json:"since,omitzero"`
	// Sessions are the conversations that it answers, at most MaxStreaming.
	Sessions []Streaming `json:"sessions,omitempty"`
}

// Streaming names a conversation with a request in flight.
type Streaming struct {
	Agent string `json:"agent"`
	ID    string `json:"id"`
}

// MaxStreaming bounds the conversations that a worker names to the others.
const MaxStreaming = 1000

// Store is the state of pins.json.
type Store struct {
	Pins     int       `json:"pins"`
	ReadOnly string    `json:"read_only,omitempty"` // why nothing is saved at all
	Error    string    `json:"error,omitempty"`     // last failed save, until one succeeds
	Since    time.Time `json:"since,omitzero"`      // since when saves fail
	Unsaved  int       `json:"unsaved,omitempty"`   // writes that only memory holds
}

// Log is the state of the request log.
type Log struct {
	Loaded bool   `json:"loaded"` // the index has been read back
	Lines  int    `json:"lines"`
	Keys   int    `json:"keys"`
	Bad    int    `json:"bad,omitempty"`   // damaged lines that were skipped
	Error  string `json:"error,omitempty"` // last failed append, until one succeeds
}

// AgentStatus is one agent and where its new conversations go.
type AgentStatus struct {
	Agent    string    `json:"agent"`
	Server   string    `json:"server"`         // "" = not routed
	Upstream string    `json:"upstream"`       // its own upstream, "none" when the user has none
	Since    time.Time `json:"since,omitzero"` // when Server was chosen, as far as known
	LastSeen time.Time `json:"last_seen,omitzero"`
	Version  string    `json:"version,omitempty"` // from its User-Agent
	Running  int       `json:"running"`
}

// Server is one configured server, or a pool with its members.
type Server struct {
	Name     string   `json:"name"`
	URL      string   `json:"url,omitempty"`
	Key      string   `json:"key"` // stored, env:NAME, keychain, command, client, none: never the key
	Rename   []Rename `json:"rename,omitempty"`
	Health   Health   `json:"health"`
	Running  int      `json:"running"` // running conversations pinned here
	Streams  int      `json:"streams"`
	FirstMS  int64    `json:"first_ms,omitempty"` // median time to first byte of the last turns
	Members  []Member `json:"members,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Rename is one line of a server's rename list.
type Rename struct {
	Glob string `json:"glob"`
	Name string `json:"name"`
}

// Member is one machine of a pool.
type Member struct {
	Name     string  `json:"name"`
	URL      string  `json:"url"`
	Health   Health  `json:"health"`
	Capacity int     `json:"capacity"`
	Cost     float64 `json:"cost"`
	Streams  int     `json:"streams"`
}

// Health is what the last requests said of a server. agentop sends no
// requests of its own to find out, but for a preflight or a test.
type Health struct {
	State string    `json:"state"` // ok, down, failing, unknown
	At    time.Time `json:"at,omitzero"`
	Error string    `json:"error,omitempty"` // one line, no secret
}

// Session is one conversation.
type Session struct {
	Agent      string    `json:"agent"`
	ID         string    `json:"id"`
	Title      string    `json:"title,omitempty"` // untrusted text
	Dir        string    `json:"dir,omitempty"`   // working directory where the agent states it
	Server     string    `json:"server"`          // a server's name, pool/member, or own
	Pin        string    `json:"pin"`             // new, followed, restored, none: how its pin came about
	Why        string    `json:"why"`             // one line: why it is where it is
	Opened     time.Time `json:"opened,omitzero"`
	LastTurn   time.Time `json:"last_turn,omitzero"`
	Running    bool      `json:"running"`
	Streams    int       `json:"streams"`
	Turns      int       `json:"turns"`
	ModelAsked string    `json:"model_asked,omitempty"`
	ModelSent  string    `json:"model_sent,omitempty"`
	Context    int64     `json:"context,omitempty"` // input tokens of the last main turn
	ContextMax int64     `json:"context_max,omitempty"`
	Cached     int64     `json:"cached,omitempty"` // of Context, read from cache
	Input      int64     `json:"input,omitempty"`  // sums over its turns
	Output     int64     `json:"output,omitempty"`
	CacheRead  int64     `json:"cache_read,omitempty"`
	FirstMS    int64     `json:"first_ms,omitempty"` // of the last main turn
	TotalMS    int64     `json:"total_ms,omitempty"`
	Status     int       `json:"status,omitempty"` // of the last main turn
	Error      string    `json:"error,omitempty"`
	Signed     bool      `json:"signed,omitempty"` // signed thinking or encrypted reasoning is in it
	Saved      bool      `json:"saved"`            // its pin is on disk
}

// Event is one thing that happened, as the event stream tells it.
type Event struct {
	Kind     EventKind `json:"kind"`
	Status   *Status   `json:"status,omitempty"`
	Sessions []Session `json:"sessions,omitempty"` // of a snapshot: all of them, newest main turn first
	Session  *Session  `json:"session,omitempty"`
	Request  *Request  `json:"request,omitempty"`
	Text     string    `json:"text,omitempty"`
}

// EventKind says which of an event's fields are set.
type EventKind string

// The kinds of events. A reader that does not know a kind skips the event.
const (
	EventSnapshot EventKind = "snapshot" // Status and Sessions: everything told before is void
	EventStatus   EventKind = "status"   // Status
	EventSession  EventKind = "session"  // Session: new or changed
	EventGone     EventKind = "gone"     // Session, of which only Agent and ID count: forgotten or lapsed
	EventRequest  EventKind = "request"  // Request: it has ended
	EventWarning  EventKind = "warning"  // Text: one line, with what to do
)

// Request is one line of the request log as the event stream and `logs` show it.
type Request struct {
	Time    time.Time `json:"time"`
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	Session string    `json:"session,omitempty"`
	Turn    string    `json:"turn"`
	Side    string    `json:"side,omitempty"`
	Pin     string    `json:"pin,omitempty"`
	Server  string    `json:"server"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Model   string    `json:"model,omitempty"`
	Status  int       `json:"status"`
	Input   int64     `json:"input,omitempty"`
	Output  int64     `json:"output,omitempty"`
	FirstMS int64     `json:"first_ms,omitempty"`
	TotalMS int64     `json:"total_ms,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Switch is a change of an agent's server, and what it means.
type Switch struct {
	Agent  string         `json:"agent"`
	Server string         `json:"server"` // "" = back to not routed
	Before string         `json:"before"`
	Stay   map[string]int `json:"stay,omitempty"` // running conversations of the agent by the server they stay on
}

// Preflight is what a server answered when it was asked before a switch or by
// `server test`.
type Preflight struct {
	Server   string   `json:"server"`
	Up       bool     `json:"up"`
	KeyOK    *bool    `json:"key_ok,omitempty"` // nil: could not be told
	Models   []string `json:"models,omitempty"`
	Formats  []string `json:"formats,omitempty"`
	Context  int64    `json:"context,omitempty"`  // longest context told, tokens
	FirstMS  int64    `json:"first_ms,omitempty"` // of a test: to the first byte of a tiny answer
	Kind     string   `json:"kind,omitempty"`     // the server's software where it can be told
	Tried    string   `json:"tried,omitempty"`    // of a test: the one request that it sent, in words
	Names    []Name   `json:"names,omitempty"`    // what becomes of the names that agents ask for
	Missing  []string `json:"missing,omitempty"`  // models that agents ask for and the server lacks
	Rename   []Rename `json:"rename,omitempty"`   // lines that would help
	Warnings []string `json:"warnings,omitempty"` // one line each; none blocks a switch
}

// Name is what becomes on a server of a model name that an agent asks for.
type Name struct {
	Agent  string `json:"agent"`
	Asked  string `json:"asked"`
	Sent   string `json:"sent"`
	Served bool   `json:"served"`         // as far as the server has a list
	Seen   bool   `json:"seen,omitempty"` // it was asked for here, and is not only usual
}

// MovePrice is what moving a conversation would cost.
type MovePrice struct {
	Agent        string   `json:"agent"`
	ID           string   `json:"id"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	Tokens       int64    `json:"tokens"` // to be read again without cache
	Signed       bool     `json:"signed"` // the other server will refuse its thinking or reasoning
	ContextMax   int64    `json:"context_max,omitempty"`
	MissingModel string   `json:"missing_model,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
}

// ServerSpec is a server as `server add` describes it. An existing server of
// that name is changed: its URL and key are replaced, all else that config.yaml
// says of it is kept.
type ServerSpec struct {
	Name   string   `json:"name"`
	URL    string   `json:"url"`
	Key    string   `json:"key"`              // stored, env:NAME, keychain, client or none, as in config.yaml
	Rename []Rename `json:"rename,omitempty"` // lines to write, after those that are there

	StripV1 bool `json:"strip_v1,omitempty"` // its paths have no /v1: v1: strip

	// Secret is the key itself when Key is "stored" or "keychain". It leaves
	// the process only through Client.AddServer, and no answer holds it.
	Secret string `json:"-"`
}

// String leaves the secret out, whatever verb prints a spec.
func (s ServerSpec) String() string { return s.Name + " " + s.URL + " key " + s.Key }

// GoString is String, so that %#v does not print the secret either.
func (s ServerSpec) GoString() string { return s.String() }

// ServerChange is what adding, changing or removing a server did.
type ServerChange struct {
	Name     string   `json:"name"`
	Changed  bool     `json:"changed"`            // the server was there before
	Running  int      `json:"running"`            // running conversations pinned to it
	Agents   []string `json:"agents,omitempty"`   // agents whose new conversations go there
	Warnings []string `json:"warnings,omitempty"` // one line each
}
