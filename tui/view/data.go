package view

import "time"

// The types of this file are what the screen shows, as the control API tells
// it. Text in them comes from outside and is made safe where it is drawn.

// Status is the proxy as a whole.
type Status struct {
	Version     string
	PID         int
	Started     time.Time
	Home        string
	Listen      []string // addresses bound
	ConfigFile  string
	ConfigError string   // why the file on disk is not in force
	Warnings    []string // one line each, with what to do
	Store       Store
	Log         Log
	Agents      []Agent
	Servers     []Server
	Running     int // conversations with a main turn in the last 24 hours or a stream
	Streams     int // requests in flight
	Draining    []Draining
}

// Draining is an older worker that accepts nothing more and finishes the
// requests that it has.
type Draining struct {
	PID      int
	Version  string
	Streams  int // requests in flight, not counted in Status.Streams
	Since    time.Time
	Sessions []Key // the conversations that it answers
}

// Store is the state of the pins on disk.
type Store struct {
	Pins     int
	ReadOnly string    // why nothing is saved at all
	Error    string    // last failed save, until one succeeds
	Since    time.Time // since when saves fail
	Unsaved  int       // writes that only memory holds
}

// Log is the state of the request log.
type Log struct {
	Loaded bool
	Lines  int
	Keys   int
	Bad    int    // damaged lines that were skipped
	Error  string // last failed append, until one succeeds
}

// Agent is one agent and where its new conversations go.
type Agent struct {
	Agent    string
	Server   string    // "" = not routed
	Upstream string    // its own upstream, "none" when the user has none
	Since    time.Time // when Server was chosen, as far as known
	LastSeen time.Time
	Version  string
	Running  int
}

// Server is one configured server, or a pool with its members.
type Server struct {
	Name     string
	URL      string
	Key      string // where the key comes from, never the key
	Rename   []Rename
	Health   Health
	Running  int // running conversations pinned here
	Streams  int
	FirstMS  int64 // median time to first byte of the last turns
	Members  []Member
	Warnings []string
}

// Rename is one line of a server's rename list.
type Rename struct {
	Glob string
	Name string
}

// Member is one machine of a pool.
type Member struct {
	Name     string
	URL      string
	Health   Health
	Capacity int
	Cost     float64
	Streams  int
}

// Health is what the last requests said of a server.
type Health struct {
	State string // ok, down, failing, unknown
	At    time.Time
	Error string
}

// Session is one conversation.
type Session struct {
	Agent      string
	ID         string
	Title      string
	Dir        string // working directory where the agent states it
	Server     string // a server's name, pool/member, or own
	Pin        string // new, followed, restored, none: how its pin came about
	Why        string // one line: why it is where it is
	Opened     time.Time
	LastTurn   time.Time
	Running    bool
	Streams    int
	Turns      int
	ModelAsked string
	ModelSent  string
	Context    int64 // input tokens of the last main turn
	ContextMax int64
	Cached     int64 // of Context, read from cache
	Input      int64 // sums over its turns
	Output     int64
	CacheRead  int64
	FirstMS    int64 // of the last main turn
	TotalMS    int64
	Status     int // of the last main turn
	Error      string
	Signed     bool // signed thinking or encrypted reasoning is in it
	Saved      bool // its pin is on disk
}

// Key identifies a conversation: equal ids of two agents are two.
type Key struct{ Agent, ID string }

// Key is the conversation's identity.
func (s *Session) Key() Key { return Key{s.Agent, s.ID} }

// Request is one request that has ended.
type Request struct {
	Time    time.Time
	ID      string
	Agent   string
	Session string
	Turn    string
	Side    string
	Pin     string
	Server  string
	Method  string
	Path    string
	Model   string
	Status  int
	Input   int64
	Output  int64
	FirstMS int64
	TotalMS int64
	Error   string
}

// Switch is a change of an agent's server, and what it means.
type Switch struct {
	Agent  string
	Server string // "" = back to not routed
	Before string
	Stay   map[string]int // running conversations of the agent by the server they stay on
}

// Preflight is what a server answered when it was asked.
type Preflight struct {
	Server   string
	Up       bool
	KeyOK    *bool // nil: could not be told
	Models   []string
	Formats  []string
	Context  int64  // longest context told, tokens
	FirstMS  int64  // of a test: to the first byte of a tiny answer
	Kind     string // the server's software where it can be told
	Tried    string // of a test: the one request that it sent, in words
	Names    []Name
	Missing  []string // models that agents ask for and the server lacks
	Rename   []Rename // lines that would help
	Warnings []string // one line each; none blocks a switch
}

// Name is what becomes on a server of a model name that an agent asks for.
type Name struct {
	Agent  string
	Asked  string
	Sent   string
	Served bool // as far as the server has a list
	Seen   bool // it was asked for here, and is not only usual
}

// MovePrice is what moving a conversation would cost.
type MovePrice struct {
	Agent        string
	ID           string
	From         string
	To           string
	Tokens       int64 // to be read again without cache
	Signed       bool  // the other server will refuse its thinking or reasoning
	ContextMax   int64
	MissingModel string
	Warnings     []string
}

// Setup is whether an agent's own settings point here.
type Setup struct {
	Agent   string
	Pointed bool
	Detail  string // one line: which file, or what is in the way
}

// Own is the place of conversations that stay with their agent's own upstream.
const Own = "own"
