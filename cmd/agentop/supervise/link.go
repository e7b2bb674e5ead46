package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"agentop/router/control"
)

// The kinds of messages. A reader skips a kind that it does not know, and
// fields are only ever added: the two ends may be of different versions.
const (
	kindHello     = "hello"     // to the worker, first: Sockets, Others, Ended
	kindReady     = "ready"     // from the worker: Version, Addresses
	kindFailed    = "failed"    // from the worker, which ends: Text, Hint
	kindRestart   = "restart"   // from the worker: ID
	kindRestarted = "restarted" // to the worker: ID, Text and Hint if it failed
	kindDrain     = "drain"     // to the worker: another one serves
	kindStop      = "stop"      // to the worker: nobody serves any more
	kindLoad      = "load"      // from the worker: Load, Streams, Sessions
	kindOthers    = "others"    // to the worker: Others, Load, Draining
)

// message is one line of JSON on the link between supervisor and worker.
type message struct {
	Kind      string             `json:"kind"`
	ID        int                `json:"id,omitempty"`
	Text      string             `json:"text,omitempty"`
	Hint      string             `json:"hint,omitempty"`
	Version   string             `json:"version,omitempty"`
	Addresses []string           `json:"addresses,omitempty"`
	Sockets   int                `json:"sockets,omitempty"` // listening sockets passed on
	Others    int                `json:"others,omitempty"`  // workers that live besides this one
	Ended     string             `json:"ended,omitempty"`   // how the last run ended, if badly
	Load      map[string]int     `json:"load,omitempty"`    // requests in flight by place
	Streams   int                `json:"streams,omitempty"` // their sum
	Draining  []control.Draining `json:"draining,omitempty"`

	Sessions []control.Streaming `json:"sessions,omitempty"` // conversations in flight in a worker that drains
}

// maxMessage bounds one line, in bytes.
const maxMessage = 1 << 20

// writeLimit is how long the other end may leave its end unread. A worker
// that hangs must not hang the supervisor.
const writeLimit = 2 * time.Second

// link is one end of the connection between supervisor and worker. send may
// be called at any time; receive belongs to one goroutine.
type link struct {
	conn *net.UnixConn
	mu   sync.Mutex // serialises writes
	rest []byte     // read, and not yet a whole line; the receiver's
}

// newLink takes over a descriptor.
func newLink(fd int) (*link, error) {
	f := os.NewFile(uintptr(fd), "link")
	defer f.Close() // FileConn has its own
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("use descriptor %d as a link: %w", fd, err)
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("descriptor %d is no link", fd)
	}
	return &link{conn: unix}, nil
}

// send writes m, and gives the other end descriptors of its own of fds, for
// receiveFirst. An error means that the other end is gone or hangs; whoever
// reads learns the first, and nobody can do much about the second.
func (l *link) send(m message, fds ...int) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	b = append(b, '\n')
	if len(fds) > 0 {
		_, _, err = l.conn.WriteMsgUnix(b, syscall.UnixRights(fds...), nil)
		return err
	}
	_, err = l.conn.Write(b)
	return err
}

// maxFiles is how many descriptors may come with the first message.
const maxFiles = 64

// receiveFirst is receive of the first message, with what descriptors came
// along.
func (l *link) receiveFirst() (message, []int, error) {
	block, control := make([]byte, 4096), make([]byte, syscall.CmsgSpace(4*maxFiles))
	n, nc, _, _, err := l.conn.ReadMsgUnix(block, control)
	if err != nil {
		return message{}, nil, err
	}
	l.rest = block[:n]
	var fds []int
	list, err := syscall.ParseSocketControlMessage(control[:nc])
	for _, c := range list {
		var some []int
		if some, err = syscall.ParseUnixRights(&c); err != nil {
			break
		}
		fds = append(fds, some...)
	}
	if err != nil {
		return message{}, nil, fmt.Errorf("take the descriptors: %w", err)
	}
	m, err := l.receive()
	return m, fds, err
}

// errPaused is returned by receive after pause.
var errPaused = errors.New("link is paused")

// receive waits for the next message. After errPaused it may be called again.
func (l *link) receive() (message, error) {
	for {
		if i := bytes.IndexByte(l.rest, '\n'); i >= 0 {
			var m message
			err := json.Unmarshal(l.rest[:i], &m)
			l.rest = l.rest[i+1:]
			if err != nil {
				return message{}, fmt.Errorf("decode a message: %w", err)
			}
			return m, nil
		}
		if len(l.rest) > maxMessage {
			return message{}, fmt.Errorf("a message has more than %d bytes", maxMessage)
		}
		var block [4096]byte
		n, err := l.conn.Read(block[:])
		l.rest = append(l.rest, block[:n]...)
		if n > 0 {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return message{}, errPaused
		}
		return message{}, err
	}
}

// pause makes receive return errPaused once it has nothing whole to return.
func (l *link) pause() { _ = l.conn.SetReadDeadline(time.Unix(1, 0)) }

// resume undoes pause.
func (l *link) resume() { _ = l.conn.SetReadDeadline(time.Time{}) }

// limit makes receive return errPaused when nothing comes within d.
func (l *link) limit(d time.Duration) { _ = l.conn.SetReadDeadline(time.Now().Add(d)) }

func (l *link) close() { _ = l.conn.Close() }
