package agents

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentop/agents/outline"
)

// A dialect is how one agent talks: it finds the ids that a request states and
// judges the request as an inference request whose body was read.
type dialect func(Request) told

// told is what a request tells in its agent's dialect. Ids that it does not
// state are empty; turn is what it is to a session that nobody knows.
type told struct {
	session, parent id
	turn            Turn
	kind            Kind
}

// dialects are the agents that agentop knows, in the order of lists, and how
// each of them talks.
var dialects = []struct {
	agent  Agent
	judges dialect
}{
	{ClaudeCode, recogniseClaudeCode},
	{Codex, recogniseCodex},
	{OpenCode, recogniseOpenCode},
	{QwenCode, recogniseQwenCode},
}

// Known is the names of the agents that agentop knows, in the order of lists.
// Other is none of them. The caller may keep the slice and change it.
func Known() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = string(d.agent)
	}
	return names
}

// known finds how an agent talks; nil for one that agentop does not know.
func known(agent Agent) dialect {
	for _, d := range dialects {
		if d.agent == agent {
			return d.judges
		}
	}
	return nil
}

// id is an id with the place where it was stated.
type id struct{ value, source string }

// Recognise tells which agent sent a request, which conversation it names and
// what it is to that conversation. It looks at nothing but r, keeps nothing of
// r.Outline, and may be called by many goroutines at once.
//
// The only error is a *SessionIDError.
//
// The order of the judgement, where each step may only make a turn less than
// an opening:
//
//  1. the method and path: what is not inference is no turn;
//  2. the body: what could not be read, or says nothing, is a side request;
//  3. the client's own word (a class or a subagent's mark in headers);
//  4. the shape of a helper's request;
//  5. a helper's text;
//  6. history, or a mark that there was some: a continuation;
//  7. else an opening.
func Recognise(r Request) (Recognition, error) {
	agent := r.Agent
	if agent == "" {
		agent = agentOf(r.Method, r.Path, r.Header)
	}
	told := dialectOf(agent, r)(r)
	if stated := firstHeader(r, "X-Dynamo-Session-Id"); stated.value != "" {
		told.session = stated
	}
	for _, id := range []id{told.session, told.parent} {
		if err := checkID(id); err != nil {
			return Recognition{Agent: agent}, err
		}
	}
	if told.parent.value == told.session.value {
		told.parent = id{}
	}
	result := Recognition{
		Agent:   agent,
		Format:  FormatOf(r.Method, r.Path),
		Session: told.session.value,
		Parent:  told.parent.value,
		Unknown: told.turn,
		Kind:    told.kind,
	}
	switch {
	case result.Format == outline.NoFormat:
		result.Unknown, result.Kind = NotInference, kindOfPath(r.Method, r.Path)
	case isRemoteCompaction(strings.TrimRight(r.Path, "/")):
		result.Unknown, result.Kind = Side, KindCompaction
	case r.Outline.Err != nil, r.Outline.Count == 0 && r.Outline.PreviousResponseID == "":
		result.Unknown, result.Kind = Side, KindHelper
	}
	return result, nil
}

// dialectOf is the dialect of a request. A known agent in the path decides,
// since that is what the user configured; under any other name the headers do,
// so that a second configuration of Claude Code may have a name of its own.
func dialectOf(agent Agent, r Request) dialect {
	if d := known(agent); d != nil {
		return d
	}
	if d := known(agentOf(r.Method, r.Path, r.Header)); d != nil {
		return d
	}
	return recogniseOther
}

// mainTurn is the last step of every dialect: a request that looks like the
// main conversation is an opening unless something says that it began before.
func mainTurn(began bool) (Turn, Kind) {
	if began {
		return Continuation, KindMain
	}
	return Opening, KindMain
}

// hasHistory tells a request that repeats or names an earlier answer.
func hasHistory(o *outline.Outline) bool {
	return o.History || o.PreviousResponseID != ""
}

// isSubagent tells the marks of a subagent that stand in headers. They are
// heeded whoever the agent is: no main conversation carries one.
func isSubagent(r Request) bool {
	for _, name := range []string{
		"X-Claude-Code-Agent-Id", "X-Claude-Code-Parent-Agent-Id",
		"X-Openai-Subagent", "X-Parent-Session-Id",
	} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// firstHeader is the first of the named headers that has a value.
func firstHeader(r Request, names ...string) id {
	for _, name := range names {
		if value := r.Header.Get(name); value != "" {
			return id{value, name}
		}
	}
	return id{}
}

// checkID says what keeps an id from being a key, if anything.
func checkID(id id) error {
	reason := ""
	switch {
	case len(id.value) > MaxSessionID:
		reason = "is too long"
	case !utf8.ValidString(id.value):
		reason = "is not UTF-8"
	case strings.ContainsFunc(id.value, unicode.IsControl):
		reason = "holds a control character"
	default:
		return nil
	}
	return &SessionIDError{Source: strings.ToLower(id.source), Bytes: len(id.value), Reason: reason}
}

// begins tells whether one of texts begins with one of marks. Leading white
// space of a text does not count: clients put line ends before a mark.
func begins(texts []outline.Text, marks ...string) bool {
	for _, text := range texts {
		head := bytes.TrimLeft(text.Head, " \t\r\n")
		for _, mark := range marks {
			if len(head) >= len(mark) && string(head[:len(mark)]) == mark {
				return true
			}
		}
	}
	return false
}

// is tells whether one of texts is one of words, and nothing else.
func is(texts []outline.Text, words ...string) bool {
	for _, text := range texts {
		head := bytes.TrimSpace(text.Head)
		for _, word := range words {
			if string(head) == word {
				return true
			}
		}
	}
	return false
}
