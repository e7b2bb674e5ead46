package setup

import (
	"errors"
	"fmt"
)

// ErrUnknownAgent is returned for an agent whose settings file is not known;
// ByHand has the lines for it.
var ErrUnknownAgent = errors.New("agentop does not know this agent's settings file")

// ErrChanging is returned when the settings file kept changing while it was
// edited. Nothing was written.
var ErrChanging = errors.New("the file keeps changing")

// ErrLocked is returned when another agentop works on the same record.
var ErrLocked = errors.New("another agentop command is changing it")

// ErrNewerRecord is returned when a newer agentop made the record and this
// one would have to rewrite it. Disable works all the same.
var ErrNewerRecord = errors.New("a newer agentop made the record")

// ErrStronger is returned when a setting that agentop must not edit decides
// where the agent goes, so that enabling would do nothing.
var ErrStronger = errors.New("a stronger setting decides where the agent goes")

// ErrNothing is returned when there is nothing in the agent's settings that
// could be pointed at agentop.
var ErrNothing = errors.New("nothing here can be pointed at agentop")

// A SyntaxError says where a settings file does not parse. The agent does not
// read such a file either, so it is never edited.
type SyntaxError struct {
	File         string
	Line, Column int // both from 1; 0 where the parser does not tell
	Reason       string
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}
