package supervise

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// downServer answers every request with why no worker can. It needs no store
// and no configuration, and runs in the supervisor, so that it is there also
// when no other process can be started.
type downServer struct {
	server    *http.Server
	listeners []net.Listener
	handler   atomic.Pointer[http.Handler]
}

// serveDown begins to answer in the workers' place.
func (s *supervisor) serveDown() {
	if s.current != nil || s.down != nil || s.stopping {
		return
	}
	d := new(downServer)
	t := s.trouble
	if t.Text == "" {
		t = Trouble{Text: "agentop is starting and its worker is not ready yet", Passing: true}
	}
	d.set(s.Down(t))
	d.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 256 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close") // the next one may find a worker
			(*d.handler.Load()).ServeHTTP(w, r)
		}),
	}
	for _, k := range s.sockets {
		l, err := listenerOf(k.FD)
		if err != nil {
			s.say("cannot answer on %s: %v", k.Address, err)
			continue
		}
		d.listeners = append(d.listeners, l)
		go func() { _ = d.server.Serve(l) }() // ends when its listener is closed
	}
	s.down = d
	s.say("no worker is ready; requests are answered with the reason: %s", t.Text)
	notify("READY=1\nSTATUS=no worker is ready: " + t.Text)
}

func (d *downServer) set(h http.Handler) { d.handler.Store(&h) }

// stopDown leaves the sockets to a worker. Connections that were accepted get
// their answer, which is their last, or are closed for their silence: the
// server is not shut down, as http.Server.Shutdown drops a request that is
// just being read.
func (s *supervisor) stopDown() {
	if s.down == nil {
		return
	}
	for _, l := range s.down.listeners {
		_ = l.Close() // the supervisor's own descriptor stays
	}
	s.down = nil
}
