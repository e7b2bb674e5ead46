// Package reqlog is the request log: one JSON line a request, the second
// witness of where each conversation lives and the memory of its prefix keys,
// reply marks and response ids. Lines are appended when a turn ends (one more
// when a pin is made, before the turn is sent), reach the page cache at once
// and the disk each second, are rotated by day and size, and are read back at
// start into a bounded index. It never holds a body or a credential. Start
// reading at Log and Index.
package reqlog

import "time"

// Kind says what a line records.
type Kind string

// The kinds of lines.
const (
	KindPin    Kind = "pin"    // a pin was made: written before the turn is sent
	KindTurn   Kind = "turn"   // a request ended: main turn, side request or not inference
	KindMove   Kind = "move"   // the user moved the conversation
	KindForget Kind = "forget" // the user made agentop forget the conversation
	KindKeep   Kind = "keep"   // a live conversation's last place, carried over by rotation
)

// Pin says how a turn came to its pin, as Line.Pin holds it.
const (
	PinNew      = "new"
	PinKept     = "kept"
	PinFollowed = "followed"
	PinRestored = "restored"
	PinNone     = "none"
	PinMoved    = "moved" // of a KindMove alone
)

// Turn says what a request was, as Line.Turn holds it.
const (
	TurnOpening      = "opening"
	TurnContinuation = "continuation"
	TurnSide         = "side"
	TurnNone         = "none"
)

// Refused stands where a server's name would: agentop itself answered.
const Refused = "-"

// Line is one line of the log. Fields that are zero are left out. Numbers of
// tokens and bytes are counts; times are milliseconds.
//
// Time decides between lines that disagree (the later one wins), so it is the
// moment at which what the line says became true: for a turn its arrival, not
// its end, since a conversation may be moved or forgotten while a turn of it is
// still on its way; for a pin, a move or a forget the moment it was made. It is
// kept in microseconds, UTC.
type Line struct {
	Time    time.Time `json:"t"`
	Kind    Kind      `json:"k"`
	ID      string    `json:"id,omitempty"` // request id, as in the X-Request-Id that agentop's own errors carry
	Agent   string    `json:"agent,omitempty"`
	Session string    `json:"session,omitempty"`
	Turn    string    `json:"turn,omitempty"`   // opening, continuation, side, none
	Side    string    `json:"side,omitempty"`   // kind of a side request
	Pin     string    `json:"pin,omitempty"`    // new, kept, followed, restored, none
	Server  string    `json:"server,omitempty"` // a server's name, pool/member, own, or - for a refusal
	Why     string    `json:"why,omitempty"`    // the rule that decided, as sessions show tells it

	Format     string `json:"format,omitempty"` // messages, responses, chat
	Method     string `json:"method,omitempty"`
	Path       string `json:"path,omitempty"` // without query
	ModelAsked string `json:"asked,omitempty"`
	ModelSent  string `json:"sent,omitempty"`
	Status     int    `json:"status,omitempty"`
	Cut        string `json:"cut,omitempty"`   // who ended the answer early: client, server
	Error      string `json:"error,omitempty"` // class of the failure, never an upstream's text

	Input      int64 `json:"in,omitempty"`
	CacheRead  int64 `json:"cached,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"out,omitempty"`
	BytesIn    int64 `json:"bytes_in,omitempty"`
	BytesOut   int64 `json:"bytes_out,omitempty"`
	FirstMS    int64 `json:"first_ms,omitempty"` // to the first byte of the answer
	TotalMS    int64 `json:"total_ms,omitempty"`

	Key       string   `json:"key,omitempty"`  // full input's prefix key, 16 hex digits (main turns)
	Mark      string   `json:"mark,omitempty"` // reply mark, 16 hex digits
	Responses []string `json:"resp,omitempty"` // response id that was passed on

	Turns  int       `json:"turns,omitempty"` // KindKeep alone: main turns up to this line
	Opened time.Time `json:"opened,omitzero"` // KindKeep alone: the conversation's first turn
}

// Main reports whether the line is about a conversation's own line of turns:
// the only lines that say where a conversation is.
func (l *Line) Main() bool {
	switch l.Kind {
	case KindPin, KindMove, KindKeep:
		return true
	case KindTurn:
		return l.Turn == TurnOpening || l.Turn == TurnContinuation
	}
	return false
}

// Hex writes a key or a mark as a line holds it, and nothing for zero, which
// stands for none.
func Hex(v uint64) string {
	if v == 0 {
		return ""
	}
	return string(appendHex(nil, v))
}

// ParseHex reads a key or mark of a line; zero if it is none.
func ParseHex(s string) uint64 {
	v, _ := parseHex(s)
	return v
}
