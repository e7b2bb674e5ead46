package reqlog

import "encoding/json"

// raw is a line taken apart: strings point into the line, or into memory of
// their own where they held escapes. It is used again for the next line.
type raw struct {
	at     int64 // microseconds since 1970
	opened int64
	str    [numStrings][]byte
	num    [numInts]int64
	resp   [][]byte
}

const (
	sKind = iota
	sID
	sAgent
	sSession
	sTurn
	sSide
	sPin
	sServer
	sWhy
	sFormat
	sMethod
	sPath
	sAsked
	sSent
	sCut
	sError
	sKey
	sMark
	numStrings
)

const (
	nStatus = iota
	nIn
	nCached
	nCacheWrite
	nOut
	nBytesIn
	nBytesOut
	nFirstMS
	nTotalMS
	nTurns
	numInts
)

// Fields that are neither a string nor a number.
const (
	fUnknown = -1 - iota
	fTime
	fOpened
	fResp
)

// field finds a name: the index of a string, numStrings + that of a number, or
// a negative constant.
func field(name []byte) int {
	switch string(name) {
	case "t":
		return fTime
	case "k":
		return sKind
	case "id":
		return sID
	case "agent":
		return sAgent
	case "session":
		return sSession
	case "turn":
		return sTurn
	case "side":
		return sSide
	case "pin":
		return sPin
	case "server":
		return sServer
	case "why":
		return sWhy
	case "format":
		return sFormat
	case "method":
		return sMethod
	case "path":
		return sPath
	case "asked":
		return sAsked
	case "sent":
		return sSent
	case "cut":
		return sCut
	case "error":
		return sError
	case "key":
		return sKey
	case "mark":
		return sMark
	case "resp":
		return fResp
	case "opened":
		return fOpened
	}
	return intField(name)
}

func intField(name []byte) int {
	var n int
	switch string(name) {
	case "status":
		n = nStatus
	case "in":
		n = nIn
	case "cached":
		n = nCached
	case "cache_write":
		n = nCacheWrite
	case "out":
		n = nOut
	case "bytes_in":
		n = nBytesIn
	case "bytes_out":
		n = nBytesOut
	case "first_ms":
		n = nFirstMS
	case "total_ms":
		n = nTotalMS
	case "turns":
		n = nTurns
	default:
		return fUnknown
	}
	return numStrings + n
}

// parse reads a line of the form that appendLine writes, with the fields in
// any order. It refuses everything else, also valid JSON with spaces, unknown
// fields or unusual numbers: that is left to encoding/json, which reads what
// parse accepts in the same way.
func (r *raw) parse(b []byte) bool {
	*r = raw{resp: r.resp[:0]}
	p := parser{b: b}
	if !p.eat('{') {
		return false
	}
	for {
		name, ok := p.quoted()
		if !ok || !p.eat(':') || !r.value(&p, field(name)) {
			return false
		}
		if p.eat(',') {
			continue
		}
		return p.eat('}') && p.i == len(b)
	}
}

// value reads the value of one field.
func (r *raw) value(p *parser, f int) (ok bool) {
	switch {
	case f == fTime:
		r.at, ok = p.time()
	case f == fOpened:
		r.opened, ok = p.time()
	case f == fResp:
		ok = r.responses(p)
	case f == fUnknown:
		return false
	case f < numStrings:
		r.str[f], ok = p.quoted()
	default:
		r.num[f-numStrings], ok = p.int()
	}
	return ok
}

func (r *raw) responses(p *parser) bool {
	r.resp = r.resp[:0]
	if !p.eat('[') {
		return false
	}
	for {
		s, ok := p.quoted()
		if !ok {
			return false
		}
		r.resp = append(r.resp, s)
		if p.eat(',') {
			continue
		}
		return p.eat(']')
	}
}

// DecodeLine reads one line of the log, with or without its newline. It
// reports false for what is no line: not JSON, or without time and kind.
func DecodeLine(b []byte) (Line, bool) {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	var r raw
	if !r.parse(b) {
		return decodeSlow(b)
	}
	if r.at == 0 || len(r.str[sKind]) == 0 {
		return Line{}, false
	}
	return r.line(), true
}

func decodeSlow(b []byte) (Line, bool) {
	var l Line
	if len(b) > maxLine || json.Unmarshal(b, &l) != nil || l.Time.IsZero() || l.Kind == "" {
		return Line{}, false
	}
	return l, true
}

// line copies the parts into a Line of its own.
func (r *raw) line() Line {
	s, n := &r.str, &r.num
	l := Line{
		Time: fromMicros(r.at), Kind: Kind(s[sKind]), ID: string(s[sID]),
		Agent: string(s[sAgent]), Session: string(s[sSession]), Turn: string(s[sTurn]), Side: string(s[sSide]),
		Pin: string(s[sPin]), Server: string(s[sServer]), Why: string(s[sWhy]),
		Format: string(s[sFormat]), Method: string(s[sMethod]), Path: string(s[sPath]),
		ModelAsked: string(s[sAsked]), ModelSent: string(s[sSent]),
		Status: int(n[nStatus]), Cut: string(s[sCut]), Error: string(s[sError]),
		Input: n[nIn], CacheRead: n[nCached], CacheWrite: n[nCacheWrite], Output: n[nOut],
		BytesIn: n[nBytesIn], BytesOut: n[nBytesOut], FirstMS: n[nFirstMS], TotalMS: n[nTotalMS],
		Key: string(s[sKey]), Mark: string(s[sMark]),
		Turns: int(n[nTurns]), Opened: fromMicros(r.opened),
	}
	for _, id := range r.resp {
		l.Responses = append(l.Responses, string(id))
	}
	return l
}
