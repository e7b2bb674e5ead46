package placement

import (
	"fmt"

	"agentop/agents"
	"agentop/agents/outline"
)

// RefusalKind is why agentop itself must answer with an error. None of them
// passes by itself: the same request again is refused again.
type RefusalKind string

// The kinds of refusals.
const (
	RefusedNot         RefusalKind = ""
	RefusedRemoved     RefusalKind = "server-removed"  // the place is no longer configured
	RefusedFormat      RefusalKind = "format-unspoken" // the place does not speak the request's API format
	RefusedUpstreamOff RefusalKind = "upstream-off"    // the place is the own upstream, which was switched off
	RefusedNoServer    RefusalKind = "no-server"       // neither a server nor an own upstream
)

// Refusal is a refusal with what its text needs.
type Refusal struct {
	Kind    RefusalKind
	Agent   agents.Agent
	Session string // "" when the request has none
	Server  string // where it would have to go; "" for RefusedNoServer
	Format  outline.Format
	Running bool // a running conversation is concerned, not a new one
}

// Text is the whole message for the agent: what happened, then what to do. It
// begins with "agentop:" and names neither credential nor address. It is ""
// for RefusedNot.
func (r Refusal) Text() string {
	agent := r.Agent
	if agent == "" {
		agent = agents.Other
	}
	use := fmt.Sprintf("`agentop server use NAME --agent %s`", agent)
	switch r.Kind {
	case RefusedRemoved:
		return fmt.Sprintf("agentop: %s server %q, which is no longer configured. Add it back under the same name: `agentop server add %s URL`. %s",
			r.subject(), r.Server, r.Server, r.otherwise(use))
	case RefusedFormat:
		return fmt.Sprintf("agentop: %s server %q, which does not speak the %s API that %s uses. If it has learned it since it was asked, try again in a moment. %s",
			r.subject(), r.Server, formatName(r.Format), agent, r.elsewhere(use))
	case RefusedUpstreamOff:
		return fmt.Sprintf("agentop: %s %s's own upstream, which config.yaml switches off (`upstream: none`). Take that line out to go on. %s",
			r.subject(), agent, r.otherwise(use))
	case RefusedNoServer:
		return fmt.Sprintf("agentop: %s has no server and no upstream of its own, so this request has nowhere to go. Choose a server: %s.", agent, use)
	}
	return ""
}

func (r Refusal) subject() string {
	if r.Running {
		return "this conversation belongs to"
	}
	return "this request would go to"
}

// otherwise is the second way out: leave the conversation, or choose another
// server for new ones.
func (r Refusal) otherwise(use string) string {
	if r.Running && r.Session != "" {
		return fmt.Sprintf("The conversation is kept; a new one works at once, and `agentop sessions move %s SERVER` moves this one.", Plain(r.Session))
	}
	return "Or choose another server for new conversations: " + use + "."
}

// elsewhere is the way out where a new conversation would fare no better at
// the same server.
func (r Refusal) elsewhere(use string) string {
	if r.Running && r.Session != "" {
		return fmt.Sprintf("The conversation is kept; `agentop sessions move %s SERVER` moves it, and %s chooses another server for new ones.", Plain(r.Session), use)
	}
	return "Else choose another server for new conversations: " + use + "."
}

func formatName(f outline.Format) string {
	switch f {
	case outline.Messages:
		return "Anthropic Messages"
	case outline.Responses:
		return "OpenAI Responses"
	case outline.ChatCompletions:
		return "OpenAI Chat Completions"
	}
	return "requested"
}
