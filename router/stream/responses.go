package stream

// item is an item of a Responses output, as far as it was read.
type item struct {
	parts tally // texts of its content
	whole tally // what the item is worth, once it is closed
	head  int   // where its text begins in the walker's head
}

// responsesEvent applies one event of the Responses format. Items are taken
// from output_item.done, which repeats each one whole; the last event's list
// of them counts only where no item came by itself.
func (o *Observer) responsesEvent() {
	w := o.w
	switch string(o.eventType()) {
	case "response.created", "response.in_progress":
		o.responsesAnswer()
	case "response.output_item.done":
		o.anyItem = true
		o.mark.add(o.item.whole)
		o.addText(w.head[:w.headLen])
	case "response.completed", "response.incomplete", "response.failed":
		o.responsesAnswer()
		o.sum.Terminated = true
		if !o.anyItem {
			o.mark.add(o.output)
			o.addText(w.head[:w.headLen])
		}
	case "error":
		o.fail(codeFirst)
	default:
		if w.has(failure) && !w.has(eventType) {
			o.fail(codeFirst)
		}
	}
}

// responsesAnswer takes what a response object says of itself.
func (o *Observer) responsesAnswer() {
	w := o.w
	o.word(&o.sum.ResponseID, answerID, maxID)
	o.word(&o.sum.Model, model, maxModel)
	if string(w.bytes(status)) != "in_progress" {
		o.word(&o.sum.StopReason, status, maxWord)
		o.word(&o.sum.StopReason, incompleteReason, maxWord)
	}
	o.takeUsage()
	if w.has(failure) {
		o.fail(codeFirst)
	}
}

// responsesPart counts a text of a message item.
func (o *Observer) responsesPart() {
	w := o.w
	if isTextType(w.bytes(partType)) {
		o.item.parts.add(w.text)
	} else {
		w.headLen = w.headFrom
	}
	w.text, w.headFrom = tally{}, w.headLen
	w.drop(responsesPart, partType)
}

// responsesItem works out what an item is worth: it may be told of its type
// last.
func (o *Observer) responsesItem() {
	w := o.w
	var t tally
	switch string(w.bytes(itemType)) {
	case "message":
		t = o.item.parts
		o.item.head = w.headLen
	case "function_call", "custom_tool_call":
		t.add(w.id)
		t.add(w.name)
		t.add(w.input)
	}
	w.headLen = o.item.head // only a message has text
	w.headFrom = w.headLen
	o.item = item{whole: t, head: w.headLen}
	o.output.add(t)
	w.id, w.name, w.input = tally{}, tally{}, tally{}
	w.drop(responsesItem, itemType)
}
