package credential

import (
	"errors"
	"fmt"
)

// ErrDamaged is wrapped where keys.json is not what agentop writes. The file
// is then left as it is, and nothing is added to it.
var ErrDamaged = errors.New("not a list of server names and keys as agentop writes it")

// Error says why a server's key cannot be had. It never holds a key, nor what
// a command printed.
type Error struct {
	Server string
	Reason string // one clause, about the server's key
	Do     string // what to do, an imperative
	Cause  error  // may be nil
}

// Error gives `server "glm": no key is stored for it; run ...`.
func (e *Error) Error() string {
	text := fmt.Sprintf("server %q: %s", e.Server, e.Reason)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text + "; " + e.Do
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }
