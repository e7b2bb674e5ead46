package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"agentop/router/fakeserver"
)

// client is a program that leads conversations: an agent in one of its
// versions, or a script.
type client struct {
	name    string
	agent   string // its name in the configuration
	path    string
	format  fakeserver.Format
	named   bool // it states a session
	chained bool // it sends the new message alone, and names the previous response
}

// clients are all that the simulation knows. The first four state sessions.
var clients = []client{
	{name: "claude", agent: "claude-code", path: "/claude-code/v1/messages?beta=true", format: fakeserver.Messages, named: true},
	{name: "claude-old", agent: "claude-code", path: "/claude-code/v1/messages", format: fakeserver.Messages, named: true},
	{name: "codex", agent: "codex", path: "/codex/v1/responses", format: fakeserver.Responses, named: true},
	{name: "opencode", agent: "opencode", path: "/opencode/openai/v1/chat/completions", format: fakeserver.ChatCompletions, named: true},
	{name: "opencode-old", agent: "opencode", path: "/opencode/openai/v1/chat/completions", format: fakeserver.ChatCompletions},
	{name: "script-chat", agent: "script", path: "/script/v1/chat/completions", format: fakeserver.ChatCompletions},
	{name: "script-messages", agent: "script", path: "/script/v1/messages", format: fakeserver.Messages},
	{name: "script-responses", agent: "script", path: "/script/v1/responses", format: fakeserver.Responses},
	{name: "script-chained", agent: "script", path: "/script/v1/responses", format: fakeserver.Responses, chained: true},
}

// agentNames are the agents of the configuration.
var agentNames = []string{"claude-code", "codex", "opencode", "script"}

// conversation is one as its client has it.
type conversation struct {
	client  *client
	session string // "" where the client states none
	forkOf  string // Codex alone says so
	window  int    // Codex counts compactions
	system  int    // version of the system prompt
	day     int    // version of the dated reminder
	turns   []turn
	helper  string // system prompt of a helper that works on it; "" for its own
	pending string // user text that was sent and not answered yet
	terse   bool   // its servers answer with a few bytes alone

	family *family  // shared with all branches
	life   []string // its turns as the servers saw them

	// tried are the agent's choices when its turns were sent: a pin may have
	// been made for one that no server saw.
	tried []string

	// home is the server that made the last reply of a named conversation, or,
	// before there is one, the first that saw it. The judge keeps it.
	home string
}

// family are the conversations that come from one opening.
type family struct {
	diverted bool // one of them went to the own upstream, though it belonged elsewhere
}

// turn is one turn of a history.
type turn struct {
	user  string
	reply reply
}

// reply is what a client keeps of an answer.
type reply struct {
	sig      fakeserver.Signature
	text     string
	thinking json.RawMessage // a block or item as it came
	calls    []call
	response string // Responses: its id
	lost     bool   // the proxy died between the whole answer and its line in the log
}

type call struct{ id, name, input string }

// last is the server that made the last reply in the history, "" without one.
func (c *conversation) last() string {
	if n := len(c.turns); n > 0 {
		return c.turns[n-1].reply.sig.Server
	}
	return ""
}

// unlogged says that the log may not know the last reply in the history.
func (c *conversation) unlogged() bool {
	n := len(c.turns)
	return n > 0 && c.turns[n-1].reply.lost
}

// branch is a copy of the conversation up to its first n turns.
func (c *conversation) branch(n int, session string) *conversation {
	b := *c
	b.turns = append([]turn(nil), c.turns[:n]...)
	b.life = append([]string{"branch of " + c.session}, c.life...)
	b.session, b.pending, b.home, b.forkOf, b.tried = session, "", b.last(), "", nil
	if c.client.name == "codex" {
		b.forkOf = c.session
	}
	return &b
}

// openings are few, so that many conversations begin with equal bytes.
var openings = []string{"hello", "fix the build", "what does this do?", "naïve 日本語 \"quoted\" & <b>"}

// steps are what users say later: few as well.
var steps = []string{"go on", "run the tests", "yes", "no, the other file", "why?\n\tshow the diff", "€ 5 — und weiter"}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (w *world) newSession() string {
	w.sessions++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(w.seed), w.sessions)
}
