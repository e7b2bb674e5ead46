// Package router serves one turn at a time: it recognises the conversation,
// places it, makes sure its pin is on disk, forwards the client's bytes,
// streams the answer back as it comes and records what happened. Decisions
// are made elsewhere (agents, placement); this package does what they say. It
// promises that no request is sent twice and none is sent to two servers; it
// does not promise order between conversations. Start reading at
// Router.ServeHTTP, which names the steps.
package router

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"agentop/agents"
	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/placement"
	"agentop/router/prefix"
	"agentop/router/reqlog"
)

// PinStore keeps pins. Get answers from memory. A Put that is durable returns
// when the value is on disk; an error means that the value is kept in memory
// only and will be saved when the disk allows. Safe for concurrent use.
type PinStore interface {
	Get(key string) (value string, ok bool)
	Put(ctx context.Context, key, value string, ttl time.Duration, durable bool) error
	Delete(ctx context.Context, key string) error
}

// Recorder is the request log and the memory that is read from it. Append
// returns when the line is in the page cache; look-ups answer from memory.
// Safe for concurrent use.
type Recorder interface {
	Append(reqlog.Line)
	// Register claims key for a conversation whose turn, which arrived at the
	// given time, is about to be served.
	Register(c placement.Conversation, server string, key uint64, arrived time.Time)
	// Answered claims an answer's mark and response id for the conversation
	// that gets it, or, when c is zero, for a side request's server alone.
	Answered(c placement.Conversation, server string, mark uint64, response string, arrived time.Time)
	Last(placement.Conversation) (server string, ok bool)
	Response(id string) []placement.Owner
	Key(key uint64) []placement.Owner
	Mark(mark uint64) []placement.Owner
	// Loaded is closed when the index has been read back.
	Loaded() <-chan struct{}
}

// Credentials are the servers' keys. Safe for concurrent use.
type Credentials interface {
	// Key returns the key of a server; the zero Secret for one without key.
	Key(ctx context.Context, server *config.Server) (credential.Secret, error)
	// Rejected tells that the server answered 401 to its key.
	Rejected(server string)
}

// Formats are what the servers were found to speak. Safe for concurrent use.
type Formats interface {
	// Of lists the formats that a server speaks; none where that is not known.
	Of(server *config.Server) []outline.Format
	// Doubt tells that a request was refused because a server does not speak
	// its format. It must not block.
	Doubt(server string)
}

// Meter counts what happens, for metrics. Safe for concurrent use.
type Meter interface {
	Request(agent, server string, turn agents.Turn, status int)
	FirstByte(server string, d time.Duration)
	PinWrite(reason string)
	Refused(reason string)
}

// Parts is what a Router is made of. All fields but the last two are needed.
type Parts struct {
	Config      func() *config.Config
	Pins        PinStore
	Recorder    Recorder
	Credentials Credentials
	Meter       Meter
	Logger      *slog.Logger
	Now         func() time.Time
	Publish     func(control.Event) // must not block
	Watched     func() bool         // whether anybody takes in what is published; nil if that is not known
	Metrics     http.Handler        // serves /-/metrics
	// Formats, if set, lets requests be refused that a server would not
	// understand; else all are sent.
	Formats Formats
	// Transport, if set, carries all requests instead of connections of the
	// router's own: a network that tests hold in memory.
	Transport http.RoundTripper
}

// Router is the proxy's handler. It is safe for concurrent use.
type Router struct {
	Parts
	gates      *gates
	roster     *roster
	transports *transports
	load       *load
	health     *health
	seen       *seen
	refusals   *refusals
	decoded    *decodedPins
	known      *outline.Known
	retries    *retries
	strangers  strangers

	configMu   sync.Mutex
	lastConfig *config.Config
	choices    map[string]placement.ServerInfo
}

// New makes a Router of its parts.
func New(p Parts) *Router {
	r := &Router{
		Parts: p, gates: newGates(), transports: newTransports(),
		load: newLoad(), health: newHealth(), seen: newSeen(), refusals: newRefusals(), decoded: newDecodedPins(), known: &outline.Known{Hash: prefix.Fingerprint}, retries: newRetries(),
	}
	if r.Watched == nil {
		r.Watched = func() bool { return true }
	}
	r.roster = newRoster(r.Watched, func(s control.Session) {
		s = r.shown(asOf(s, r.Now()))
		r.Publish(control.Event{Kind: control.EventSession, Session: &s})
	})
	return r
}

// awaitOpening is how long a title or topic check waits for its conversation's
// opening, which comes a few milliseconds later.
const awaitOpening = 2 * time.Second

// ServeHTTP serves one request. Each step either goes on or says what agentop
// itself must answer.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	t := r.begin(w, req)
	defer t.end()
	defer t.caught()
	steps := []func() *failure{
		t.guard,     // is it this user, from this machine, through our name?
		t.address,   // which agent's base URL; agentop's own paths end here
		t.read,      // the whole body, and a decoded copy if it is coded
		t.recognise, // agent, conversation, turn, prefix keys
		t.place,     // which server, and a durable pin if the conversation is new
		t.forward,   // send, stream back, observe
	}
	for _, step := range steps {
		if f := step(); f != nil {
			t.refuse(f)
			return
		}
		if t.answered {
			return
		}
	}
}

// servers is what placement needs to know of the configured servers. It is
// derived once for each configuration, not for each request.
func (r *Router) servers(c *config.Config) map[string]placement.ServerInfo {
	r.configMu.Lock()
	defer r.configMu.Unlock()
	if r.lastConfig != c {
		r.choices = make(map[string]placement.ServerInfo, len(c.Servers))
		for i := range c.Servers {
			info := placement.ServerInfo{}
			if r.Formats != nil {
				info.Formats = r.Formats.Of(&c.Servers[i])
			}
			r.choices[c.Servers[i].Name] = info
		}
		r.lastConfig = c
		r.transports.keep(c)
	}
	return r.choices
}

// Learned lets the next request be placed by what Formats says now.
func (r *Router) Learned() {
	r.configMu.Lock()
	defer r.configMu.Unlock()
	r.lastConfig = nil
}
