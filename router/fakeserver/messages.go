package fakeserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// messages writes the reply as Anthropic's Messages API does.
func (r *reply) messages() answer {
	var a answer
	var blocks []json.RawMessage
	add := func(name string, data json.RawMessage) { a.events = append(a.events, event{name, data}) }
	delta := func(d json.RawMessage) {
		add("content_block_delta", object("type", "content_block_delta", "index", len(blocks), "delta", d))
	}
	block := func(start, whole json.RawMessage, deltas func()) {
		add("content_block_start", object("type", "content_block_start", "index", len(blocks), "content_block", start))
		deltas()
		add("content_block_stop", object("type", "content_block_stop", "index", len(blocks)))
		blocks = append(blocks, whole)
	}

	add("message_start", object("type", "message_start", "message", r.message(list[any](), nil, 1)))
	add("ping", object("type", "ping"))
	if r.thinking != "" {
		signature := base64.StdEncoding.EncodeToString([]byte(r.sig.String() + r.thinking))
		block(object("type", "thinking", "thinking", "", "signature", ""),
			object("type", "thinking", "thinking", r.thinking, "signature", signature), func() {
				delta(object("type", "thinking_delta", "thinking", r.thinking))
				delta(object("type", "signature_delta", "signature", signature))
			})
	}
	if r.text != "" {
		block(object("type", "text", "text", ""), object("type", "text", "text", r.text), func() {
			for _, p := range r.pieces {
				delta(object("type", "text_delta", "text", p))
			}
		})
	}
	for i, t := range r.tools {
		id := fmt.Sprintf("%s_%d", r.sig.id("toolu"), i)
		block(object("type", "tool_use", "id", id, "name", t.Name, "input", object()),
			object("type", "tool_use", "id", id, "name", t.Name, "input", json.RawMessage(t.Input)), func() {
				delta(object("type", "input_json_delta", "partial_json", ""))
				for _, p := range split(t.Input, 4) {
					delta(object("type", "input_json_delta", "partial_json", p))
				}
			})
	}
	stop := "end_turn"
	if len(r.tools) > 0 {
		stop = "tool_use"
	}
	add("message_delta", object("type", "message_delta",
		"delta", object("stop_reason", stop, "stop_sequence", nil),
		"usage", object("output_tokens", r.usage.Output)))
	add("message_stop", object("type", "message_stop"))
	a.body = r.message(list(blocks...), stop, r.usage.Output)
	return a
}

func (r *reply) message(content json.RawMessage, stop any, output int) json.RawMessage {
	u := r.usage
	return object("id", "msg_"+r.id, "type", "message", "role", "assistant", "model", r.model,
		"content", content, "stop_reason", stop, "stop_sequence", nil,
		"usage", object("input_tokens", u.Input-u.CacheRead-u.CacheWrite,
			"cache_creation_input_tokens", u.CacheWrite, "cache_read_input_tokens", u.CacheRead,
			"output_tokens", output, "service_tier", "standard"))
}
