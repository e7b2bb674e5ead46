package router

import (
	"strconv"

	"agentop/agents/outline"
)

// splice is one replacement of a span of the body.
type splice struct {
	at   outline.Span
	with string
}

// edited returns body with the two permitted edits made: every top-level
// model value replaced by model (unless that is empty) and, when dropBilling
// is set, the billing block cut. All other bytes are the client's. It returns
// body itself when there is nothing to edit.
func edited(body []byte, o *outline.Outline, model string, dropBilling bool) []byte {
	if o.Err != nil {
		return body
	}
	var cuts []splice
	if model != "" && model != o.Model {
		quoted := quote(model)
		for _, at := range o.ModelSpans {
			cuts = append(cuts, splice{at, quoted})
		}
	}
	if dropBilling && o.Billing.To > o.Billing.From {
		cuts = insertSorted(cuts, splice{at: o.Billing})
	}
	if len(cuts) == 0 {
		return body
	}
	return apply(body, cuts)
}

func insertSorted(cuts []splice, s splice) []splice {
	i := 0
	for i < len(cuts) && cuts[i].at.From < s.at.From {
		i++
	}
	cuts = append(cuts, splice{})
	copy(cuts[i+1:], cuts[i:])
	cuts[i] = s
	return cuts
}

// apply copies body once, with the cuts made; they are sorted and disjoint.
func apply(body []byte, cuts []splice) []byte {
	size := len(body)
	for _, c := range cuts {
		size += len(c.with) - (c.at.To - c.at.From)
	}
	out := make([]byte, 0, size)
	from := 0
	for _, c := range cuts {
		out = append(out, body[from:c.at.From]...)
		out = append(out, c.with...)
		from = c.at.To
	}
	return append(out, body[from:]...)
}

// quote writes a model name as a JSON string. Config refuses control
// characters in names, so quotes and backslashes are all that JSON and Go
// could differ in; strconv would escape non-ASCII differently.
func quote(s string) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, `\u00`...)
			b = strconv.AppendInt(b, int64(c>>4), 16)
			b = strconv.AppendInt(b, int64(c&15), 16)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
