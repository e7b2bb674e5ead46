package stream

import (
	"bytes"
	"encoding/json"
	"io"

	"agentop/agents/outline"
)

func hasError(v any) bool {
	switch e := at(v, "error").(type) {
	case string:
		return e != ""
	case map[string]any:
		return true
	case json.Number:
		return len(e) <= 32
	}
	return false
}

func (r *reference) fail(order errorOrder, kind, code string) {
	r.sum.Terminated = true
	_, numeric := num(code)
	switch {
	case order == codeFirst && isWord([]byte(code)) && !numeric:
		r.sum.Error = code
	case isWord([]byte(kind)):
		r.sum.Error = kind
	case isWord([]byte(code)):
		r.sum.Error = code
	default:
		r.sum.Error = "error"
	}
}

func set(dst *string, s string, limit int) {
	if s != "" && len(s) <= limit {
		*dst = s
	}
}

func (r *reference) takeUsage(u any) {
	for _, f := range []struct {
		dst   *int64
		names []string
	}{
		{&r.usage.Input, []string{"input_tokens"}}, {&r.usage.Input, []string{"prompt_tokens"}},
		{&r.usage.Output, []string{"output_tokens"}}, {&r.usage.Output, []string{"completion_tokens"}},
		{&r.usage.CacheRead, []string{"cache_read_input_tokens"}},
		{&r.usage.CacheRead, []string{"prompt_cache_hit_tokens"}},
		{&r.usage.CacheRead, []string{"input_tokens_details", "cached_tokens"}},
		{&r.usage.CacheRead, []string{"prompt_tokens_details", "cached_tokens"}},
		{&r.usage.CacheWrite, []string{"cache_creation_input_tokens"}},
		{&r.usage.CacheWrite, []string{"input_tokens_details", "cache_write_tokens"}},
		{&r.usage.CacheWrite, []string{"prompt_tokens_details", "cache_write_tokens"}},
	} {
		if n, ok := num(u, f.names...); ok && n > 0 {
			*f.dst = n
		}
	}
}

// finish counts the blocks that which names and removes them.
func (r *reference) finish(which func(*refBlock) bool) {
	var left []*refBlock
	for _, b := range r.blocks {
		if !which(b) {
			left = append(left, b)
			continue
		}
		if !b.call {
			r.add(b.text)
			continue
		}
		r.add(b.id)
		r.add(b.name)
		r.add(b.plain)
		if b.arguments != "" {
			r.addArguments(b.arguments)
		} else {
			r.addValues(b.input)
		}
	}
	r.blocks = left
}

func (r *reference) find(index int64, call bool) *refBlock {
	for _, b := range r.blocks {
		if b.index == index && b.call == call {
			return b
		}
	}
	return nil
}

func (r *reference) messages(kind string, v any) {
	if hasError(v) || hasError(at(v, "message")) {
		e := at(v, "error")
		if !hasError(v) {
			e = at(v, "message", "error")
		}
		r.fail(typeFirst, str(e, "type"), str(e, "code"))
		return
	}
	i, _ := num(v, "index")
	switch kind {
	case "message_start":
		set(&r.sum.StopReason, str(v, "message", "stop_reason"), maxWord)
		set(&r.sum.Model, str(v, "message", "model"), maxModel)
		r.takeUsage(at(v, "message", "usage"))
		r.takeUsage(at(v, "usage"))
		set(&r.sum.StopReason, str(v, "delta", "stop_reason"), maxWord)
	case "message_delta":
		set(&r.sum.StopReason, str(v, "message", "stop_reason"), maxWord)
		set(&r.sum.Model, str(v, "message", "model"), maxModel)
		set(&r.sum.StopReason, str(v, "delta", "stop_reason"), maxWord)
		r.takeUsage(at(v, "message", "usage"))
		r.takeUsage(at(v, "usage"))
	case "content_block_start":
		start := at(v, "content_block")
		b := &refBlock{index: i}
		switch str(start, "type") {
		case "", "text", "output_text", "input_text":
			b.text = str(start, "text")
			r.text += b.text
		case "tool_use", "server_tool_use", "mcp_tool_use":
			b.call = true
			b.id, b.name, b.input = str(start, "id"), str(start, "name"), at(start, "input")
		default:
			return
		}
		r.finish(func(o *refBlock) bool { return o.index == i && o.call == b.call })
		r.blocks = append(r.blocks, b)
	case "content_block_delta":
		if b := r.find(i, false); b != nil {
			b.text += str(v, "delta", "text")
			r.text += str(v, "delta", "text")
		}
		if b := r.find(i, true); b != nil {
			b.arguments += str(v, "delta", "partial_json")
		}
	case "content_block_stop":
		r.finish(func(b *refBlock) bool { return b.index == i })
	case "message_stop":
		r.sum.Terminated = true
	case "error":
		r.fail(typeFirst, "", "")
	}
}

