package outline

// message is one message or input item while it is read. Its role and type may
// come last, so each part is kept until then.
type message struct {
	role, kind name
	from, what kind // what role and kind say
	sum        uint64
	text       tally // its texts
	calls      tally // its tool calls; Responses: call id and name of the item
	arguments  tally // Responses: the item's "arguments"
	input      tally // Responses: the item's "input"
	signed     bool
}

func (s *scanner) messageMember(m *message, key []byte) {
	responses := s.o.Format == Responses
	switch string(key) {
	case "role":
		m.role = s.name()
		m.from = s.roleOf(m.role)
	case "type":
		m.kind = s.name()
		m.what = s.kindOf(m.kind)
	case "id", "cache_control", "signature", "reasoning_content":
		s.skip()
	case "encrypted_content":
		m.signed = s.filled() || m.signed
	case "content":
		m.sum += s.contents(m)
	case "tool_calls":
		m.sum += s.toolCalls(m)
	case "function_call":
		m.sum += s.function(&m.calls)
	case "call_id", "name":
		sum, t := s.argument()
		m.sum += sum
		if responses {
			m.calls.plus(t)
		}
	case "input":
		sum, t := s.argument()
		m.sum += sum
		m.input.plus(t)
	case "arguments":
		sum, t := s.arguments()
		m.sum += sum
		m.arguments.plus(t)
	case "tools":
		m.sum += s.carriedTools()
	default:
		m.sum += s.value()
	}
}

// carriedTools reads the tools that an input item brings along; some of Codex's
// models get them so.
func (s *scanner) carriedTools() uint64 {
	if s.o.Format != Responses || s.peek() != '[' {
		return s.value()
	}
	var sum uint64
	for s.open(); s.more(']'); {
		s.carried++
		sum += s.value()
	}
	return sum
}

// name reads a role or a type.
func (s *scanner) name() name {
	if s.peek() != '"' {
		s.skip()
		return name{}
	}
	raw, escaped := s.str()
	return name{raw, escaped, true}
}

func (s *scanner) roleOf(n name) kind {
	if !n.known {
		return noKind
	}
	return roleOf(s.keyword(n.raw, n.escaped))
}

func (s *scanner) kindOf(n name) kind {
	if !n.known {
		return noKind
	}
	return kindOf(s.keyword(n.raw, n.escaped))
}

// filled reads a value and says whether it is a string with something in it.
func (s *scanner) filled() bool {
	if s.peek() != '"' {
		s.skip()
		return false
	}
	raw, _ := s.str()
	return raw.To > raw.From
}

// contents reads a message's "content": a string, or a list of blocks.
func (s *scanner) contents(m *message) uint64 {
	var sum uint64
	switch s.peek() {
	case '"':
		raw, escaped := s.str()
		h, n := s.hash(raw, escaped)
		s.addText(m, raw, tally{h, n})
		sum = h
	case '[':
		for s.open(); s.more(']'); {
			if s.peek() == '{' {
				sum += s.block(m)
			} else {
				sum += s.value()
			}
		}
	default:
		sum = s.value()
	}
	return sum
}

func (s *scanner) addText(m *message, raw Span, t tally) {
	if t.bytes > 0 {
		m.text.plus(t)
	}
	s.o.texts = appendText(s.o.texts, Text{Raw: raw})
}

// block is one block of a message's content while it is read.
type block struct {
	what    kind
	sum     uint64
	text    tally
	raw     Span // of its text
	hasText bool
	call    tally
	signed  bool // it has a signature
	sealed  bool // it has encrypted content
}

// block reads one block of a message's content.
func (s *scanner) block(m *message) uint64 {
	var b block
	for s.open(); s.more('}'); {
		s.blockMember(&b, s.key())
	}
	m.signed = m.signed || b.sealed || b.what == sealed || b.what == thinking && b.signed
	switch b.what {
	case thinking, sealed:
		return 0
	case toolUse:
		m.calls.plus(b.call)
	case noKind, textKind:
		if b.hasText {
			s.addText(m, b.raw, b.text)
		}
	}
	return b.sum
}

func (s *scanner) blockMember(b *block, key []byte) {
	switch string(key) {
	case "type":
		b.what = s.kindOf(s.name())
	case "text":
		if s.peek() != '"' {
			b.sum += s.value()
			return
		}
		raw, escaped := s.str()
		h, n := s.hash(raw, escaped)
		b.sum += h
		b.text, b.raw, b.hasText = tally{h, n}, raw, true
	case "id", "name", "input":
		h, t := s.argument()
		b.sum += h
		b.call.plus(t)
	case "signature":
		b.signed = s.filled()
	case "encrypted_content":
		b.sealed = s.filled() || b.sealed
	case "cache_control", "reasoning_content":
		s.skip()
	default:
		b.sum += s.value()
	}
}

// toolCalls reads a Chat Completions message's tool calls.
func (s *scanner) toolCalls(m *message) uint64 {
	if s.peek() != '[' {
		return s.value()
	}
	var sum uint64
	for s.open(); s.more(']'); {
		if s.peek() == '{' {
			sum += s.toolCall(&m.calls)
		} else {
			sum += s.value()
		}
	}
	return sum
}

func (s *scanner) toolCall(calls *tally) uint64 {
	var (
		sum  uint64
		call tally
		what kind
	)
	for s.open(); s.more('}'); {
		switch string(s.key()) {
		case "type":
			what = s.kindOf(s.name())
		case "id":
			h, t := s.argument()
			sum += h
			call.plus(t)
		case "function", "custom":
			sum += s.function(&call)
		case "cache_control", "signature", "encrypted_content", "reasoning_content":
			s.skip()
		default:
			sum += s.value()
		}
	}
	if what.hidden() {
		return 0
	}
	calls.plus(call)
	return sum
}

// function reads the name and the arguments of a Chat Completions tool call.
func (s *scanner) function(calls *tally) uint64 {
	if s.peek() != '{' {
		return s.value()
	}
	var (
		sum  uint64
		call tally
		what kind
	)
	for s.open(); s.more('}'); {
		var (
			h uint64
			t tally
		)
		switch string(s.key()) {
		case "type":
			what = s.kindOf(s.name())
		case "name", "input":
			h, t = s.argument()
		case "arguments":
			h, t = s.arguments()
		case "cache_control", "signature", "encrypted_content", "reasoning_content":
			s.skip()
		default:
			h = s.value()
		}
		sum += h
		call.plus(t)
	}
	if what.hidden() {
		return 0
	}
	calls.plus(call)
	return sum
}
