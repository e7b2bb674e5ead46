package outline

// hash hashes the string at raw, for a tool call's mark too where it is one of
// the call's arguments.
func (s *scanner) hash(raw Span, escaped bool) (uint64, int) {
	if s.sum == nil || s.err != nil {
		return 0, 0
	}
	h, n := s.sum(s.b[raw.From:raw.To:raw.To], escaped)
	s.counted = true
	if s.marking {
		s.marked.add(h, n)
	}
	return h, n
}

// value reads a value of any kind and returns the sum of its strings.
func (s *scanner) value() uint64 {
	switch s.peek() {
	case '"':
		raw, escaped := s.str()
		h, _ := s.hash(raw, escaped)
		return h
	case '{':
		return s.object()
	case '[':
		var sum uint64
		for s.open(); s.more(']'); {
			sum += s.value()
		}
		return sum
	}
	s.scalar()
	return 0
}

func (s *scanner) object() uint64 {
	var sum uint64
	hidden, counted := false, s.counted
	for s.open(); s.more('}'); {
		switch string(s.key()) {
		case "type":
			hidden = s.hides()
		case "cache_control", "signature", "encrypted_content", "reasoning_content":
			s.uncounted()
		default:
			sum += s.value()
		}
	}
	if hidden {
		s.counted = counted
		return 0
	}
	return sum
}

// hides reads a type and says whether it hides its object from the keys.
func (s *scanner) hides() bool {
	if s.peek() != '"' {
		s.uncounted()
		return false
	}
	raw, escaped := s.str()
	if s.marking {
		s.hash(raw, escaped)
	}
	return kindOf(s.keyword(raw, escaped)).hidden()
}

// uncounted reads a value that no key counts. A tool call's arguments are the
// user's own, so its mark counts it there.
func (s *scanner) uncounted() {
	if s.marking {
		s.value()
	} else {
		s.skip()
	}
}

// argument reads a tool call's id, name or argument and returns the sum of its
// strings that keys count, and the tally of all of them. One that is but an
// empty string has no tally, since a streamed answer leaves it out.
func (s *scanner) argument() (uint64, tally) {
	s.marking, s.marked = true, tally{}
	plain := s.peek() == '"'
	sum := s.value()
	s.marking = false
	if plain && s.marked.bytes == 0 {
		return sum, tally{}
	}
	return sum, s.marked
}

// arguments reads a tool call's arguments, a string that holds JSON. For the
// keys it is a string like any other; its tally is that of the strings in the
// JSON, since clients write the same JSON in other ways. Text that is no JSON
// is one string; an empty one is none.
func (s *scanner) arguments() (uint64, tally) {
	if s.peek() != '"' {
		return s.argument()
	}
	raw, escaped := s.str()
	h, n := s.hash(raw, escaped)
	if n == 0 {
		return h, tally{}
	}
	text := s.b[raw.From:raw.To]
	if escaped {
		text = s.o.scratch(text)
	}
	if mark, bytes, ok := Strings(text, s.sum); ok {
		return h, tally{mark, bytes}
	}
	return h, tally{h, n}
}

// Strings hashes all string values in a JSON text, at any depth, keys
// excepted: the wrapping sum of their hashes, and their decoded bytes. It
// refuses what encoding/json does.
func Strings(text []byte, sum Sum) (hash uint64, n int, ok bool) {
	s := takeScanner(text, sum)
	defer s.release()
	s.marking = true
	s.value()
	if s.err == nil && (s.peek() != 0 || s.i < len(text)) {
		s.fail(errSyntax)
	}
	return s.marked.mark, s.marked.bytes, s.err == nil
}

// maxScratch is the scratch memory that an Outline keeps for its next body.
const maxScratch = 1 << 20

// scratch decodes raw into memory that the next call overwrites.
func (o *Outline) scratch(raw []byte) []byte {
	if need := maxDecoded(len(raw)); cap(o.buf) < need {
		o.buf = make([]byte, need)
	}
	b := o.buf[:cap(o.buf)]
	n, _ := Decode(b, raw)
	if cap(o.buf) > maxScratch {
		o.buf = nil
	}
	return b[:n]
}
