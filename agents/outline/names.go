package outline

import "unicode/utf8"

// names are the strings that an Outline copies out of a body. The last scan's
// are kept: requests of one conversation state the same, and then nothing need
// be allocated.
type names struct {
	model, toolChoice, userID, cacheKey, previousID, turnMetadata, lastRole, lastType string
}

// text reads a value and copies it out of the body, "" for anything but a
// string. Nothing is allocated if it equals kept.
func (s *scanner) text(kept string) string {
	if s.peek() != '"' {
		s.skip()
		return ""
	}
	raw, escaped := s.str()
	return s.copyOut(raw, escaped, kept)
}

func (s *scanner) copyOut(raw Span, escaped bool, kept string) string {
	b := s.b[raw.From:raw.To]
	if escaped || !utf8.Valid(b) {
		b = s.o.decode(b, maxDecoded(len(b)))
	}
	if string(b) == kept {
		return kept
	}
	return string(b)
}

func (s *scanner) lastName(n name, kept string) string {
	if !n.known {
		return ""
	}
	return s.copyOut(n.raw, n.escaped, kept)
}

// head is the decoded beginning of a text; it aliases the body where the two
// are the same bytes.
func (o *Outline) head(raw []byte) []byte {
	for i := range min(len(raw), HeadBytes) {
		if raw[i] == '\\' || raw[i] >= utf8.RuneSelf {
			return o.decode(raw, HeadBytes)
		}
	}
	return raw[:min(len(raw), HeadBytes)]
}

// maxDecoded is the most that n bytes of JSON string decode to: one byte that
// is not UTF-8 becomes three.
func maxDecoded(n int) int { return 3 * n }

// decode appends at most limit bytes of raw's text to the arena.
func (o *Outline) decode(raw []byte, limit int) []byte {
	from := len(o.arena)
	limit = min(limit, maxDecoded(len(raw)))
	if cap(o.arena)-from < limit {
		// The heads that stand in the old arena stay where they are.
		o.arena = make([]byte, 0, max(2*cap(o.arena), limit, 4096))
		from = 0
	}
	n, _ := Decode(o.arena[from:from+limit], raw)
	o.arena = o.arena[:from+n]
	return o.arena[from : from+n : from+n]
}