func (r *reference) responses(kind string, v any) {
	switch kind {
	case "response.created", "response.in_progress":
		r.response(at(v, "response"))
	case "response.output_item.done":
		r.anyItem = true
		r.item(at(v, "item"))
	case "response.completed", "response.incomplete", "response.failed":
		r.response(at(v, "response"))
		r.sum.Terminated = true
		if !r.anyItem {
			for _, it := range array(v, "response", "output") {
				r.item(it)
			}
		}
	case "error":
		e := v
		if _, ok := at(v, "error").(map[string]any); ok {
			e = at(v, "error")
		}
		r.fail(codeFirst, str(at(v, "error"), "type"), str(e, "code"))
	default:
		if hasError(v) && str(v, "type") == "" {
			e := at(v, "error")
			code := str(e, "code")
			if code == "" {
				code = str(v, "code")
			}
			r.fail(codeFirst, str(e, "type"), code)
		}
	}
}

func (r *reference) response(v any) {
	set(&r.sum.ResponseID, str(v, "id"), maxID)
	set(&r.sum.Model, str(v, "model"), maxModel)
	if s := str(v, "status"); s != "in_progress" {
		set(&r.sum.StopReason, s, maxWord)
		set(&r.sum.StopReason, str(v, "incomplete_details", "reason"), maxWord)
	}
	r.takeUsage(at(v, "usage"))
	if hasError(v) {
		r.fail(codeFirst, str(v, "error", "type"), str(v, "error", "code"))
	}
}

func (r *reference) item(v any) {
	switch str(v, "type") {
	case "message":
		for _, p := range array(v, "content") {
			r.part(p)
		}
	case "function_call":
		r.addValues(stringOnly(at(v, "call_id")))
		r.addValues(stringOnly(at(v, "name")))
		r.addArguments(at(v, "arguments"))
	case "custom_tool_call":
		r.addValues(stringOnly(at(v, "call_id")))
		r.addValues(stringOnly(at(v, "name")))
		r.addValues(at(v, "input"))
	}
}

func stringOnly(v any) any {
	if s, ok := v.(string); ok {
		return s
	}
	return nil
}

func (r *reference) part(p any) {
	if _, ok := p.(map[string]any); !ok || !isTextType([]byte(str(p, "type"))) {
		return
	}
	if text, ok := at(p, "text").(string); ok {
		r.add(text)
		r.text += text
	}
}

func (r *reference) chat(name string, v any) {
	if hasError(v) || str(v, "object") == "error" || name == "error" {
		kind, code := str(v, "error", "type"), str(v, "error", "code")
		if !hasError(v) {
			kind, code = str(v, "type"), str(v, "code")
		}
		r.fail(codeFirst, kind, code)
		return
	}
	set(&r.sum.Model, str(v, "model"), maxModel)
	r.takeUsage(at(v, "usage"))
	for _, c := range array(v, "choices") {
		r.takeUsage(at(c, "usage"))
		if _, ok := c.(map[string]any); !ok {
			continue
		}
		i, _ := num(c, "index")
		bit := uint64(1) << min(i, 63)
		r.seen |= bit
		if i == 0 {
			r.chatDelta(at(c, "delta"))
		}
		if f := str(c, "finish_reason"); f != "" {
			r.ended |= bit
			if i == 0 && len(f) <= maxWord {
				r.sum.StopReason = f
			}
		}
	}
}

