package fakeserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// event is one server-sent event. Its data is JSON, or the word [DONE]; an
// event without a name and data is a comment.
type event struct {
	name string
	data []byte
}

// answer is a reply in one format: what is streamed, and the same as one JSON
// value.
type answer struct {
	events []event
	body   []byte
}

// reply is what an answer says, whatever its format.
type reply struct {
	sig      Signature
	id       string
	model    string
	created  int64
	thinking string
	text     string
	pieces   []string // of text
	tools    []ToolCall
	compact  bool // a compaction item instead of a message
	usage    Usage
}

// object is a JSON object of the given names and values, in their order: real
// servers have "type" first.
func object(pairs ...any) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(pairs[i]))
		b.WriteByte(':')
		b.Write(encode(pairs[i+1]))
	}
	b.WriteByte('}')
	return b.Bytes()
}

func encode(v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return raw // as it is: a script's arguments may be broken on purpose
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func list[T any](items ...T) json.RawMessage {
	parts := make([][]byte, len(items))
	for i, it := range items {
		parts[i] = encode(it)
	}
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
}

// compose decides what a request gets.
func (s *Server) compose(rec *Record, b Behaviour) reply {
	sig := Signature{s.opts.Name, s.replies.Add(1)}
	r := reply{
		sig: sig, model: rec.Model, thinking: b.Thinking, tools: b.Tools, created: rec.Time.Unix(),
		id: fmt.Sprintf("%s-%d", s.opts.Name, sig.N), compact: rec.Format == Responses && rec.request.compacts(),
	}
	if r.model == "" && len(s.opts.Models) > 0 {
		r.model = s.opts.Models[0]
	}
	r.text = s.text(rec, b, sig)
	if strings.Contains(r.text, sig.String()) || len(r.tools) > 0 {
		rec.Reply = sig
	}
	r.pieces = split(r.text, b.Events)
	if b.LongLine > 0 {
		long := strings.Repeat("x", b.LongLine)
		r.text += long
		r.pieces = append(r.pieces, long)
	}
	r.usage = s.usage(rec, len(r.text)+len(r.thinking))
	if b.Usage != nil {
		r.usage = *b.Usage
	}
	rec.Usage = r.usage
	return r
}

func (s *Server) text(rec *Record, b Behaviour, sig Signature) string {
	switch {
	case b.NoText:
		return ""
	case b.Unsigned:
		return b.Text
	case b.Text != "":
		return sig.String() + " " + b.Text
	}
	if want := rec.request.wantsSchema(); want != nil {
		return string(encode(want.instance(rec.request.title())))
	}
	if rec.request.wantsTitle() {
		return rec.request.title()
	}
	size := b.TextBytes
	if size == 0 {
		size = 120
	}
	return sig.String() + " " + filler(sig, size)
}

// split cuts text into n pieces between characters; zero is six.
func split(text string, n int) []string {
	if n <= 0 {
		n = 6
	}
	runes := []rune(text)
	size := max(1, (len(runes)+n-1)/n)
	var pieces []string
	for len(runes) > 0 {
		k := min(size, len(runes))
		pieces = append(pieces, string(runes[:k]))
		runes = runes[k:]
	}
	return pieces
}

// build writes the reply in the request's format.
func (r *reply) build(f Format, usageChunk bool) answer {
	switch f {
	case Messages:
		return r.messages()
	case Responses:
		return r.responses()
	}
	return r.chat(usageChunk)
}

// errorBody is an error in the shape of the request's format.
func errorBody(rec *Record, kind, message string) []byte {
	if speaksMessages(rec) {
		return object("type", "error", "error", object("type", kind, "message", message),
			"request_id", fmt.Sprintf("req_%d", rec.N))
	}
	return object("error", object("message", message, "type", kind, "param", nil, "code", kind))
}

// speaksMessages says whether a request is of Anthropic's API.
func speaksMessages(rec *Record) bool {
	return rec.Format == Messages || rec.Header.Get("anthropic-version") != "" ||
		strings.Contains(rec.Path, "/messages")
}

// errorEvent is an error in the middle of a stream.
func errorEvent(rec *Record) event {
	const kind, message = "overloaded_error", "the server is overloaded"
	switch rec.Format {
	case Messages:
		return event{"error", object("type", "error", "error", object("type", kind, "message", message))}
	case Responses:
		return event{"response.failed", object("type", "response.failed", "response",
			object("id", "resp_failed", "object", "response", "status", "failed",
				"error", object("code", "server_is_overloaded", "message", message), "output", list[any]()))}
	}
	return event{"", object("error", object("message", message, "type", kind, "code", "overloaded"))}
}
