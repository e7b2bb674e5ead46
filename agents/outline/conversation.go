package outline

import (
	"bytes"
)

// maxTexts bounds how many texts of one message are kept; of more, the first
// ones and the last.
const maxTexts = 1024

// tally is a growing reply mark.
type tally struct {
	mark  uint64
	bytes int
}

func (t *tally) add(hash uint64, n int) {
	t.mark += hash
	t.bytes += n
}

func (t *tally) plus(u tally) { t.add(u.mark, u.bytes) }

// name is a role or a type as it stands in the body.
type name struct {
	raw     Span
	escaped bool
	known   bool // it is there, and a string
}

// kind is what a type or a role makes of an object.
type kind uint8

const (
	noKind       kind = iota // no type stated
	otherKind                // one that means nothing here
	textKind                 // text, input_text, output_text
	toolUse                  // a tool call of the Messages API
	functionCall             // of the Responses API
	customCall               //
	otherCall                // of another tool, run by client or server: no mark
	endOfAnswer              // a tool's output, or a compaction
	thinking                 // thinking or reasoning in the clear, maybe signed
	sealed                   // redacted_thinking
	user                     // roles
	assistant
	system // or developer
)

// hidden says that an object of that type counts for no key.
func (k kind) hidden() bool { return k == thinking || k == sealed }

// kindOf reads a type. Types named like a role mean nothing.
func kindOf(word []byte) kind {
	switch string(word) {
	case "text", "input_text", "output_text":
		return textKind
	case "tool_use", "server_tool_use", "mcp_tool_use":
		return toolUse
	case "function_call":
		return functionCall
	case "custom_tool_call":
		return customCall
	case "thinking", "reasoning":
		return thinking
	case "redacted_thinking":
		return sealed
	case "compaction", "compaction_trigger", "compaction_summary":
		return endOfAnswer
	}
	switch {
	case bytes.HasSuffix(word, []byte("_call")):
		return otherCall
	case bytes.HasSuffix(word, []byte("_output")):
		return endOfAnswer
	}
	return otherKind
}

func roleOf(word []byte) kind {
	switch string(word) {
	case "user":
		return user
	case "assistant":
		return assistant
	case "system", "developer":
		return system
	}
	return otherKind
}

// conversation is what the scanner knows of the messages read so far.
type conversation struct {
	counted   bool // strings were hashed since this was last cleared
	systemSum uint64
	hasSystem bool // a string of the system prompt was counted
	seen      bool // a system prompt was read before

	last    message // the last message read
	user    bool    // a user message was read
	leading bool    // nothing but system messages was read
	replied bool    // the assistant wrote one
	before  int     // elements before the first that it wrote
	answer  tally   // Responses: of the items of the answer being read
	carried int     // tools that input items bring along
	from    int     // where the messages begin
}

// messages reads the value of "messages" or "input". Of several the last
// counts, so it begins by forgetting.
func (s *scanner) messages() {
	o := s.o
	s.last, s.user, s.leading, s.answer, s.carried = message{}, false, true, tally{}, 0
	s.replied, s.before = false, 0
	s.past, s.pastMarks, s.newMarks = nil, nil, nil // of a list that counts no more
	o.Count, o.History, o.Signed = 0, false, false
	o.FirstUser, o.PriorUser, o.LastUser, o.AfterUser = o.FirstUser[:0], o.PriorUser[:0], o.LastUser[:0], o.AfterUser[:0]
	o.Leading = o.Leading[:0]
	if o.Format == ChatCompletions {
		o.System = o.System[:0]
	}
	o.elements, o.Replies = o.elements[:1], o.Replies[:0]

	c := s.peek()
	s.from = s.i
	switch {
	case c == '[':
		s.open()
		s.restOfMessages()
		return
	case c == '"' && o.Format == Responses:
		s.stringInput()
	default:
		s.skip()
	}
	o.Conversation = Span{s.from, s.i}
}

