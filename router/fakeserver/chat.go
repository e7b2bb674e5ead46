package fakeserver

import (
	"encoding/json"
	"fmt"
)

// chat writes the reply as OpenAI's Chat Completions API does. usageChunk adds
// the last chunk that carries the usage.
func (r *reply) chat(usageChunk bool) answer {
	var a answer
	chunk := func(choices, usage json.RawMessage) {
		a.events = append(a.events, event{"", object("id", "chatcmpl-"+r.id, "object", "chat.completion.chunk",
			"created", r.created, "model", r.model, "choices", choices, "usage", usage)})
	}
	null := json.RawMessage("null")
	delta := func(d json.RawMessage) {
		chunk(list(object("index", 0, "delta", d, "logprobs", nil, "finish_reason", nil)), null)
	}

	delta(object("role", "assistant", "content", ""))
	if r.thinking != "" {
		delta(object("reasoning_content", r.thinking))
	}
	for _, p := range r.pieces {
		delta(object("content", p))
	}
	var calls []json.RawMessage
	for i, t := range r.tools {
		id := fmt.Sprintf("%s_%d", r.sig.id("call"), i)
		delta(object("tool_calls", list(object("index", i, "id", id, "type", "function",
			"function", object("name", t.Name, "arguments", "")))))
		for _, p := range split(t.Input, 4) {
			delta(object("tool_calls", list(object("index", i, "function", object("arguments", p)))))
		}
		calls = append(calls, object("id", id, "type", "function",
			"function", object("name", t.Name, "arguments", t.Input)))
	}
	finish := "stop"
	if len(r.tools) > 0 {
		finish = "tool_calls"
	}
	chunk(list(object("index", 0, "delta", object(), "logprobs", nil, "finish_reason", finish)), null)
	u := r.usage
	usage := object("prompt_tokens", u.Input, "completion_tokens", u.Output, "total_tokens", u.Input+u.Output,
		"prompt_tokens_details", object("cached_tokens", u.CacheRead))
	if usageChunk {
		chunk(list[any](), usage)
	}
	a.events = append(a.events, event{"", []byte("[DONE]")})
	a.body = object("id", "chatcmpl-"+r.id, "object", "chat.completion", "created", r.created, "model", r.model,
		"choices", list(object("index", 0, "message", r.chatMessage(calls), "logprobs", nil, "finish_reason", finish)),
		"usage", usage)
	return a
}

func (r *reply) chatMessage(calls []json.RawMessage) json.RawMessage {
	var content any
	if r.text != "" {
		content = r.text
	}
	pairs := []any{"role", "assistant", "content", content}
	if r.thinking != "" {
		pairs = append(pairs, "reasoning_content", r.thinking)
	}
	if len(calls) > 0 {
		pairs = append(pairs, "tool_calls", list(calls...))
	}
	return object(pairs...)
}
