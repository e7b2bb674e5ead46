// Package supervise keeps agentop on its port. The supervisor owns the
// listening sockets and the processes that serve on them: it replaces a worker
// that crashed, hands over to a fresh one without closing a connection, and
// answers with what is wrong while no worker can. It knows sockets and
// processes; what a worker does with a request is not its matter, and it
// promises nothing about requests that a worker had in hand when it crashed.
//
// Connections that come while no worker accepts wait in the sockets' queues:
// the sockets are never closed while the supervisor lives, and it takes them
// along when it executes a newer binary in its own place.
//
// Start reading at Run (the supervisor) and Inherit (a worker's end).
package supervise

import (
	"errors"
	"fmt"
	"time"
)

// Limits are the times that rule hand-overs. A zero field means its default.
type Limits struct {
	Ready   time.Duration // for a new worker to become ready; 10 s
	Down    time.Duration // without a ready worker until requests get an error; 5 s
	Drain   time.Duration // for streams to end after a hand-over or a stop; 30 min
	Poll    time.Duration // between looks at the binary at rest; 10 s
	Settled time.Duration // that a worker must have served for its crash to count as the first; 10 s
	Backoff time.Duration // longest pause between starts that come to nothing; 30 s
}

func (l Limits) filled() Limits {
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	or(&l.Ready, 10*time.Second)
	or(&l.Down, 5*time.Second)
	or(&l.Drain, 30*time.Minute)
	or(&l.Poll, 10*time.Second)
	or(&l.Settled, 10*time.Second)
	or(&l.Backoff, 30*time.Second)
	return l
}

// HeldError is returned by Run when another supervisor serves the same home.
type HeldError struct{ Holder }

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return "another agentop proxy serves this home directory"
	}
	return fmt.Sprintf("another agentop proxy serves this home directory: process %d, version %s", e.PID, e.Version)
}

// ErrKilled is returned by Run when a second signal, or the end of the grace,
// ended workers that still had streams.
var ErrKilled = errors.New("running streams were cut")
