package stream

// messagesEvent applies one event of the Messages format.
func (o *Observer) messagesEvent() {
	w := o.w
	if w.has(failure) {
		o.fail(typeFirst)
		return
	}
	switch string(o.eventType()) {
	case "message_start":
		o.answerHead()
	case "content_block_start":
		o.messagesBlockStart()
	case "content_block_delta":
		o.messagesBlockDelta()
	case "content_block_stop":
		i, _ := w.number(index)
		for _, call := range []bool{false, true} {
			if b := o.open.find(i, call); b != nil {
				o.mark.add(o.open.finish(b))
			}
		}
	case "message_delta":
		o.answerHead()
	case "message_stop":
		o.sum.Terminated = true
	case "error":
		o.fail(typeFirst)
	}
}

// eventType is the event's "type", or its SSE name where that is missing.
func (o *Observer) eventType() []byte {
	if o.w.has(eventType) {
		return o.w.bytes(eventType)
	}
	return o.lines.event()
}

func (o *Observer) messagesBlockStart() {
	w := o.w
	isText, isCall := messagesKind(w.bytes(itemType))
	if !isText && !isCall {
		return
	}
	i, _ := w.number(index)
	if b := o.open.find(i, isCall); b != nil { // its end was left out
		o.mark.add(o.open.finish(b))
	}
	b := o.open.start(i, isCall)
	if b == nil {
		o.noMark = true
		return
	}
	if isText {
		o.blockText(b, w.bytes(deltaContent))
		return
	}
	b.id, b.name, b.input = o.hashed(w.bytes(startID)), o.hashed(w.bytes(startName)), w.input
}

func (o *Observer) messagesBlockDelta() {
	i, _ := o.w.number(index)
	if p := o.w.bytes(deltaContent); len(p) > 0 {
		if b := o.open.find(i, false); b != nil {
			o.blockText(b, p)
		}
	}
	if p := o.w.bytes(partialJSON); len(p) > 0 {
		if b := o.open.find(i, true); b != nil {
			b.args.write(p)
		}
	}
}

func (o *Observer) blockText(b *block, p []byte) {
	if len(p) > 0 {
		b.text.write(p)
		o.addText(p)
	}
}

// hashed is the tally of a text that is there whole; nothing when it is empty.
func (o *Observer) hashed(p []byte) tally {
	if len(p) == 0 {
		return tally{}
	}
	o.w.current.write(p)
	return o.w.current.take()
}

func messagesKind(kind []byte) (isText, isCall bool) {
	if isTextType(kind) {
		return true, false
	}
	switch string(kind) {
	case "tool_use", "server_tool_use", "mcp_tool_use":
		return false, true
	}
	return false, false
}

// messagesBlock counts a block of an answer that is one JSON value.
func (o *Observer) messagesBlock() {
	w := o.w
	if o.form == body {
		switch isText, isCall := messagesKind(w.bytes(itemType)); {
		case isText:
			o.mark.add(w.text)
			o.addText(w.head[:w.headLen])
		case isCall:
			o.mark.add(w.id)
			o.mark.add(w.name)
			o.mark.add(w.input)
		}
	}
	w.forget()
	w.drop(messagesBlock, itemType)
}

// isTextType says whether a block or part of this type is text; a type that is
// left out means text too.
func isTextType(kind []byte) bool {
	switch string(kind) {
	case "", "text", "output_text", "input_text":
		return true
	}
	return false
}
