package tui

import (
	"context"
	"errors"

	"agentop/tui/view"
)

// Source is the proxy as the screen needs it. Its methods may be called at the
// same time, return soon after their context is done, and return an error that
// wraps ErrNotRunning when no proxy runs.
type Source interface {
	// Subscribe opens the event stream, which begins with a snapshot.
	Subscribe(ctx context.Context) (Stream, error)
	// Status is asked again while something happens: health and times are in
	// no event.
	Status(ctx context.Context) (view.Status, error)
	// Requests are the last n of the request log, oldest first.
	Requests(ctx context.Context, n int) ([]view.Request, error)
	// Use sets the server of an agent's new conversations; "" is not routed.
	Use(ctx context.Context, agent, server string) (view.Switch, error)
	// Preflight asks a server what it can do for an agent.
	Preflight(ctx context.Context, server, agent string) (view.Preflight, error)
	// Test is Preflight for all agents, and one request of a single token.
	Test(ctx context.Context, server string) (view.Preflight, error)
	// MovePrice says what Move would cost.
	MovePrice(ctx context.Context, key view.Key, server string) (view.MovePrice, error)
	// Move pins a conversation to a server, or own, from its next turn on.
	Move(ctx context.Context, key view.Key, server string) (view.Session, error)
	// RemoveServer removes a server, and returns what there is to warn of.
	RemoveServer(ctx context.Context, name string) (warnings []string, err error)
}

// Starter is a Source that can start a proxy.
type Starter interface {
	// Start returns when the proxy answers, or with the reason why not.
	Start(ctx context.Context) error
}

// Pointer is a Source that can point agents here, in their own settings.
type Pointer interface {
	Setups(ctx context.Context) ([]view.Setup, error)
	// Plan says in lines what Point would change, and changes nothing.
	Plan(ctx context.Context, agent string, on bool) ([]string, error)
	// Point enables or disables an agent and says in lines what it did.
	Point(ctx context.Context, agent string, on bool) ([]string, error)
}

// Stream is an open event stream. Next is for one goroutine and ends with an
// error; Close may be called from another and ends it.
type Stream interface {
	Next() (Event, error)
	Close() error
}

// Event is one thing that happened. What is nil or empty did not.
type Event struct {
	Snapshot bool // Status and Sessions are all there is: everything told before is void
	Status   *view.Status
	Sessions []view.Session // new or changed; of a snapshot all
	Gone     *view.Key      // forgotten or lapsed
	Request  *view.Request  // it has ended
	Warning  string         // one line, with what to do
}

// ErrNotRunning is wrapped by a Source's errors when no proxy runs.
var ErrNotRunning = errors.New("no agentop proxy is running")

// TroubledError is a Source's error when a proxy runs that cannot serve: it
// answers every request with the reason, which is the text.
type TroubledError struct {
	PID    int
	Reason string
	Cure   string // what mends it, "" where the reason says so
}

// Error implements error.
func (e *TroubledError) Error() string { return e.Reason }

// Hint implements Hinted.
func (e *TroubledError) Hint() string { return e.Cure }

// Hinted is an error that knows what to do about it.
type Hinted interface {
	error
	Hint() string
}

// sentence is an error as a notice tells it.
func sentence(err error) string {
	text := err.Error()
	var h Hinted
	if errors.As(err, &h) && h.Hint() != "" {
		text += "; " + h.Hint()
	}
	return text
}
