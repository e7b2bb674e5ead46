package stream

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"

	"agentop/agents/outline"
)

// Limits of what a Summary repeats of an answer. A longer model name or id is
// left out, not cut: a cut one would be another's.
const (
	maxModel = 200
	maxID    = 256
	maxWord  = 64 // stop reasons and error codes
)

type form uint8

const (
	undecided form = iota // only white space so far
	events
	body
	unreadable
)

// Observer reads one answer as it passes. It is not safe for concurrent use.
// Its memory is bounded: some kilobytes, at most about two megabytes for an
// answer made to be hard, however long the answer is.
type Observer struct {
	format  outline.Format
	isSSE   bool // by its content type
	newHash func() Hash

	form  form
	bom   int // bytes of a byte order mark that came
	lines lines
	w     *walker

	sum      Summary
	text     [headBytes]byte
	textLen  int
	textFull bool
	mark     tally
	noMark   bool // a limit was met, or the answer contradicts itself: it has no mark
	usage    Usage
	open     blocks
	item     item
	output   tally // Responses: the items that the last event repeated
	anyItem  bool  // Responses: an item came in an event of its own
	choices  choices
	decoder  *decoder
	finished bool
}

// New returns an Observer for an answer in format f with the given
// Content-Type. The type only decides in doubt: an answer that begins with
// "{" is read as JSON, one that begins as a field of an event stream does as
// events. newHash makes the hashes of the reply mark.
func New(f outline.Format, contentType string, newHash func() Hash) *Observer {
	o := observers.Get().(*Observer)
	o.format, o.isSSE, o.newHash = f, IsEventStream(contentType), newHash
	return o
}

// observers are those that were freed, with some memory for blocks.
var observers = sync.Pool{New: func() any { return new(Observer) }}

// Free lets another answer have o's memory, once it was closed; none of its
// methods may be called afterwards. It need not be called.
func (o *Observer) Free() {
	open, choices := o.open.empty(), choices{list: o.choices.list[:0], calls: o.choices.calls[:0]}
	*o = Observer{open: open, choices: choices}
	observers.Put(o)
}

// LeaveOutText has the Summary without Text, which few want and which takes half
// a kilobyte. It is called before the first Write.
func (o *Observer) LeaveOutText() { o.textFull = true }

