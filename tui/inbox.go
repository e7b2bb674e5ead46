package tui

import (
	"context"
	"sync"
	"time"

	"agentop/tui/view"
)

// frameTime is the least time between two batches of events: ten frames a
// second, however busy the proxy is.
const frameTime = 100 * time.Millisecond

// maxLog is how many requests the log pane keeps, and so how many a batch may
// hold.
const maxLog = 2000

// maxWarnings bounds the warnings of one batch: they are shown, not kept.
const maxWarnings = 4

// inbox collects events between two frames: of a conversation that changed a
// hundred times the last state is kept. One goroutine fills it, commands take
// from it one after another.
type inbox struct {
	wake chan struct{} // holds one: something is there, or the stream is over

	mu     sync.Mutex
	batch  batch
	err    error     // why the stream is over
	loaded time.Time // when the last batch was taken
}

// batch is what happened since the last frame, in no order of time but for the
// requests.
type batch struct {
	snapshot bool // sessions are all there are
	status   *view.Status
	sessions map[view.Key]view.Session
	gone     map[view.Key]bool
	requests []view.Request
	warnings []string
}

func (b *batch) empty() bool {
	return !b.snapshot && b.status == nil && len(b.sessions) == 0 && len(b.gone) == 0 && len(b.requests) == 0 && len(b.warnings) == 0
}

// add puts one more event into the batch.
func (b *batch) add(e Event) {
	if e.Snapshot {
		b.snapshot, b.sessions, b.gone = true, nil, nil
	}
	if e.Status != nil {
		b.status = e.Status
	}
	if b.sessions == nil && len(e.Sessions) > 0 {
		b.sessions = make(map[view.Key]view.Session, len(e.Sessions))
	}
	for i := range e.Sessions {
		key := e.Sessions[i].Key()
		b.sessions[key] = e.Sessions[i]
		delete(b.gone, key)
	}
	if e.Gone != nil {
		if b.gone == nil {
			b.gone = map[view.Key]bool{}
		}
		b.gone[*e.Gone] = true
		delete(b.sessions, *e.Gone)
	}
	if e.Request != nil {
		if len(b.requests) >= 2*maxLog {
			b.requests = append(b.requests[:0], b.requests[maxLog:]...)
		}
		b.requests = append(b.requests, *e.Request)
	}
	if e.Warning != "" && len(b.warnings) < maxWarnings {
		b.warnings = append(b.warnings, e.Warning)
	}
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// fill reads the stream until it ends.
func (in *inbox) fill(s Stream) {
	defer func() { _ = s.Close() }()
	for {
		e, err := s.Next()
		in.mu.Lock()
		if err != nil {
			in.err = err
		} else {
			in.batch.add(e)
		}
		in.mu.Unlock()
		in.signal()
		if err != nil {
			return
		}
	}
}

// signal says that there is something to take.
func (in *inbox) signal() {
	select {
	case in.wake <- struct{}{}:
	default: // it has not been taken since the last signal
	}
}

// take waits for events, and until the last batch is a frame old. It returns
// what has come by then, or the error once everything before it was taken.
func (in *inbox) take(ctx context.Context) (batch, error) {
	for {
		select {
		case <-ctx.Done():
			return batch{}, ctx.Err()
		case <-in.wake:
		}
		in.mu.Lock()
		wait := time.Until(in.loaded.Add(frameTime))
		in.mu.Unlock()
		if wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return batch{}, ctx.Err()
			case <-timer.C:
			}
		}
		in.mu.Lock()
		b, err := in.batch, in.err
		in.batch, in.loaded = batch{}, time.Now()
		in.mu.Unlock()
		if !b.empty() {
			if err != nil {
				in.signal() // the error is still to be taken
			}
			return b, nil
		}
		if err != nil {
			return batch{}, err
		}
	}
}
