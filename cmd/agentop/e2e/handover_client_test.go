package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// loss is a request that a client of the hand-over tests sent and that was not
// answered whole. A client never sends one again.
type loss struct {
	dialed bool // there was a connection
	opened time.Time
	began  time.Time
	ended  time.Time
	err    error
}

// tally is what the clients of one test have seen.
type tally struct {
	mu      sync.Mutex
	losses  []loss
	answers int
	longest time.Duration
}

func (r *tally) add(l loss, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.err != nil {
		r.losses = append(r.losses, l)
		return
	}
	r.answers++
	r.longest = max(r.longest, took)
}

// take gives what was lost so far and begins anew.
func (r *tally) take() (losses []loss, answers int, longest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	losses, answers, longest = r.losses, r.answers, r.longest
	r.losses, r.answers, r.longest = nil, 0, 0
	return losses, answers, longest
}

// keeper is a client that keeps its connection as long as the proxy allows. It
// looks whether the other end has hung up before it sends, as every HTTP
// client does, and sends nothing twice.
type keeper struct {
	address string
	session string
	conn    net.Conn
	in      *bufio.Reader
	opened  time.Time
}

// run sends one request after the other until stop is closed.
func (k *keeper) run(stop <-chan struct{}, pause time.Duration, seen *tally) {
	defer k.hangUp()
	for {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		began := time.Now()
		l := k.request(began)
		l.ended = time.Now()
		seen.add(l, time.Since(began))
		if l.err != nil {
			k.hangUp()
		}
	}
}

func (k *keeper) hangUp() {
	if k.conn != nil {
		_ = k.conn.Close()
		k.conn = nil
	}
}

func (k *keeper) request(began time.Time) loss {
	if k.conn != nil && !alive(k.conn) {
		k.hangUp()
	}
	if k.conn == nil {
		conn, err := net.DialTimeout("tcp", k.address, patience)
		if err != nil {
			return loss{began: began, err: err}
		}
		k.conn, k.in, k.opened = conn, bufio.NewReader(conn), time.Now()
	}
	return loss{dialed: true, opened: k.opened, began: began, err: k.exchange()}
}

// exchange sends one request on the connection and reads its whole answer.
func (k *keeper) exchange() error {
	_ = k.conn.SetDeadline(time.Now().Add(patience))
	body := turnBody(user("hello"))
	_, err := fmt.Fprintf(k.conn, "POST /claude-code/v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"User-Agent: claude-cli/2.1.332 (external, cli)\r\nX-Claude-Code-Session-Id: %s\r\nX-Claude-Code-Request-Class: main\r\n"+
		"Content-Length: %d\r\n\r\n%s", k.address, k.session, len(body), body)
	if err != nil {
		return err
	}
	res, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d: %s", res.StatusCode, answer)
	case !bytes.Contains(answer, []byte("message_stop")):
		return errors.New("the answer has no end")
	}
	if res.Close {
		k.hangUp()
	}
	return nil
}

// alive reports whether the other end of an idle connection is still there.
func alive(c net.Conn) bool {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	there := false
	_ = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		there = errors.Is(err, syscall.EAGAIN)
	})
	return there
}

// turnBody is a main turn of Claude Code.
func turnBody(messages string) string {
	return strings.Replace(`{"model":"claude-opus-5-5","max_tokens":32000,"stream":true,"context_management":{"edits":[]},`+
		`"tools":[{"name":"Read"},{"name":"Edit"},{"name":"Bash"},{"name":"Grep"}],`+
		`"system":[{"type":"text","text":"You are a test."}],"messages":[MESSAGES]}`, "MESSAGES", messages, 1)
}