// IsEventStream says whether a Content-Type is text/event-stream, whatever its
// case, spaces and parameters.
func IsEventStream(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// Write reads the next bytes of the answer; pieces may begin and end anywhere.
// It never fails and keeps nothing of p.
func (o *Observer) Write(p []byte) {
	if o.finished {
		return
	}
	if o.decoder != nil {
		o.decoder.write(p)
		return
	}
	o.read(p)
}

func (o *Observer) read(p []byte) {
	if o.form == undecided {
		p = o.decide(p)
	}
	switch o.form {
	case events:
		o.lines.write(p)
	case body:
		o.w.write(p)
	}
}

// decide skips white space and a byte order mark, and tells by the first byte
// after it what the answer is.
func (o *Observer) decide(p []byte) []byte {
	const mark = "\xEF\xBB\xBF"
	for o.bom < len(mark) && len(p) > 0 && p[0] == mark[o.bom] {
		o.bom++
		p = p[1:]
	}
	if len(p) == 0 {
		return nil
	}
	o.bom = len(mark) // it can only come first
	p = bytes.TrimLeft(p, " \t\r\n")
	if len(p) == 0 {
		return nil
	}
	roots, known := formatRoots[o.format]
	switch {
	case !known:
		o.form = unreadable
	case p[0] == '{':
		o.form = body
		o.w = newWalker(roots.body, o.newHash, o.closed)
	case o.isSSE || strings.IndexByte(":deir", p[0]) >= 0:
		o.form = events
		o.w = newWalker(roots.event, o.newHash, o.closed)
		o.lines = lines{to: o}
		o.open.newHash = o.newHash
	default:
		o.form = unreadable
	}
	return p
}

var formatRoots = map[outline.Format]struct{ event, body node }{
	outline.Messages:        {messagesEvent, messagesBody},
	outline.Responses:       {responsesEvent, responsesBody},
	outline.ChatCompletions: {chatEvent, chatBody},
}

// begin makes ready for the data of an event that has to be read.
func (o *Observer) begin() {
	if o.w.shape.known {
		o.restart() // the event before left what it found
	}
}

// endEvent applies an event that is whole. One that is not JSON is passed over.
// event has its bytes, of which tail come after its data, or none.
func (o *Observer) endEvent(event []byte, tail int) {
	if o.w.over {
		o.noMark = true
	}
	switch {
	case o.format == outline.ChatCompletions && o.lines.done():
		o.sum.Terminated = true
	case o.w.whole():
		o.apply()
		if o.learn(event, tail) {
			return // what was found may be needed again
		}
	}
	o.restart()
}

// apply takes in what the walker found in an event.
func (o *Observer) apply() {
	switch o.format {
	case outline.Messages:
		o.messagesEvent()
	case outline.Responses:
		o.responsesEvent()
	case outline.ChatCompletions:
		o.chatEvent()
	}
}

// restart makes ready for the next event.
func (o *Observer) restart() {
	o.w.restart()
	o.item, o.output = item{}, tally{}
	o.choices.reset()
}

// closed is told of each object or array that ends at a node.
func (o *Observer) closed(n node) {
	switch n {
	case messagesBlock:
		o.messagesBlock()
	case responsesPart:
		o.responsesPart()
	case responsesItem:
		o.responsesItem()
	case deltaCall, deltaLegacy:
		o.chatDeltaCall()
	case eventChoice:
		o.chatEventChoice()
	case chatPart:
		o.chatPart()
	case bodyCall, bodyLegacy:
		o.chatBodyCall()
	case bodyChoice:
		o.chatBodyChoice()
	}
}

// Ended says whether the answer's own end has come: the terminator of an event
// stream, or the last brace of JSON. A stream of Chat Completions that leaves
// out its last word has no end but the body's.
func (o *Observer) Ended() bool {
	if o.finished {
		return o.sum.Terminated
	}
	switch o.form {
	case events:
		return o.sum.Terminated
	case body:
		return o.w.whole()
	}
	return false
}

// Summary ends the observation and says what is known. Later writes count for
// nothing.
func (o *Observer) Summary() Summary {
	o.Close()
	return o.sum
}

// Close ends the observation and frees what a decoder holds. It may be called
// more than once, and must be called once (by Summary, or alone).
func (o *Observer) Close() {
	if o.finished {
		return
	}
	if o.decoder != nil {
		o.decoder.close()
	}
	o.finished = true
	switch o.form {
	case events:
		o.lines.endEvent(nil, 0) // clients differ on an event that ends with the stream; it came whole
		o.endEvents()
	case body:
		if o.w.whole() {
			o.sum.Terminated = true
			o.endBody()
		} else {
			o.sum = Summary{Unread: o.w.tok.state == failed}
			o.textLen, o.noMark = 0, true
		}
		o.noMark = o.noMark || o.w.over
	case unreadable:
		o.sum.Unread = true
	}
	if o.decoder != nil && o.decoder.broken && !o.sum.Terminated {
		o.sum.Unread, o.noMark = true, true
	}
	o.sum.EventStream = o.form == events || o.form == undecided && o.isSSE
	o.sum.Usage = o.usageTotals()
	o.sum.Text = string(o.text[:o.textLen])
	if !o.noMark {
		o.sum.Mark, o.sum.MarkBytes = o.mark.sum, o.mark.bytes
	}
	if o.w != nil {
		o.w.release()
		o.w, o.lines = nil, lines{}
	}
}

func (o *Observer) endEvents() {
	switch o.format {
	case outline.Messages:
		if o.sum.Terminated && o.sum.Error == "" {
			o.mark.add(o.open.finishAll()) // blocks that the server did not bother to close
		}
	case outline.ChatCompletions:
		o.chatEnd()
	}
}

func (o *Observer) endBody() {
	w := o.w
	switch o.format {
	case outline.Messages:
		if w.has(failure) {
			o.fail(typeFirst)
		}
		o.answerHead()
	case outline.Responses:
		o.mark = o.output
		o.addText(w.head[:w.headLen])
		o.responsesAnswer()
	case outline.ChatCompletions:
		if w.has(failure) || string(w.bytes(object)) == "error" {
			o.fail(codeFirst)
		}
		o.answerHead()
	}
}

// answerHead takes what an answer says of itself.
func (o *Observer) answerHead() {
	o.word(&o.sum.StopReason, stopReason, maxWord)
	o.word(&o.sum.Model, model, maxModel)
	o.takeUsage()
}

// word copies a captured value to dst, unless it is empty or too long.
func (o *Observer) word(dst *string, n node, limit int) {
	if p := o.w.bytes(n); len(p) > 0 && len(p) <= limit && string(p) != *dst {
		*dst = string(p)
	}
}

// addText appends to the answer's first text, whole characters only.
func (o *Observer) addText(p []byte) {
	room := headBytes - o.textLen
	if o.textFull || len(p) == 0 {
		return
	}
	if len(p) > room {
		for room > 0 && !utf8.RuneStart(p[room]) {
			room--
		}
		p, o.textFull = p[:room], true
	}
	o.textLen += copy(o.text[o.textLen:], p)
}
