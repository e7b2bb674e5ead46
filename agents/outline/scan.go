package outline

import (
	"strconv"
	"sync"
)

// Sum hashes a JSON string. raw is what stands between its quotes, escaped
// says that there is a backslash in it; n is the length of the decoded text.
// Package prefix has the one that agentop uses.
type Sum func(raw []byte, escaped bool) (hash uint64, n int)

// Scan makes o the outline of body, in one pass, and forgets what o held
// before; memory is reused. It accepts what encoding/json accepts as an
// object; for anything else o.Err is set and nothing more is known. Of equal
// keys at the top the last one counts. With a nil sum nothing is hashed:
// Elements and Replies stay empty.
func (o *Outline) Scan(f Format, body []byte, sum Sum) {
	o.reset(f)
	s := takeScanner(body, sum)
	defer s.release()
	s.o = o
	s.body()
	if s.err != nil {
		o.reset(f)
		o.Err = s.err
		return
	}
	s.keepPast()
	s.finish()
}

// scanners are used again. One is four kilobytes: on the stack, it makes that
// of each goroutine that scans grow to twice the size.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

func takeScanner(text []byte, sum Sum) *scanner {
	s := scanners.Get().(*scanner)
	s.b, s.sum = text, sum
	return s
}

func (s *scanner) release() {
	*s = scanner{}
	scanners.Put(s)
}

func (o *Outline) reset(f Format) {
	if o.Err == nil {
		o.kept = names{o.Model, o.ToolChoice, o.UserID, o.PromptCacheKey, o.PreviousResponseID, o.TurnMetadata, o.LastRole, o.LastType}
	}
	*o = Outline{
		Format:     f,
		MaxTokens:  -1,
		ModelSpans: o.ModelSpans[:0],
		System:     o.System[:0],
		Leading:    o.Leading[:0],
		FirstUser:  o.FirstUser[:0],
		PriorUser:  o.PriorUser[:0],
		LastUser:   o.LastUser[:0],
		AfterUser:  o.AfterUser[:0],
		Replies:    o.Replies[:0],
		elements:   append(o.elements[:0], 0), // the system's place
		texts:      o.texts[:0],
		arena:      o.arena[:0],
		kept:       o.kept,
		Known:      o.Known,
		Conversed:  o.Conversed,
	}
}

// body reads the whole body.
func (s *scanner) body() {
	switch {
	case s.resume():
		s.restOfMessages()
	case s.peek() == '{':
		s.open()
	default:
		s.fail(errNotObject)
		return
	}
	comma := -1
	for s.more('}') {
		if s.b[s.i-1] == ',' {
			comma = s.i - 1
		}
		s.peek()
		from := s.i
		key := s.key()
		s.peek()
		s.member(key, comma, from)
	}
	if s.err == nil && (s.peek() != 0 || s.i < len(s.b)) {
		s.fail(errSyntax)
	}
}

// member reads the top-level member whose key starts at from, after the comma
// at comma (-1 for the first).
func (s *scanner) member(key []byte, comma, from int) {
	o := s.o
	switch string(key) {
	case "model":
		s.model()
	case "stream":
		o.Stream = s.peek() == 't'
		s.skip()
	case "max_tokens":
		o.MaxTokens = s.integer()
	case "context_management":
		o.ContextManagement = true
		s.skip()
	case "output_config":
		o.OutputFormat = s.has("format")
	case "tool_choice":
		o.ToolChoice = s.field("type", o.kept.toolChoice)
	case "metadata":
		o.UserID = s.field("user_id", o.kept.userID)
	case "client_metadata":
		o.TurnMetadata = s.field("x-codex-turn-metadata", o.kept.turnMetadata)
	case "prompt_cache_key":
		o.PromptCacheKey = s.text(o.kept.cacheKey)
	case "previous_response_id":
		o.PreviousResponseID = s.text(o.kept.previousID)
	case "tools":
		o.Tools, o.ServerTools = s.knownTools()
	case "system", "instructions", "messages", "input":
		s.content(key, comma, from)
	default:
		s.skip()
	}
}

