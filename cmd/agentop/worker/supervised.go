package worker

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"agentop/router/control"
)

// Supervisor is who started this worker and replaces it. Its methods may be
// called at the same time.
type Supervisor interface {
	// Ready tells that this worker serves.
	Ready(version string, addresses []string)
	// Restart returns when a fresh worker serves in the place of this one, or
	// with the reason why this one stays.
	Restart(ctx context.Context) error
	// Drain is closed when another worker serves, or the supervisor is gone:
	// then nothing more is accepted.
	Drain() <-chan struct{}
	// Orphaned reports whether the supervisor is gone.
	Orphaned() bool
	// Share tells the other workers what is in flight here, by place, and of
	// which conversations if this worker drains.
	Share(load map[string]int, streams int, sessions []control.Streaming)
	// Others has told called, one call at a time, now and at each change, with
	// the number of other workers that live, what is in flight there, and
	// those of them that only finish their streams.
	Others(told func(n int, load map[string]int, draining []control.Draining))
}

// shareEvery is how often a change of what is in flight is told to others.
const shareEvery = 250 * time.Millisecond

// others is what is known of the workers that live besides this one.
type others struct {
	shared atomic.Bool // one lives

	mu       sync.Mutex
	draining []control.Draining
	end      context.CancelFunc // ends what is done for their sake; nil while alone
	ended    chan struct{}
}

// watchOthers follows what the other workers do: what they have in flight
// takes room, and what they write to the request log is known here too.
func (w *Worker) watchOthers(ctx context.Context) {
	if w.opts.Supervisor == nil {
		return
	}
	w.opts.Supervisor.Others(func(n int, load map[string]int, draining []control.Draining) {
		w.others.shared.Store(n > 0)
		w.router.LoadElsewhere(load)
		w.others.mu.Lock()
		w.others.draining = draining
		w.others.mu.Unlock()
		switch alone := !w.others.live(); {
		case n > 0 && alone:
			w.others.begin(ctx, w)
		case n == 0 && !alone:
			w.others.stop()
		}
		w.publishStatus()
	})
}

// live reports whether another worker lives.
func (o *others) live() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end != nil
}

// stop ends what is done for the others' sake.
func (o *others) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end == nil {
		return
	}
	o.end()
	<-o.ended
	o.end = nil
}

func (o *others) begin(ctx context.Context, w *Worker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ctx, o.end = context.WithCancel(ctx)
	ended := make(chan struct{})
	o.ended = ended
	go func() {
		defer close(ended)
		var done sync.WaitGroup
		done.Go(func() {
			if err := w.reqlog.Follow(ctx); err != nil {
				w.log.Warn("the other worker's request log was not followed", "error", err)
			}
		})
		w.share(ctx)
		done.Wait()
	}()
}

// share tells what is in flight here whenever it changed, until ctx is done.
func (w *Worker) share(ctx context.Context) {
	ticker := time.NewTicker(shareEvery)
	defer ticker.Stop()
	var told map[string]int
	named := false // the conversations, as only this worker knows that they stream
	for {
		load, draining := w.router.Load(), w.conns.closing.Load()
		if told == nil || named != draining || !maps.Equal(load, told) {
			told, named = load, draining
			var sessions []control.Streaming
			if draining {
				sessions = w.router.Streaming()
			}
			w.opts.Supervisor.Share(load, w.router.Streams(), sessions)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// list are the workers that only finish their streams.
func (o *others) list() []control.Draining {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.draining
}
