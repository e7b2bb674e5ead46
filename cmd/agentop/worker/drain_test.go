package worker

import (
	"net"
	"net/http"
	"testing"
)

// gateListener hands out what is sent to it, and fails once it is closed.
type gateListener struct {
	conns chan net.Conn
	asked chan struct{} // one for each Accept that has begun
}

func (l *gateListener) Accept() (net.Conn, error) {
	l.asked <- struct{}{}
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *gateListener) Close() error   { close(l.conns); return nil }
func (l *gateListener) Addr() net.Addr { return &net.TCPAddr{} }

// A worker that leaves must not end while a connection is between the kernel's
// queue and net/http, which would drop it.
func TestLeavingWaitsForConnectionsThatAreJustAccepted(t *testing.T) {
	var count connections
	gate := &gateListener{conns: make(chan net.Conn), asked: make(chan struct{}, 2)}
	l := count.listen(gate)
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	left := func() bool {
		select {
		case <-count.gone():
			return true
		default:
			return false
		}
	}

	<-gate.asked
	if left() {
		t.Error("nothing is left while a connection may still be accepted")
	}
	client, server := net.Pipe()
	defer client.Close()
	gate.conns <- server
	conn := <-accepted
	<-gate.asked
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	<-accepted
	if left() {
		t.Error("nothing is left though a connection was accepted")
	}
	gone := count.gone()
	count.state(conn, http.StateClosed)
	<-gone
}
