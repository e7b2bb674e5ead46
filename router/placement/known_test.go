package placement

import (
	"agentop/agents"
	"agentop/agents/outline"
)

// memory is a Known that is written by hand and counts its look-ups.
type memory struct {
	pins      map[Conversation]string
	last      map[Conversation]string
	responses map[string][]Owner
	keys      map[uint64][]Owner
	marks     map[uint64][]Owner
	loading   bool

	keyLookups, markLookups, lookups int
}

func (m *memory) Pin(c Conversation) (Pin, bool) {
	m.lookups++
	server, ok := m.pins[c]
	return Pin{Server: server}, ok
}

func (m *memory) Last(c Conversation) (string, bool) {
	m.lookups++
	server, ok := m.last[c]
	return server, ok
}

func (m *memory) Response(id string) []Owner { return m.responses[id] }

func (m *memory) Key(key uint64) []Owner {
	m.keyLookups++
	return m.keys[key]
}

func (m *memory) Mark(mark uint64) []Owner {
	m.markLookups++
	return m.marks[mark]
}

func (m *memory) Ready() bool { return !m.loading }

// claude is a conversation of Claude Code.
func claude(session string) Conversation { return Conversation{agents.ClaudeCode, session} }

// owner claims for a conversation of Claude Code; session "" for a side
// request's reply.
func owner(session, server string) Owner { return Owner{claude(session), server} }

// three is a configuration with three servers, on which Claude Code is set to
// glm and has an own upstream. llama speaks Chat Completions only.
func three() Choices {
	return Choices{Server: "glm", Upstream: true, Servers: map[string]ServerInfo{
		"glm":   {},
		"lab":   {Formats: []outline.Format{outline.Messages, outline.Responses}},
		"llama": {Formats: []outline.Format{outline.ChatCompletions}},
	}}
}

func notRouted() Choices {
	c := three()
	c.Server = ""
	return c
}

func noUpstream() Choices {
	c := three()
	c.Upstream = false
	return c
}

func nowhere() Choices {
	c := three()
	c.Server, c.Upstream = "", false
	return c
}

// asks is a question of Claude Code in session S.
func asks(turn agents.Turn, edits ...func(*Question)) Question {
	q := Question{Agent: agents.ClaudeCode, Session: "S", Turn: turn, Kind: agents.KindMain, Format: outline.Messages}
	if turn == agents.Side {
		q.Kind = agents.KindHelper
	}
	if turn == agents.NotInference {
		q.Kind = agents.KindOther
	}
	for _, edit := range edits {
		edit(&q)
	}
	return q
}

func agent(a agents.Agent) func(*Question)    { return func(q *Question) { q.Agent = a } }
func session(s string) func(*Question)        { return func(q *Question) { q.Session = s } }
func parent(s string) func(*Question)         { return func(q *Question) { q.Parent = s } }
func kind(k agents.Kind) func(*Question)      { return func(q *Question) { q.Kind = k } }
func format(f outline.Format) func(*Question) { return func(q *Question) { q.Format = f } }
func response(id string) func(*Question)      { return func(q *Question) { q.Response = id } }
func keys(k ...uint64) func(*Question)        { return func(q *Question) { q.Keys = k } }
func marks(k ...uint64) func(*Question)       { return func(q *Question) { q.Marks = k } }
func began(n int) func(*Question)             { return func(q *Question) { q.Began = n } }
func waited(q *Question)                      { q.Waited = true }
func unread(q *Question)                      { q.Unread = true }

// px is the derived name for a full input's key of small value.
func px(name string) string { return "\x01px:" + name }
