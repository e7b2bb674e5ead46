package stream

import "agentop/agents/outline"

// errorOrder says which of an error's two words names it best.
type errorOrder uint8

const (
	typeFirst errorOrder = iota // Messages: "type"; there is no code
	codeFirst                   // OpenAI: "code" if it is a word, else "type", else a numeric code
)

// fail ends the answer with the error that was read.
func (o *Observer) fail(order errorOrder) {
	w := o.w
	o.sum.Terminated = true
	kind, code := w.bytes(failureType), w.bytes(failureCode)
	_, numeric := parseNumber(code)
	switch {
	case order == codeFirst && isWord(code) && !numeric:
		o.sum.Error = string(code)
	case isWord(kind):
		o.sum.Error = string(kind)
	case isWord(code):
		o.sum.Error = string(code)
	default:
		o.sum.Error = "error"
	}
}

// isWord says whether p can be shown and logged: a server may have put a
// sentence, or what it was sent, where a code belongs.
func isWord(p []byte) bool {
	for _, c := range p {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '_' && c != '-' && c != '.' && c != ':' {
			return false
		}
	}
	return len(p) > 0 && len(p) <= maxWord
}

// takeUsage takes the token counts that came; each may be told again, and the
// last one that is not zero holds.
func (o *Observer) takeUsage() {
	take := func(dst *int64, n node) {
		if v, ok := o.w.number(n); ok && v > 0 {
			*dst = v
		}
	}
	take(&o.usage.Input, inputTokens)
	take(&o.usage.Input, promptTokens)
	take(&o.usage.Output, outputTokens)
	take(&o.usage.CacheRead, cacheRead)
	take(&o.usage.CacheWrite, cacheWrite)
}

// usageTotals is the usage with Input meaning the same in all formats: a
// Messages answer tells cached tokens apart from the others, OpenAI's formats
// count them in.
func (o *Observer) usageTotals() Usage {
	u := o.usage
	if o.format == outline.Messages {
		u.Input += u.CacheRead + u.CacheWrite
	}
	return u
}
