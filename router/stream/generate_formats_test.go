package stream

func (g *generator) failure() obj {
	return obj{{"error", obj{{"type", g.word() + "_error"}, {"message", g.text()}, {"code", g.junkValue(0)}}}}
}

func (g *generator) usage(names ...string) obj {
	var u obj
	for _, n := range names {
		if g.IntN(4) > 0 {
			u = append(u, pair{n, g.IntN(5000)})
		}
	}
	return u
}

func (g *generator) messagesUsage() obj {
	return g.usage("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
}

func (g *generator) messagesEvents() []obj {
	events := []obj{{{"type", "message_start"}, {"message", obj{
		{"id", g.word()}, {"type", "message"}, {"model", g.word()}, {"content", []any{}}, {"stop_reason", nil},
		{"usage", g.messagesUsage()}}}}}
	for i := range g.IntN(5) {
		events = append(events, g.messagesBlock(i)...)
	}
	if g.IntN(8) == 0 {
		return append(events, append(obj{{"type", "error"}}, g.failure()...))
	}
	events = append(events, obj{{"type", "message_delta"}, {"delta", obj{{"stop_reason", "end_turn"}}}, {"usage", g.messagesUsage()}})
	return append(events, obj{{"type", "message_stop"}})
}

func (g *generator) messagesBlock(i int) []obj {
	delta := func(kind, name, value string) obj {
		return obj{{"type", "content_block_delta"}, {"index", i}, {"delta", obj{{"type", kind}, {name, value}}}}
	}
	start := obj{{"type", "text"}, {"text", g.text()}}
	var deltas []obj
	switch g.IntN(4) {
	case 0:
		start = obj{{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}
		deltas = append(deltas, delta("thinking_delta", "thinking", g.text()), delta("signature_delta", "signature", g.text()))
	case 1:
		start = obj{{"type", "tool_use"}, {"id", g.word()}, {"name", g.word()}, {"input", obj{}}}
		if g.IntN(4) == 0 {
			start[3].value = g.junkValue(3)
		}
		for _, p := range g.pieces(g.arguments()) {
			deltas = append(deltas, delta("input_json_delta", "partial_json", p))
		}
	default:
		for range g.IntN(4) {
			deltas = append(deltas, delta("text_delta", "text", g.text()))
		}
	}
	events := append([]obj{{{"type", "content_block_start"}, {"index", i}, {"content_block", start}}}, deltas...)
	if g.IntN(8) == 0 {
		return events
	}
	return append(events, obj{{"type", "content_block_stop"}, {"index", i}})
}

func (g *generator) messagesAnswer() obj {
	if g.IntN(8) == 0 {
		return append(obj{{"type", "error"}}, g.failure()...)
	}
	var blocks []any
	for range g.IntN(5) {
		switch g.IntN(3) {
		case 0:
			blocks = append(blocks, obj{{"type", "thinking"}, {"thinking", g.text()}, {"text", g.text()}})
		case 1:
			blocks = append(blocks, obj{{"type", "tool_use"}, {"id", g.word()}, {"name", g.word()}, {"input", g.junkValue(4)}})
		default:
			blocks = append(blocks, obj{{"type", "text"}, {"text", g.text()}})
		}
	}
	return obj{{"type", "message"}, {"id", g.word()}, {"model", g.word()}, {"content", blocks},
		{"stop_reason", g.word()}, {"usage", g.messagesUsage()}}
}

func (g *generator) items() []any {
	var items []any
	for range g.IntN(5) {
		switch g.IntN(5) {
		case 0:
			items = append(items, obj{{"type", "reasoning"}, {"content", []any{obj{{"type", "text"}, {"text", g.text()}}}},
				{"encrypted_content", g.word()}})
		case 1:
			items = append(items, obj{{"type", "function_call"}, {"id", g.word()}, {"call_id", g.word()},
				{"name", g.word()}, {"arguments", g.arguments()}})
		case 2:
			items = append(items, obj{{"type", "custom_tool_call"}, {"call_id", g.word()}, {"name", g.word()}, {"input", g.text()}})
		default:
			var parts []any
			for range g.IntN(4) {
				kind := []string{"output_text", "refusal", "output_text"}[g.IntN(3)]
				parts = append(parts, obj{{"type", kind}, {"text", g.text()}, {"annotations", []any{}}})
			}
			items = append(items, obj{{"type", "message"}, {"role", "assistant"}, {"content", parts}})
		}
	}
	return items
}

func (g *generator) responsesAnswer(status string, items []any) obj {
	o := obj{{"id", "resp_" + g.word()}, {"status", status}, {"model", g.word()}, {"output", items}, {"error", nil},
		{"usage", append(g.usage("input_tokens", "output_tokens"), pair{"input_tokens_details", g.usage("cached_tokens")})}}
	if status == "failed" {
		o[4] = g.failure()[0]
	}
	if status == "incomplete" {
		o = append(o, pair{"incomplete_details", obj{{"reason", "max_output_tokens"}}})
	}
	return o
}

func (g *generator) responsesEvents() []obj {
	events := []obj{{{"type", "response.created"}, {"response", g.responsesAnswer("in_progress", nil)}}}
	items := g.items()
	if g.IntN(4) > 0 {
		for i, it := range items {
			events = append(events,
				obj{{"type", "response.output_item.added"}, {"output_index", i}, {"item", it}},
				obj{{"type", "response.output_text.delta"}, {"output_index", i}, {"delta", g.text()}},
				obj{{"type", "response.output_item.done"}, {"output_index", i}, {"item", it}})
		}
	}
	if g.IntN(8) == 0 {
		return append(events, obj{{"type", "error"}, {"code", g.word()}, {"message", g.text()}})
	}
	status := []string{"completed", "completed", "failed", "incomplete"}[g.IntN(4)]
	return append(events, obj{{"type", "response." + status}, {"response", g.responsesAnswer(status, items)}})
}

func (g *generator) chatUsage() obj {
	return append(g.usage("prompt_tokens", "completion_tokens"), pair{"prompt_tokens_details", g.usage("cached_tokens")})
}

func (g *generator) chatEvents() []obj {
	var events []obj
	choices := 1 + g.IntN(8)/7
	chunk := func(i int, delta obj, finish any) {
		events = append(events, obj{{"object", "chat.completion.chunk"}, {"model", g.word()}, {"usage", nil}, {"choices", []any{
			obj{{"index", i}, {"delta", delta}, {"finish_reason", finish}}}}})
	}
	for i := range choices {
		chunk(i, obj{{"role", "assistant"}, {"content", ""}}, nil)
		for range g.IntN(4) {
			chunk(i, obj{{"content", g.text()}}, nil)
			chunk(i, obj{{"reasoning_content", g.text()}}, nil)
		}
		for k := range g.IntN(3) {
			chunk(i, obj{{"tool_calls", []any{obj{{"index", k}, {"id", g.word()}, {"function", obj{{"name", g.word()}, {"arguments", ""}}}}}}}, nil)
			for _, p := range g.pieces(g.arguments()) {
				chunk(i, obj{{"tool_calls", []any{obj{{"index", k}, {"function", obj{{"arguments", p}}}}}}}, nil)
			}
		}
		if g.IntN(8) > 0 {
			chunk(i, obj{}, "stop")
		}
	}
	if g.IntN(8) == 0 {
		events = append(events, g.failure())
	}
	return append(events, obj{{"choices", []any{}}, {"usage", g.chatUsage()}})
}

func (g *generator) chatAnswer() obj {
	if g.IntN(8) == 0 {
		return g.failure()
	}
	var content any = g.text()
	if g.IntN(4) == 0 {
		content = []any{obj{{"type", "text"}, {"text", g.text()}}, obj{{"type", "thinking"}, {"text", g.text()}}}
	}
	var calls []any
	for range g.IntN(3) {
		calls = append(calls, obj{{"id", g.word()}, {"type", "function"}, {"function", obj{{"name", g.word()}, {"arguments", g.arguments()}}}})
	}
	return obj{{"model", g.word()}, {"usage", g.chatUsage()}, {"choices", []any{
		obj{{"index", 0}, {"finish_reason", "stop"}, {"message", obj{{"role", "assistant"}, {"content", content}, {"tool_calls", calls}}}},
		obj{{"index", 1}, {"finish_reason", "length"}, {"message", obj{{"content", g.text()}}}}}}}
}
