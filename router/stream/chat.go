package stream

// maxCalls is how many pieces of tool calls one chunk may hold.
const maxCalls = 128

// choice is a choice in a chunk, held until the chunk is whole. Its spans are
// valid as long.
type choice struct {
	index   int64
	content span
	finish  span
	calls   [2]int // its part of choices.calls
}

// callPiece is an element of a chunk's tool_calls.
type callPiece struct {
	index               int64 // -1 when not told
	id, name, arguments span
	input               span // of a custom tool: plain text
}

// choices is what a chunk says, and what is known of the stream's choices.
// Choice 0 is the answer; of the others only their end matters.
type choices struct {
	list  []choice
	calls []callPiece

	seen, ended uint64 // bits of the choices that came, and of those with a finish reason
	last        int64  // index of the newest tool call, for servers that leave it out
}

func (c *choices) reset() {
	c.list, c.calls = c.list[:0], c.calls[:0]
}

func (o *Observer) chatDeltaCall() {
	w := o.w
	if len(o.choices.calls) == maxCalls {
		o.noMark = true
		return
	}
	i, ok := w.number(callIndex)
	if !ok {
		i = -1
	}
	o.choices.calls = append(o.choices.calls, callPiece{
		i, w.spans[startID], w.spans[startName], w.spans[deltaArguments], w.spans[deltaInput],
	})
	w.unset(callIndex, startID, startName, deltaArguments, deltaInput)
}

func (o *Observer) chatEventChoice() {
	w, c := o.w, &o.choices
	from := 0
	if n := len(c.list); n > 0 {
		from = c.list[n-1].calls[1]
	}
	if len(c.list) == maxCalls {
		o.noMark = true
		return
	}
	i, _ := w.number(index)
	c.list = append(c.list, choice{i, w.spans[deltaContent], w.spans[stopReason], [2]int{from, len(c.calls)}})
	w.unset(index, deltaContent, stopReason)
}

// chatEvent applies one chunk of the Chat Completions format.
func (o *Observer) chatEvent() {
	w := o.w
	if w.has(failure) || string(w.bytes(object)) == "error" || string(o.lines.event()) == "error" {
		o.fail(codeFirst)
		return
	}
	o.word(&o.sum.Model, model, maxModel)
	o.takeUsage()
	for _, c := range o.choices.list {
		o.chatChoice(c)
	}
}

func (o *Observer) chatChoice(c choice) {
	bit := uint64(1) << min(c.index, 63)
	o.choices.seen |= bit
	if c.index == 0 {
		o.chatContent(o.w.arena[c.content.from:c.content.to])
		for _, call := range o.choices.calls[c.calls[0]:c.calls[1]] {
			o.chatCall(call)
		}
	}
	if c.finish.set {
		o.choices.ended |= bit
		if p := o.w.arena[c.finish.from:c.finish.to]; c.index == 0 && len(p) <= maxWord {
			o.sum.StopReason = string(p)
		}
	}
}

func (o *Observer) chatContent(p []byte) {
	if len(p) == 0 {
		return
	}
	b := o.open.find(0, false)
	if b == nil {
		b = o.open.start(0, false)
	}
	o.blockText(b, p)
}

func (o *Observer) chatCall(c callPiece) {
	arena := o.w.arena
	if c.index < 0 {
		c.index = o.choices.last
		if c.id.set && o.open.find(c.index, true) != nil {
			c.index++
		}
	}
	o.choices.last = max(o.choices.last, c.index)
	b := o.open.find(c.index, true)
	if b == nil {
		if b = o.open.start(c.index, true); b == nil {
			o.noMark = true
			return
		}
	}
	if b.id.bytes == 0 {
		b.id = o.hashed(arena[c.id.from:c.id.to])
	}
	if b.name.bytes == 0 {
		b.name = o.hashed(arena[c.name.from:c.name.to])
	}
	if p := arena[c.arguments.from:c.arguments.to]; len(p) > 0 {
		b.args.write(p)
	}
	if p := arena[c.input.from:c.input.to]; len(p) > 0 {
		b.text.write(p)
	}
}

// chatEnd counts what choice 0 said, if it was finished: the format does not
// tell the end of a text or a call in any other way.
func (o *Observer) chatEnd() {
	c := &o.choices
	if c.seen != 0 && c.seen == c.ended {
		o.sum.Terminated = true
	}
	if c.ended&1 == 1 || o.sum.Terminated && o.sum.Error == "" {
		o.mark.add(o.open.finishAll())
	}
}

func (o *Observer) chatPart() {
	w := o.w
	if isTextType(w.bytes(partType)) {
		o.item.parts.add(w.text)
	} else {
		w.headLen = w.headFrom
	}
	w.text, w.headFrom = tally{}, w.headLen
	w.drop(chatPart, partType)
}

func (o *Observer) chatBodyCall() {
	w := o.w
	for _, t := range []tally{w.id, w.name, w.input} {
		o.item.whole.add(t)
	}
	w.id, w.name, w.input = tally{}, tally{}, tally{}
}

func (o *Observer) chatBodyChoice() {
	w := o.w
	if i, _ := w.number(index); i == 0 {
		o.mark.add(w.text) // content as one string
		o.mark.add(o.item.parts)
		o.mark.add(o.item.whole)
		o.addText(w.head[:w.headLen])
		o.word(&o.sum.StopReason, stopReason, maxWord)
	}
	o.item = item{}
	w.forget()
	w.drop(bodyChoice, index, stopReason)
}
