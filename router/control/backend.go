package control

import "context"

// Backend is the proxy as the control API needs it. Its methods may be called
// at the same time by any number of connections. An error that is a *Error is
// told with its hint and code; any other is told as its text, so it must hold
// no secret. A method that takes a context returns soon after it is done: the
// client has hung up.
type Backend interface {
	// Status is a snapshot of the whole proxy.
	Status(ctx context.Context) (Status, error)

	// Sessions lists every conversation that is known, newest main turn first.
	Sessions(ctx context.Context) ([]Session, error)
	// Session is one conversation; CodeNotFound when it is not known.
	Session(ctx context.Context, agent, id string) (Session, error)
	// MovePrice says what Move would cost and changes nothing.
	MovePrice(ctx context.Context, agent, id, server string) (MovePrice, error)
	// Move pins the conversation to the server (or "own") from its next turn
	// on. The new pin is on disk, or the error says so, when it returns.
	Move(ctx context.Context, agent, id, server string) (Session, error)
	// Forget drops the conversation's pin and history: its next turn is placed
	// as one that agentop never saw.
	Forget(ctx context.Context, agent, id string) error

	// Use sets the server of an agent's new conversations; it is in
	// config.yaml and in force when it returns.
	Use(ctx context.Context, agent, server string) (Switch, error)
	// Reset makes the agent not routed: new conversations go to its own
	// upstream.
	Reset(ctx context.Context, agent string) (Switch, error)

	// AddServer adds a server or changes the one of that name.
	AddServer(ctx context.Context, spec ServerSpec) (ServerChange, error)
	// RemoveServer removes a server and its stored key. Conversations pinned
	// to it are refused from then on until it is added again.
	RemoveServer(ctx context.Context, name string) (ServerChange, error)
	// Preflight asks a server what it can do for these agents (none: all that
	// were seen). What is wrong with the server is told in the answer; an error
	// means that it could not be asked at all.
	Preflight(ctx context.Context, server string, agents []string) (Preflight, error)
	// TestServer is Preflight and one request that generates a single token,
	// to measure the time to the first one. It may take as long as the server
	// takes to load a model.
	TestServer(ctx context.Context, server string, agents []string) (Preflight, error)

	// Requests is the last tail lines of the request log, oldest first.
	Requests(ctx context.Context, tail int) ([]Request, error)
	// Restart begins a hand-over to a fresh worker and returns when that is
	// ready, or with the reason why the present one stays.
	Restart(ctx context.Context) error

	// Subscribe delivers a snapshot and then what happens, until ctx is done;
	// then, and when the proxy ends, the channel is closed. The channel may
	// be read slowly: events that do not fit are replaced by a fresh snapshot.
	// Hub does all of this.
	Subscribe(ctx context.Context) (<-chan Event, error)
}
