package control

import "errors"

// ErrNotRunning is returned by every method of Client when no proxy answers on
// the socket: there is no such file, or nobody listens behind it.
var ErrNotRunning = errors.New("no agentop proxy is running")

// ErrInUse is returned by Listen when another process answers on the socket.
var ErrInUse = errors.New("another agentop proxy answers there")

// ErrTooLong is returned by Listen and by Client when the socket's path is
// longer than the system's limit for Unix sockets.
var ErrTooLong = errors.New("path is too long for a Unix socket")

// Code says what kind of refusal an Error is.
type Code string

// The codes. An unknown one is treated as CodeFailed.
const (
	CodeFailed   Code = ""          // it was tried and did not work
	CodeInvalid  Code = "invalid"   // the request makes no sense, whatever the state
	CodeNotFound Code = "not_found" // no such server, agent or conversation
	CodeConflict Code = "conflict"  // it does not fit the present state
	CodeBusy     Code = "busy"      // it may work in a moment
)

// Error is a refusal or failure as the API tells it. A Backend returns one
// where it has a hint; Client returns one for every answer that is not a
// success.
type Error struct {
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"` // what to do
	Code    Code   `json:"code,omitempty"`
}

// Error is the message alone; the hint is shown on its own line.
func (e *Error) Error() string { return e.Message }
