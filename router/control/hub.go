package control

import (
	"context"
	"sync"
	"sync/atomic"
)

// Limits of the event stream.
const (
	maxSubscribers = 64
	maxQueue       = 256 // events that wait for one reader; beyond, it gets a fresh snapshot
)

// Hub passes events to subscribers without ever waiting for one of them. A
// reader that falls behind by more than a few hundred events loses those and
// gets a snapshot in their place, so that what it shows is right again. All
// methods may be called at the same time.
type Hub struct {
	snapshot func() Event
	readers  atomic.Int32

	mu     sync.Mutex
	subs   map[*subscriber]struct{}
	closed bool
}

// subscriber is one reader's queue.
type subscriber struct {
	wake chan struct{} // holds one: there is something in queue, lost or over

	mu    sync.Mutex
	queue []Event
	lost  bool // events were dropped: a snapshot is due before anything else
	over  bool
}

// NewHub makes a hub. snapshot is called from the readers' goroutines, once
// when each begins and once each time it has fallen behind; it returns an
// event of kind EventSnapshot and must not call Publish.
func NewHub(snapshot func() Event) *Hub {
	return &Hub{snapshot: snapshot, subs: map[*subscriber]struct{}{}}
}

// Listening says whether anybody reads, so that a caller need not build
// events that nobody will see.
func (h *Hub) Listening() bool { return h.readers.Load() > 0 }

// Publish hands e to every subscriber and never blocks on one. What e points
// to must not change afterwards.
func (h *Hub) Publish(e Event) {
	if !h.Listening() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		s.push(e)
	}
}

// Subscribe delivers a snapshot and then events until ctx is done or the hub
// is closed; the channel is then closed.
func (h *Hub) Subscribe(ctx context.Context) (<-chan Event, error) {
	s := &subscriber{wake: make(chan struct{}, 1), lost: true}
	s.wake <- struct{}{}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, &Error{Message: "the proxy is ending", Code: CodeBusy}
	}
	if len(h.subs) >= maxSubscribers {
		return nil, &Error{
			Message: "too many readers of the event stream",
			Hint:    "close a terminal that shows agentop",
			Code:    CodeBusy,
		}
	}
	h.subs[s] = struct{}{}
	h.readers.Store(int32(len(h.subs)))
	out := make(chan Event, 32)
	go h.deliver(ctx, s, out)
	return out, nil
}

// Close ends every subscription and refuses new ones.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.subs {
		s.end()
	}
}

// deliver moves events from s to out until ctx is done or s is over.
func (h *Hub) deliver(ctx context.Context, s *subscriber, out chan<- Event) {
	defer close(out)
	defer h.leave(s)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		events, lost, over := s.take()
		if lost {
			// What was taken happened before the snapshot is made: told after
			// it, an old state would overwrite the newer one.
			events = append([]Event{h.snapshot()}, keepNews(events)...)
		}
		for _, e := range events {
			select {
			case <-ctx.Done():
				return
			case out <- e:
			}
		}
		if over {
			return
		}
	}
}

func (h *Hub) leave(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
	h.readers.Store(int32(len(h.subs)))
}

func (s *subscriber) push(e Event) {
	s.mu.Lock()
	if len(s.queue) >= maxQueue {
		s.queue, s.lost = nil, true
	}
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.signal()
}

func (s *subscriber) take() (events []Event, lost, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, lost, over = s.queue, s.lost, s.over
	s.queue, s.lost = nil, false
	return events, lost, over
}

func (s *subscriber) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.signal()
}

func (s *subscriber) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // it has not looked since the last signal
	}
}

// keepNews drops the events that a later snapshot holds.
func keepNews(events []Event) []Event {
	var news []Event
	for _, e := range events {
		if e.Kind == EventRequest || e.Kind == EventWarning {
			news = append(news, e)
		}
	}
	return news
}
