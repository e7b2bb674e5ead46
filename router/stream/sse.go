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
	data     func(p []byte)
	dispatch func() // at the empty line that ends an event

	part    linePart
	field   [8]byte // name of the field, cut
	fieldN  int     // its length, of which at most len(field) are kept
	afterCR bool    // a line feed that comes next belongs to the line that ended
	isData  bool
	isEvent bool

	hasData bool // a data field came in this event
	dataN   int
	peek    [peekBytes]byte
	name    [32]byte // of the event, cut
	nameN   int
}

func (l *lines) write(p []byte) {
	for len(p) > 0 {
		if l.afterCR {
			l.afterCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end, line := len(p), p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			end, line = i, p[:i]
		}
		if i := bytes.IndexByte(line, '\r'); i >= 0 {
			end, line = i, p[:i]
		}
		l.linePiece(line)
		if end == len(p) {
			return
		}
		l.afterCR = p[end] == '\r'
		l.endLine()
		p = p[end+1:]
	}
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
		l.data(p)
	}
	if l.isEvent {
		l.nameN += copy(l.name[l.nameN:], p)
	}
}

func (l *lines) endLine() {
	empty := l.part == fieldName && l.fieldN == 0
	if l.part == fieldName && !empty {
		l.startValue() // a field without a colon has an empty value
	}
	l.part, l.fieldN, l.isData, l.isEvent = fieldName, 0, false, false
	if empty {
		l.endEvent()
	}
}

func (l *lines) endEvent() {
	if l.hasData {
		l.dispatch()
	}
	l.hasData, l.dataN, l.nameN = false, 0, 0
}

// done says whether the event's data is the word that ends a Chat Completions
// stream.
func (l *lines) done() bool {
	return l.dataN <= peekBytes && string(bytes.TrimSpace(l.peek[:l.dataN])) == "[DONE]"
}

func (l *lines) event() []byte { return l.name[:l.nameN] }