func (r *reference) chatDelta(d any) {
	if text := str(d, "content"); text != "" {
		b := r.find(0, false)
		if b == nil {
			b = &refBlock{}
			r.blocks = append(r.blocks, b)
		}
		b.text += text
		r.text += text
	}
	for _, call := range array(d, "tool_calls") {
		if _, ok := call.(map[string]any); ok {
			r.chatCall(call)
		}
	}
}

func (r *reference) chatCall(call any) {
	i, ok := num(call, "index")
	if !ok {
		if i = r.last; str(call, "id") != "" && r.find(i, true) != nil {
			i++
		}
	}
	r.last = max(r.last, i)
	b := r.find(i, true)
	if b == nil {
		b = &refBlock{index: i, call: true}
		r.blocks = append(r.blocks, b)
	}
	if b.id == "" {
		b.id = str(call, "id")
	}
	if b.name == "" {
		b.name = str(call, "function", "name")
	}
	b.arguments += str(call, "function", "arguments")
}

func (r *reference) body(p []byte) {
	v, ok := parseJSON(p)
	if !ok {
		r.sum.Unread = syntaxError(p)
		return
	}
	r.sum.Terminated = true
	switch r.format {
	case outline.Messages:
		if hasError(v) {
			r.fail(typeFirst, str(v, "error", "type"), str(v, "error", "code"))
		}
		set(&r.sum.StopReason, str(v, "stop_reason"), maxWord)
		set(&r.sum.Model, str(v, "model"), maxModel)
		r.takeUsage(at(v, "usage"))
		for _, b := range array(v, "content") {
			r.messagesBlock(b)
		}
	case outline.Responses:
		for _, it := range array(v, "output") {
			r.item(it)
		}
		r.response(v)
	case outline.ChatCompletions:
		r.chatBody(v)
	}
}

// syntaxError says whether p is wrong, and not only cut.
func syntaxError(p []byte) bool {
	d := json.NewDecoder(bytes.NewReader(p))
	var v json.RawMessage
	err := d.Decode(&v)
	return err != io.ErrUnexpectedEOF
}

func (r *reference) messagesBlock(b any) {
	switch str(b, "type") {
	case "", "text", "output_text", "input_text":
		r.part(b)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		r.addValues(stringOnly(at(b, "id")))
		r.addValues(stringOnly(at(b, "name")))
		r.addValues(at(b, "input"))
	}
}

func (r *reference) chatBody(v any) {
	if hasError(v) || str(v, "object") == "error" {
		kind, code := str(v, "error", "type"), str(v, "error", "code")
		if !hasError(v) {
			kind, code = str(v, "type"), str(v, "code")
		}
		r.fail(codeFirst, kind, code)
	}
	set(&r.sum.Model, str(v, "model"), maxModel)
	r.takeUsage(at(v, "usage"))
	for _, c := range array(v, "choices") {
		r.takeUsage(at(c, "usage"))
		if _, ok := c.(map[string]any); !ok {
			continue
		}
		if i, _ := num(c, "index"); i != 0 {
			continue
		}
		set(&r.sum.StopReason, str(c, "finish_reason"), maxWord)
		if text, ok := at(c, "message", "content").(string); ok {
			r.add(text)
			r.text += text
		}
		for _, p := range array(c, "message", "content") {
			r.part(p)
		}
		for _, call := range array(c, "message", "tool_calls") {
			r.addValues(stringOnly(at(call, "id")))
			r.addValues(stringOnly(at(call, "function", "name")))
			r.addArguments(at(call, "function", "arguments"))
		}
	}
}
