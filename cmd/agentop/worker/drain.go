package worker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"agentop/router/control"
	"agentop/router/front"
)

// orphanLinger is how long a worker without supervisor keeps idle connections:
// long enough for the next proxy to be there.
const orphanLinger = 5 * time.Second

// connections counts what is connected, and says to those that stay idle that
// their next answer is the last one here.
type connections struct {
	closing atomic.Bool

	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil while nobody waits
}

// handler answers with `Connection: close` once the worker drains. It calls
// ended after each request.
func (c *connections) handler(h http.Handler, ended func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer ended()
		if c.closing.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// listen is l with its connections counted. Whoever waits in Accept counts as
// one, so that there is no moment in which a connection is accepted and not
// counted: the server itself learns of it a little later.
func (c *connections) listen(l net.Listener) net.Listener { return &countedListener{l, c} }

type countedListener struct {
	net.Listener
	count *connections
}

// Accept implements net.Listener.
func (l *countedListener) Accept() (net.Conn, error) {
	l.count.add(1)
	conn, err := l.Listener.Accept()
	if err != nil {
		l.count.add(-1)
	}
	return conn, err
}

// state is the server's ConnState hook: it learns of ends.
func (c *connections) state(_ net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		c.add(-1)
	}
}

func (c *connections) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	if c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// gone returns a channel that is closed when no connection is left and none
// can come.
func (c *connections) gone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	none := make(chan struct{})
	if c.n == 0 {
		close(none)
		return none
	}
	c.none = none
	return none
}

// leave accepts nothing more and waits until every connection has ended by
// itself: a stream at its end, an idle one after one more answer. It returns
// early when ctx is done or the limit is over.
func (w *Worker) leave(ctx context.Context, listeners []net.Listener) {
	orphan := w.opts.Supervisor.Orphaned()
	w.log.Info("accepting nothing more; connections end by themselves", "orphan", orphan, "streams", w.router.Streams(), "limit", w.opts.Drain)
	w.conns.closing.Store(true)
	closeAll(listeners)
	limit := w.opts.Drain
	if orphan {
		limit = orphanLinger
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.conns.gone():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// drain stops listening and waits for the running streams; idle connections
// are closed.
func (w *Worker) drain(proxy *front.Server, since time.Time) error {
	left := max(w.opts.Drain-time.Since(since), time.Second)
	w.log.Info("stopping; running streams finish first", "grace", left)
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	if err := proxy.Shutdown(ctx); err != nil {
		_ = proxy.Close() // the grace is over: what still runs is cut
		return fmt.Errorf("streams were cut after %s: %w", w.opts.Drain, err)
	}
	return nil
}

// listenControl makes agentop.sock this worker's: in the place of the one
// before it, if a supervisor says that there is none besides.
func (w *Worker) listenControl() (net.Listener, error) {
	if w.opts.Supervisor != nil {
		return control.Replace(w.opts.Home.Socket())
	}
	return control.Listen(w.opts.Home.Socket())
}

// endControl leaves agentop.sock to the next worker: event streams end, and
// whoever asked something gets the answer.
func endControl(hub *control.Hub, api *front.Server) {
	hub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if api.Shutdown(ctx) != nil {
		_ = api.Close()
	}
}
