package config

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a caller decides by.
var (
	// ErrLayout is returned by the edits when a file is written in a way that
	// they cannot change without touching more than they should. Nothing has
	// been changed; the message says what to write by hand.
	ErrLayout = errors.New("the file's layout cannot be edited safely")
	// ErrLocked is returned by Edit when another process has held the lock
	// for longer than the limit.
	ErrLocked = errors.New("another agentop is changing this file")
	// ErrChanged is returned by Edit when somebody without the lock kept on
	// writing the file while it was edited.
	ErrChanged = errors.New("the file was changed meanwhile")
	// ErrNoServer is wrapped by the edits when they are given the name of a
	// server that is not configured.
	ErrNoServer = errors.New("no such server")
)

// Error is one thing that is wrong in a configuration file. No field of it
// ever holds a key, a token or the user information of a URL.
type Error struct {
	File    string // as given to Parse; "" when the value came from elsewhere
	Line    int    // from 1; 0 when there is no position
	Column  int    // from 1, in characters
	Reason  string // what is wrong
	Instead string // what to write instead; "" when Reason says it all
}

// Error gives "config.yaml:7:5: unknown field "ur"; did you mean "url"?".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		b.WriteByte(':')
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(e.Reason)
	if e.Instead != "" {
		b.WriteString("; ")
		b.WriteString(e.Instead)
	}
	return b.String()
}

// Errors is every error that Parse found, in the file's order, at least one.
// errors.As with an *Error finds the first.
type Errors []*Error

// Error gives one error a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lists the errors, for errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}