// content reads a member that may be part of the conversation.
func (s *scanner) content(key []byte, comma, from int) {
	system, messages := "system", "messages"
	switch s.o.Format {
	case Responses:
		system, messages = "instructions", "input"
	case ChatCompletions:
		system = ""
	case NoFormat:
		s.skip()
		return
	}
	switch string(key) {
	case system:
		s.system(comma, from)
	case messages:
		s.messages()
	default:
		s.skip()
	}
}

func (s *scanner) model() {
	s.o.Model = ""
	if s.peek() != '"' {
		s.skip()
		return
	}
	from := s.i
	s.o.Model = s.text(s.o.kept.model)
	s.o.ModelSpans = append(s.o.ModelSpans, Span{from, s.i})
}

// integer reads a value, -1 for anything but an integer of 64 bits.
func (s *scanner) integer() int64 {
	s.peek()
	from := s.i
	s.skip()
	if s.i-from > 20 || s.err != nil {
		return -1
	}
	n, err := strconv.ParseInt(string(s.b[from:s.i]), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// field reads an object and returns its member name, a string, copied out.
func (s *scanner) field(name, kept string) string {
	if s.peek() != '{' {
		s.skip()
		return ""
	}
	value := ""
	for s.open(); s.more('}'); {
		if string(s.key()) == name {
			value = s.text(kept)
		} else {
			s.skip()
		}
	}
	return value
}

// has reads an object and says whether it has a member name.
func (s *scanner) has(name string) bool {
	if s.peek() != '{' {
		s.skip()
		return false
	}
	found := false
	for s.open(); s.more('}'); {
		if string(s.key()) == name {
			found = true
		}
		s.skip()
	}
	return found
}

// knownTools is tools for the list at the top of a body.
func (s *scanner) knownTools() (all, server int) {
	if s.peek() != '[' {
		return s.tools()
	}
	from := s.i
	if l := s.o.Known.find(toolLists, s.b[from:]); l != nil {
		s.jump(from + l.size)
		return l.all, l.server
	}
	all, server = s.tools()
	if s.err == nil {
		s.o.Known.add(toolLists, s.b[from:s.i], found{all: all, server: server})
	}
	return all, server
}

// tools counts the elements of a list of tools, and those that the server runs.
func (s *scanner) tools() (all, server int) {
	if s.peek() != '[' {
		s.skip()
		return 0, 0
	}
	for s.open(); s.more(']'); {
		all++
		if s.peek() != '{' {
			s.skip()
			continue
		}
		typed := false
		for s.open(); s.more('}'); {
			if string(s.key()) != "type" {
				s.skip()
				continue
			}
			typed = s.peek() == '"'
			if typed {
				raw, escaped := s.str()
				typed = string(s.keyword(raw, escaped)) != "custom"
			} else {
				s.skip()
			}
		}
		if typed {
			server++
		}
	}
	return all, server
}

// finish puts together what only the end of the body can tell.
func (s *scanner) finish() {
	o := s.o
	o.Tools += s.carried
	if s.last.from == user && !s.last.role.known {
		o.LastRole = "user" // of a string input
	} else {
		o.LastRole = s.lastName(s.last.role, o.kept.lastRole)
		o.LastType = s.lastName(s.last.kind, o.kept.lastType)
	}
	if o.LastRole == "" {
		o.LastRole = o.LastType
	}
	if o.Format != Responses {
		o.LastType = ""
	}
	for _, texts := range [...][]Text{o.System, o.Leading, o.FirstUser, o.PriorUser, o.LastUser, o.AfterUser} {
		for i := range texts {
			texts[i].Head = o.head(s.b[texts[i].Raw.From:texts[i].Raw.To])
		}
	}
	if s.sum == nil {
		return
	}
	o.Began = len(o.elements)
	if s.replied {
		o.Began = s.before
	}
	if s.hasSystem {
		o.elements[0] = s.systemSum
		o.Elements = o.elements
	} else {
		o.Elements = o.elements[1:]
		o.Began--
	}
}
