package router

import (
	"context"
	"sync"

	"agentop/router/placement"
)

// gates lets one request of a conversation at a time be placed, so that
// requests that race to be its first get one answer; other conversations are
// never held up. It also wakes those who wait for a conversation's pin. Both
// tables hold only what requests in flight need.
type gates struct {
	mu    sync.Mutex
	held  map[placement.Conversation]*gate
	waits map[placement.Conversation]*wait
}

type gate struct {
	turn  chan struct{} // holds one token: who takes it may decide
	users int
}

type wait struct {
	pinned  chan struct{} // closed when the conversation gets its pin
	waiters int
}

func newGates() *gates {
	return &gates{held: map[placement.Conversation]*gate{}, waits: map[placement.Conversation]*wait{}}
}

// enter waits until no other request of c is being placed. The caller must
// call the returned function when its own placement is done.
func (g *gates) enter(ctx context.Context, c placement.Conversation) (leave func(), err error) {
	g.mu.Lock()
	h, ok := g.held[c]
	if !ok {
		h = &gate{turn: make(chan struct{}, 1)}
		h.turn <- struct{}{}
		g.held[c] = h
	}
	h.users++
	g.mu.Unlock()

	done := func(entered bool) {
		if entered {
			h.turn <- struct{}{}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(g.held, c)
		}
	}
	select {
	case <-h.turn:
		return func() { done(true) }, nil
	case <-ctx.Done():
		done(false)
		return nil, ctx.Err()
	}
}

// busy reports whether a request of c is being placed now.
func (g *gates) busy(c placement.Conversation) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.held[c]
	return ok
}

// pinned wakes everybody who waits for c.
func (g *gates) pinned(c placement.Conversation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w, ok := g.waits[c]; ok {
		close(w.pinned)
		delete(g.waits, c)
	}
}

// await returns a channel that is closed when c gets its pin. The caller must
// call stop when it no longer waits.
func (g *gates) await(c placement.Conversation) (pinned <-chan struct{}, stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w, ok := g.waits[c]
	if !ok {
		w = &wait{pinned: make(chan struct{})}
		g.waits[c] = w
	}
	w.waiters++
	return w.pinned, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if w.waiters--; w.waiters == 0 && g.waits[c] == w {
			delete(g.waits, c)
		}
	}
}
