package worker

import (
	"context"
	"fmt"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/filestore"
)

// late is the store, which is read while the worker begins to serve: five
// thousand pins take as long as all the rest. Who needs a pin waits for it.
type late struct {
	opened chan struct{} // closed when store is there
	broken chan struct{} // closed instead when there will be none, as err tells
	store  filestore.Store
	err    error
}

// openWait is how long a disk may take to give the pins: longer than one takes
// to wake, and no longer than an agent is patient. Then memory serves, with
// what the request log knows, until the disk is back.
const openWait = 30 * time.Second

// openLate opens the store of a home, and then calls opened.
func openLate(ctx context.Context, dir home.Home, opened func(), opts ...filestore.Option) *late {
	l := &late{opened: make(chan struct{}), broken: make(chan struct{})}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, openWait)
		defer cancel()
		store, err := filestore.Open(ctx, filestore.FileURL(dir.Pins()), append(opts, filestore.WithMemoryFallback())...)
		if err != nil {
			l.err = fmt.Errorf("open pins: %w", err)
			close(l.broken)
			return
		}
		l.store = store
		close(l.opened)
		opened()
	}()
	return l
}

// get returns the store once it is open.
func (l *late) get() filestore.Store {
	<-l.opened
	return l.store
}

// State is the store's.
func (l *late) State() filestore.State { return l.get().State() }

// close closes the store, if there is one.
func (l *late) close() error {
	select {
	case <-l.opened:
		return l.store.Close()
	case <-l.broken:
		return nil // who serves tells it
	}
}
