package agents

import "fmt"

// MaxSessionID is the length in bytes of the longest session id that is
// accepted; one byte more is refused.
const MaxSessionID = 256

// SessionIDError is returned by Recognise when the session id (or the parent's
// id) that a request states cannot be a key: it is longer than MaxSessionID,
// holds a control character, or is not UTF-8 (it could not be stored and read
// back unchanged). The request should be answered 400: a retry cannot help.
type SessionIDError struct {
	Source string // where the id stood: a header's or a body field's name
	Bytes  int    // its length
	Reason string // what is wrong with it; never the id itself
}

func (e *SessionIDError) Error() string {
	return fmt.Sprintf("session id in %s %s (%d bytes; at most %d are allowed, and no control characters)",
		e.Source, e.Reason, e.Bytes, MaxSessionID)
}

// UnknownAgentError is returned by SplitPath for a path whose first segment
// names neither an agent nor an API. It should be answered 404, with the names
// of the agents.
type UnknownAgentError struct {
	Segment string // the first segment, decoded; as the client sent it, so quote it
}

func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("path begins with %q: neither an agent nor an API path", e.Segment)
}
