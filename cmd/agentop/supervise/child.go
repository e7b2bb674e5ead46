package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"agentop/cmd/agentop/supervise/ahead"
	"agentop/router/control"
)

// Child is a worker's end: what its supervisor gave it, and the way to talk to
// it. All methods may be called at the same time.
type Child struct {
	// Ended is how the run before this one ended, if badly.
	Ended string

	link      *link
	listeners []net.Listener
	stop      chan struct{}
	drain     chan struct{}

	mu       sync.Mutex
	orphan   bool
	nextID   int
	restarts map[int]chan error

	telling sync.Mutex // guards what follows, also while told is called
	others  message
	told    func(n int, load map[string]int, draining []control.Draining)
}

// ErrUnneeded is returned by Inherit in a worker that was started ahead and is
// not needed: its supervisor ended before it had begun.
var ErrUnneeded = errors.New("the supervisor needs no worker")

// helloWait is how long a worker waits for its supervisor, which may have to
// wait for a port, or for a disk to wake.
const helloWait = time.Minute

// Inherit takes over what the supervisor passed to this process, when it does.
// It must be called once and early: until then other children would inherit it
// too.
func Inherit() (*Child, error) {
	syscall.CloseOnExec(ahead.LinkFD)
	l, err := newLink(ahead.LinkFD)
	if err != nil {
		return nil, fmt.Errorf("no supervisor has started this process: %w", err)
	}
	l.limit(helloWait)
	hello, fds, err := l.receiveFirst()
	if errors.Is(err, io.EOF) {
		l.close()
		return nil, ErrUnneeded
	}
	if err != nil || hello.Kind != kindHello {
		l.close()
		return nil, fmt.Errorf("no supervisor has started this process: got %q, %w", hello.Kind, err)
	}
	l.resume()
	c := &Child{
		Ended: hello.Ended, link: l, stop: make(chan struct{}), drain: make(chan struct{}),
		restarts: map[int]chan error{}, others: hello,
	}
	if len(fds) == 0 { // then they were inherited
		for fd := ahead.SocketFD; fd < ahead.SocketFD+hello.Sockets; fd++ {
			syscall.CloseOnExec(fd)
			fds = append(fds, fd)
		}
	}
	for _, fd := range fds {
		listener, err := listenerOf(fd)
		if err != nil {
			return nil, fmt.Errorf("use the supervisor's socket %d: %w", fd, err)
		}
		_ = syscall.Close(fd) // the listener has its own
		c.listeners = append(c.listeners, listener)
	}
	go c.read()
	return c, nil
}

// Listeners are the sockets to serve; the caller closes them.
func (c *Child) Listeners() []net.Listener { return c.listeners }

// Stop is closed when the proxy is to end.
func (c *Child) Stop() <-chan struct{} { return c.stop }

// Drain is closed when this worker must accept nothing more: another one
// serves, or the supervisor is gone.
func (c *Child) Drain() <-chan struct{} { return c.drain }

// Orphaned reports whether the supervisor is gone.
func (c *Child) Orphaned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orphan
}

// Ready tells that this worker serves.
func (c *Child) Ready(version string, addresses []string) {
	_ = c.link.send(message{Kind: kindReady, Version: version, Addresses: addresses}) // Drain tells when it is gone
}

// Failed tells why this worker could not start.
func (c *Child) Failed(text, hint string) {
	_ = c.link.send(message{Kind: kindFailed, Text: text, Hint: hint}) // as in Ready
}

// Share tells the other workers how many requests are in flight here, and of
// which conversations if this one drains.
func (c *Child) Share(load map[string]int, streams int, sessions []control.Streaming) {
	_ = c.link.send(message{Kind: kindLoad, Load: load, Streams: streams, Sessions: sessions}) // as in Ready
}

// Others has told called, now and whenever it changes, with the number of
// other workers, their requests in flight by place, and those of them that
// finish their streams. The calls come one at a time.
func (c *Child) Others(told func(n int, load map[string]int, draining []control.Draining)) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.told = told
	told(c.others.Others, c.others.Load, c.others.Draining)
}

// Restart asks for a fresh worker in the place of this one and returns when
// that is ready, or with the reason why this one stays.
func (c *Child) Restart(ctx context.Context) error {
	answer := make(chan error, 1)
	c.mu.Lock()
	if c.orphan {
		c.mu.Unlock()
		return errGone
	}
	c.nextID++
	id := c.nextID
	c.restarts[id] = answer
	c.mu.Unlock()
	if err := c.link.send(message{Kind: kindRestart, ID: id}); err != nil {
		return fmt.Errorf("ask the supervisor: %w", err)
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errGone = &control.Error{Message: "the supervisor is gone, and this worker only finishes its streams", Hint: "start the proxy again", Code: control.CodeConflict}

// read takes in the supervisor's messages until it is gone.
func (c *Child) read() {
	for {
		m, err := c.link.receive()
		if err != nil {
			break
		}
		switch m.Kind {
		case kindRestarted:
			c.restarted(m)
		case kindDrain:
			closeOnce(c.drain)
		case kindStop:
			closeOnce(c.stop)
		case kindOthers:
			c.telling.Lock()
			c.others = m
			if c.told != nil {
				c.told(m.Others, m.Load, m.Draining)
			}
			c.telling.Unlock()
		}
	}
	c.mu.Lock()
	c.orphan = true
	for id, answer := range c.restarts {
		answer <- errGone
		delete(c.restarts, id)
	}
	c.mu.Unlock()
	closeOnce(c.drain)
}

func (c *Child) restarted(m message) {
	c.mu.Lock()
	answer, ok := c.restarts[m.ID]
	delete(c.restarts, m.ID)
	c.mu.Unlock()
	switch {
	case !ok:
	case m.Text != "":
		answer <- &control.Error{Message: m.Text + "; the present worker stays", Hint: m.Hint, Code: control.CodeFailed}
	default:
		answer <- nil
	}
}

// closeOnce closes a channel that only this goroutine closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// IsHeld reports whether err says that another supervisor has the home.
func IsHeld(err error) (Holder, bool) {
	var held *HeldError
	if errors.As(err, &held) {
		return held.Holder, true
	}
	return Holder{}, false
}
