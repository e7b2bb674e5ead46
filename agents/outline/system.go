package outline

import "bytes"

// billingMark begins the text of the block in which Claude Code tells its
// version and a number that changes with every request.
var billingMark = []byte("x-anthropic-billing-header:")

// system reads the system prompt: "system" or "instructions", whose key stands
// at from, after the comma at comma (-1 for the first member).
func (s *scanner) system(comma, from int) {
	o := s.o
	o.System, o.Billing = o.System[:0], Span{}
	s.counted = false
	switch s.peek() {
	case '"':
		s.systemSum = s.systemString(comma, from)
	case '[':
		s.systemSum = s.systemBlocks()
	default:
		s.systemSum = s.value()
	}
	s.hasSystem, s.seen = s.counted, true
}

// systemString reads a system prompt that is one string. One that is nothing
// but the billing line goes with its key; but an equal key before it would
// then speak, so in that case an empty string stays.
func (s *scanner) systemString(comma, from int) uint64 {
	text := s.systemText()
	raw := text.raw
	s.o.System = append(s.o.System, Text{Raw: raw})
	line := s.billingLine(raw)
	switch {
	case line.To == line.From:
	case line.To < raw.To || s.seen:
		s.o.Billing = line
	default:
		s.o.Billing = s.cut(comma, Span{from, s.i})
	}
	if line.To == raw.To && line.To > line.From {
		return 0
	}
	return s.textSum(text, line)
}

func (s *scanner) systemBlocks() uint64 {
	var sum uint64
	comma := -1
	for s.open(); s.more(']'); {
		if s.b[s.i-1] == ',' {
			comma = s.i - 1
		}
		c := s.peek()
		if c != '{' {
			sum += s.value()
			continue
		}
		sum += s.systemBlock(comma)
	}
	return sum
}

// systemBlock reads one block of the system prompt, after the comma at comma.
// The hash of its text waits for the end, where it is known what of it counts.
func (s *scanner) systemBlock(comma int) uint64 {
	var (
		sum  uint64
		text systemText
		what kind
	)
	from, counted := s.i, s.counted
	for s.open(); s.more('}'); {
		switch string(s.key()) {
		case "type":
			what = s.kindOf(s.name())
		case "text":
			sum += s.hashName(text.name)
			if text.known = s.peek() == '"'; !text.known {
				sum += s.value()
				continue
			}
			text = s.systemText()
		case "cache_control", "signature", "encrypted_content", "reasoning_content":
			s.skip()
		default:
			sum += s.value()
		}
	}
	if what.hidden() {
		s.counted = counted
		return 0
	}
	if !text.known {
		return sum
	}
	s.o.System = appendText(s.o.System, Text{Raw: text.raw})
	line := s.billingLine(text.raw)
	if line.To > line.From && s.o.Billing == (Span{}) {
		s.o.Billing = line
		if line.To == text.raw.To {
			s.o.Billing = s.cut(comma, Span{from, s.i})
		}
	}
	if line.To > line.From && line.To == text.raw.To {
		s.counted = counted
		return 0
	}
	return sum + s.textSum(text, line)
}

// systemText is a text of the system prompt, and what is known of it.
type systemText struct {
	name
	past *value
}

// systemText reads a string.
func (s *scanner) systemText() systemText {
	from := s.i + 1
	if past := s.o.Known.find(systemTexts, s.b[from:]); past != nil && s.sum != nil {
		s.jump(from + past.size)
		return systemText{name{Span{from, s.i - 1}, past.escaped, true}, past}
	}
	raw, escaped := s.str()
	return systemText{name{raw, escaped, true}, nil}
}

// textSum is the hash of what follows the billing line in a text.
func (s *scanner) textSum(t systemText, line Span) uint64 {
	switch {
	case line.To > line.From:
		h, _ := s.hash(s.after(line, t.raw, t.escaped))
		return h
	case t.past != nil && s.err == nil:
		s.counted = true
		return t.past.sum
	}
	h := s.hashName(t.name)
	if s.sum != nil && s.err == nil {
		s.o.Known.add(systemTexts, s.b[t.raw.From:t.raw.To+1], found{sum: h, escaped: t.escaped})
	}
	return h
}

// hashName is the hash of a string that was read before, 0 if there was none.
func (s *scanner) hashName(n name) uint64 {
	if !n.known {
		return 0
	}
	h, _ := s.hash(n.raw, n.escaped)
	return h
}

// billingLine is the billing line at the start of a system text, its line
// break included; empty when there is none.
func (s *scanner) billingLine(raw Span) Span {
	none := Span{raw.From, raw.From}
	if s.o.Format != Messages || s.err != nil {
		return none
	}
	var head [27]byte
	b := s.b[raw.From:raw.To]
	if n, _ := Decode(head[:], b); !bytes.Equal(head[:n], billingMark) {
		return none
	}
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			i++
			continue
		}
		r, n := unescape(b[i:])
		i += n
		if r == '\n' {
			return Span{raw.From, raw.From + i}
		}
	}
	return raw
}

// after is what follows a billing line in its text.
func (s *scanner) after(line, raw Span, escaped bool) (Span, bool) {
	if line.To == line.From {
		return raw, escaped
	}
	return Span{line.To, raw.To}, bytes.IndexByte(s.b[line.To:raw.To], '\\') >= 0
}

// cut is the span to remove so that what stands at member leaves its object or
// array, with the comma before it, or the one after it for the first.
func (s *scanner) cut(comma int, member Span) Span {
	if comma >= 0 {
		return Span{comma, member.To}
	}
	if s.peek() == ',' {
		return Span{member.From, s.i + 1}
	}
	return member
}