// restOfMessages reads what is left of the list of messages.
func (s *scanner) restOfMessages() {
	marking := s.o.Known != nil && s.o.Known.Hash != nil && s.o.Conversed != "" && s.sum != nil
	if marking {
		s.nextMark = s.i + max(pastStep, (len(s.b)-s.i)/pastShare)
	}
	for s.more(']') {
		s.element()
		if marking {
			s.mark()
		}
	}
	s.endAnswer()
	s.o.Conversation = Span{s.from, s.i}
}

// userRole is the role that a string input has.
var userRole = []byte("user")

// stringInput reads an input that is one string: a user message.
func (s *scanner) stringInput() {
	raw, escaped := s.str()
	sum, _ := s.hash(raw, escaped)
	if s.sum != nil {
		role, _ := s.sum(userRole, false)
		sum += role
	}
	s.o.Count = 1
	s.o.FirstUser = append(s.o.FirstUser, Text{Raw: raw})
	s.o.LastUser = append(s.o.LastUser, Text{Raw: raw})
	s.last.from = user
	s.push(sum)
}

func (s *scanner) push(sum uint64) {
	if s.sum != nil {
		s.o.elements = append(s.o.elements, sum)
	}
}

// element reads one message or input item.
func (s *scanner) element() {
	s.o.Count++
	s.o.texts = s.o.texts[:0]
	if s.peek() != '{' {
		s.last = message{}
		s.push(s.value())
		return
	}
	var m message
	for s.open(); s.more('}'); {
		s.messageMember(&m, s.key())
	}
	if s.err == nil {
		s.last = m
		s.endMessage(&m)
	}
}

// endMessage files a message that was read to its end.
func (s *scanner) endMessage(m *message) {
	o := s.o
	before := len(o.elements)
	if !m.what.hidden() {
		s.push(m.sum + s.hashName(m.role))
	}
	o.Signed = o.Signed || m.signed
	switch m.from {
	case user:
		if !s.user {
			o.FirstUser = append(o.FirstUser[:0], o.texts...)
		}
		s.user = true
		o.PriorUser, o.LastUser = o.LastUser, append(o.PriorUser[:0], o.texts...)
		o.AfterUser = o.AfterUser[:0]
	case assistant:
		o.History = true
	case system:
		if s.user {
			o.AfterUser = appendTexts(o.AfterUser, o.texts)
		}
		if s.leading && o.Format == ChatCompletions {
			o.System = appendTexts(o.System, o.texts)
		}
		if s.leading && o.Format == Responses {
			o.Leading = appendTexts(o.Leading, o.texts)
		}
	}
	if m.from != system {
		s.leading = false
	}
	switch m.what {
	case functionCall, customCall, otherCall:
		o.History = true
	}
	if o.History && !s.replied {
		s.replied, s.before = true, before
	}
	s.answers(m)
}

func appendTexts(to, texts []Text) []Text {
	for _, t := range texts {
		to = appendText(to, t)
	}
	return to
}

func appendText(to []Text, t Text) []Text {
	if len(to) == maxTexts {
		to[maxTexts-1] = t
		return to
	}
	return append(to, t)
}

// answers adds a message to the assistant's answers. Items of the Responses
// API make one answer up to the next that the model did not write.
func (s *scanner) answers(m *message) {
	if s.o.Format != Responses {
		if m.from == assistant {
			s.answer = m.text
			s.answer.plus(m.calls)
			s.endAnswer()
		}
		return
	}
	if m.from != assistant && (m.from != noKind || m.what == endOfAnswer) {
		s.endAnswer()
		return
	}
	if m.from == assistant {
		s.answer.plus(m.text)
		return
	}
	switch m.what {
	case functionCall:
		s.answer.plus(m.calls)
		s.answer.plus(m.arguments)
	case customCall:
		s.answer.plus(m.calls)
		s.answer.plus(m.input)
	}
}

func (s *scanner) endAnswer() {
	if s.answer.bytes > 0 {
		s.o.Replies = append(s.o.Replies, Reply{s.answer.mark, s.answer.bytes})
	}
	s.answer = tally{}
}
