package fakeserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// responsesWriter collects the events of one Responses stream.
type responsesWriter struct {
	reply  *reply
	events []event
	items  []json.RawMessage // those that are done
}

// responses writes the reply as OpenAI's Responses API does.
func (r *reply) responses() answer {
	w := &responsesWriter{reply: r}
	w.add("response.created", "response", w.response("in_progress", nil))
	w.add("response.in_progress", "response", w.response("in_progress", nil))
	if r.thinking != "" {
		w.reasoning()
	}
	switch {
	case r.compact:
		item := object("id", "cmp_"+r.id, "type", "compaction",
			"encrypted_content", base64.StdEncoding.EncodeToString([]byte(r.text)))
		w.item(item, item, nil)
	case r.text != "":
		w.message()
	}
	for i, t := range r.tools {
		w.call(i, t)
	}
	u := r.usage
	usage := object("input_tokens", u.Input, "input_tokens_details", object("cached_tokens", u.CacheRead),
		"output_tokens", u.Output, "output_tokens_details", object("reasoning_tokens", len(r.thinking)/4),
		"total_tokens", u.Input+u.Output)
	whole := w.response("completed", usage)
	w.add("response.completed", "response", whole)
	return answer{w.events, whole}
}

func (w *responsesWriter) add(name string, pairs ...any) {
	pairs = append([]any{"type", name, "sequence_number", len(w.events)}, pairs...)
	w.events = append(w.events, event{name, object(pairs...)})
}

func (w *responsesWriter) response(status string, usage json.RawMessage) json.RawMessage {
	r := w.reply
	if usage == nil {
		usage = json.RawMessage("null")
	}
	return object("id", "resp_"+r.id, "object", "response", "created_at", r.created, "status", status,
		"error", nil, "incomplete_details", nil, "model", r.model, "output", list(w.items...),
		"parallel_tool_calls", true, "tool_choice", "auto", "tools", list[any](), "usage", usage)
}

// item writes an item from its beginning to its end; deltas may be nil.
func (w *responsesWriter) item(start, whole json.RawMessage, deltas func()) {
	w.add("response.output_item.added", "output_index", len(w.items), "item", start)
	if deltas != nil {
		deltas()
	}
	w.add("response.output_item.done", "output_index", len(w.items), "item", whole)
	w.items = append(w.items, whole)
}

func (w *responsesWriter) reasoning() {
	r := w.reply
	sealed := base64.StdEncoding.EncodeToString([]byte(r.sig.String() + r.thinking))
	id := "rs_" + r.id
	w.item(object("id", id, "type", "reasoning", "summary", list[any]()),
		object("id", id, "type", "reasoning", "summary", list[any](), "encrypted_content", sealed), nil)
}

func (w *responsesWriter) message() {
	r, at := w.reply, len(w.items)
	id := "msg_" + r.id
	message := func(status string, content json.RawMessage) json.RawMessage {
		return object("id", id, "type", "message", "status", status, "role", "assistant", "content", content)
	}
	part := func(text string) json.RawMessage {
		return object("type", "output_text", "text", text, "annotations", list[any]())
	}
	w.item(message("in_progress", list[any]()), message("completed", list(part(r.text))), func() {
		w.add("response.content_part.added", "item_id", id, "output_index", at, "content_index", 0, "part", part(""))
		for _, p := range r.pieces {
			w.add("response.output_text.delta", "item_id", id, "output_index", at, "content_index", 0, "delta", p)
		}
		w.add("response.output_text.done", "item_id", id, "output_index", at, "content_index", 0, "text", r.text)
		w.add("response.content_part.done", "item_id", id, "output_index", at, "content_index", 0, "part", part(r.text))
	})
}

func (w *responsesWriter) call(i int, t ToolCall) {
	r, at := w.reply, len(w.items)
	id := fmt.Sprintf("fc_%s_%d", r.id, i)
	call := func(status, arguments string) json.RawMessage {
		return object("id", id, "type", "function_call", "status", status,
			"call_id", fmt.Sprintf("%s_%d", r.sig.id("call"), i), "name", t.Name, "arguments", arguments)
	}
	w.item(call("in_progress", ""), call("completed", t.Input), func() {
		for _, p := range split(t.Input, 4) {
			w.add("response.function_call_arguments.delta", "item_id", id, "output_index", at, "delta", p)
		}
		w.add("response.function_call_arguments.done", "item_id", id, "output_index", at, "arguments", t.Input)
	})
}
