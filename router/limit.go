package router

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits of open connections from clients.
const (
	// maxConnections is far more than one person's agents open.
	maxConnections = 4096
	// reservedFiles are descriptors kept for files, the control socket and
	// what else is not a client's or a server's connection.
	reservedFiles = 128
	// maxTurnedAway bounds those that are being told that there is no room.
	maxTurnedAway = 64
)

// connectionLimit is how many clients' connections are held at once: each may
// need one to a server too, and files must still be openable beside them.
func connectionLimit() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil || files.Cur > 1<<20 {
		return maxConnections
	}
	return min(maxConnections, max(16, (int(files.Cur)-reservedFiles)/2))
}

// Room bounds the connections of one or more listeners together. What comes
// beyond is told so and closed. Safe for concurrent use.
type Room struct {
	log   *slog.Logger
	limit int
	open  atomic.Int32
	away  atomic.Int32 // being turned away

	mu   sync.Mutex
	told time.Time
}

// NewRoom makes room for as many connections as this process can serve.
func NewRoom(log *slog.Logger) *Room { return &Room{log: log, limit: connectionLimit()} }

// Open is the number of connections that are held now.
func (r *Room) Open() int { return int(r.open.Load()) }

// Listen is l within the limit.
func (r *Room) Listen(l net.Listener) net.Listener { return &roomListener{l, r} }

type roomListener struct {
	net.Listener
	room *Room
}

// Accept implements net.Listener.
func (l *roomListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := int(l.room.open.Add(1))
		switch {
		case n > l.room.limit:
			l.room.open.Add(-1)
			l.room.turnAway(c)
			continue
		case n > l.room.limit/2 && l.room.isStranger(c):
			// Another account must not be able to take all the room.
			l.room.open.Add(-1)
			_ = c.Close() // it gets no answer
			continue
		}
		return roomy(c, l.room), nil
	}
}

// roomy is c, which makes room when it is closed.
func roomy(c net.Conn, room *Room) net.Conn {
	if t, ok := c.(*net.TCPConn); ok {
		return &roomTCP{TCPConn: t, leave: sync.OnceFunc(func() { room.open.Add(-1) })}
	}
	return &roomConn{Conn: c, leave: sync.OnceFunc(func() { room.open.Add(-1) })}
}

type roomConn struct {
	net.Conn
	leave func()
}

func (c *roomConn) Close() error { defer c.leave(); return c.Conn.Close() }

// roomTCP keeps what a TCP connection can do beyond net.Conn.
type roomTCP struct {
	*net.TCPConn
	leave func()
}

func (c *roomTCP) Close() error { defer c.leave(); return c.TCPConn.Close() }

func (r *Room) isStranger(c net.Conn) bool {
	v := visitorOf(c, owners())
	return v != nil && v.stranger() != ""
}

// turnAway tells a client that there is no room, in a shape that all agents
// read, and takes in what it has sent: closing before would drop the answer.
func (r *Room) turnAway(c net.Conn) {
	r.tell()
	if r.away.Add(1) > maxTurnedAway {
		r.away.Add(-1)
		_ = c.Close() // it sees a closed connection, and tries again
		return
	}
	go func() {
		defer r.away.Add(-1)
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		body := fmt.Sprintf(`{"type":"error","error":{"type":"overloaded_error","code":"agentop_crowded","source":"agentop","message":"agentop: %d connections are open, which is the limit; close agents that are not used, or try again"}}`, r.limit)
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\nConnection: close\r\n"+
			RouteHeader+": agent=other; session=; turn=none; pin=none; server=-\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, c)
	}()
}

// tell warns that connections are turned away, at most once a minute.
func (r *Room) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.told.IsZero() || now.Sub(r.told) > time.Minute {
		r.told = now
		r.log.Warn("connections are turned away", "limit", r.limit)
	}
}
