package stream

import "bytes"

// peekBytes is what is kept of an event's data as it came: enough to know
// "[DONE]" by.
const peekBytes = 16

var newline = []byte("\n")

type linePart uint8

const (
	fieldName linePart = iota
	valueStart
	fieldValue
)

// lines splits a server-sent event stream that comes in pieces into fields.
// A data field's value goes to data piece by piece, so that a line of any
// length costs no memory.
type lines struct {
	to *Observer

	part    linePart
	field   [8]byte // name of the field, cut
	fieldN  int     // its length, of which at most len(field) are kept
	afterCR bool    // a line feed that comes next belongs to the line that ended
	isData  bool
	isEvent bool

	hasData bool // a data field came in this event
	dataN   int
	pieces  int // in which the data came
	rest    int // what was left, after its last one, of the bytes that held it
	peek    [peekBytes]byte
	name    [32]byte // of the event, cut
	nameN   int
}

func (l *lines) write(p []byte) {
	var event []byte // from where the event begins, if it does in p
	for len(p) > 0 {
		if l.afterCR {
			l.afterCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		if l.between() {
			if n := l.to.pass(p); n > 0 {
				p = p[n:]
				continue
			}
			event = p
		}
		end, line := len(p), p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			end, line = i, p[:i]
		}
		if i := bytes.IndexByte(line, '\r'); i >= 0 {
			end, line = i, p[:i]
		}
		l.linePiece(line)
		if l.isData {
			l.rest = len(p) - end
		}
		if end == len(p) {
			return
		}
		l.afterCR = p[end] == '\r'
		p = p[end+1:]
		l.endLine(event[:max(len(event)-len(p), 0)], len(p))
	}
}

// between reports whether nothing came yet of an event.
func (l *lines) between() bool {
	return l.part == fieldName && l.fieldN == 0 && !l.hasData && l.nameN == 0
}

func (l *lines) linePiece(p []byte) {
	for l.part == fieldName && len(p) > 0 {
		c := p[0]
		p = p[1:]
		if c == ':' {
			l.startValue()
			l.part = valueStart
			break
		}
		if l.fieldN < len(l.field) {
			l.field[l.fieldN] = c
		}
		l.fieldN++
	}
	if l.part == valueStart && len(p) > 0 {
		l.part = fieldValue
		if p[0] == ' ' {
			p = p[1:]
		}
	}
	if l.part == fieldValue && len(p) > 0 {
		l.value(p)
	}
}

func (l *lines) startValue() {
	if l.fieldN > len(l.field) {
		return
	}
	switch string(l.field[:l.fieldN]) {
	case "data":
		l.isData = true
		if l.hasData {
			l.value(newline)
		} else {
			l.to.begin()
		}
		l.hasData = true
	case "event":
		l.isEvent, l.nameN = true, 0
	}
}

func (l *lines) value(p []byte) {
	if l.isData {
		if l.dataN < peekBytes {
			copy(l.peek[l.dataN:], p)
		}
		l.dataN += len(p)
		l.pieces++
		l.to.w.write(p)
	}
	if l.isEvent {
		l.nameN += copy(l.name[l.nameN:], p)
	}
}

// endLine ends a line, and with an empty one the event: all of its bytes, or
// none if it began earlier, and how many come after it.
func (l *lines) endLine(event []byte, after int) {
	empty := l.part == fieldName && l.fieldN == 0
	if l.part == fieldName && !empty {
		l.startValue() // a field without a colon has an empty value
	}
	l.part, l.fieldN, l.isData, l.isEvent = fieldName, 0, false, false
	if empty {
		if l.pieces != 1 {
			event = nil
		}
		l.endEvent(event, l.rest-after)
	}
}

func (l *lines) endEvent(event []byte, tail int) {
	if l.hasData {
		l.to.endEvent(event, tail)
	}
	l.hasData, l.dataN, l.nameN, l.pieces = false, 0, 0, 0
}

// done says whether the event's data is the word that ends a Chat Completions
// stream.
func (l *lines) done() bool {
	return l.dataN <= peekBytes && string(bytes.TrimSpace(l.peek[:l.dataN])) == "[DONE]"
}

func (l *lines) event() []byte { return l.name[:l.nameN] }
