// Package placement holds the rules that say which server a turn goes to. It
// is pure: a question with everything the rules may know goes in, a decision
// with its reason comes out; no sockets, clocks, files or goroutines. Start
// reading at Place.
package placement

import (
	"agentop/agents"
	"agentop/agents/outline"
)

// Own stands where a server's name would: the agent's own upstream, where it
// would go without agentop. No server can be configured under this name.
const Own = "own"

// Conversation is identified by agent and session id together.
type Conversation struct {
	Agent   agents.Agent
	Session string
}

// Question is one request as the rules see it.
type Question struct {
	Agent    agents.Agent
	Session  string      // "" when the agent states none
	Parent   string      // "" when none is stated
	Turn     agents.Turn // for a session that is not known (Recognition.Unknown)
	Kind     agents.Kind
	Format   outline.Format
	Response string   // previous_response_id, "" when absent
	Keys     []uint64 // prefix keys of the input, shallowest first; the last is the full input's
	Marks    []uint64 // reply marks of the assistant's messages that count, newest first
}
