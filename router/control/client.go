package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"
)

// SocketName is the control socket's file name in agentop's home directory.
const SocketName = "agentop.sock"

// maxAnswer bounds an answer, so that something else behind the socket's path
// cannot fill the memory.
const maxAnswer = 256 << 20

// Client speaks to the proxy of one home directory. Its methods may be called
// at the same time, connect anew as needed, and return ErrNotRunning when no
// proxy answers and a *Error when it refuses.
type Client struct {
	http *http.Client
}

// Dial makes a client for the proxy that runs in the home directory. It does
// not connect yet.
func Dial(home string) *Client {
	path := filepath.Join(home, SocketName)
	var d net.Dialer
	return &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if err := CheckPath(path); err != nil {
				return nil, err
			}
			return d.DialContext(ctx, "unix", path)
		},
		DisableCompression: true,
	}}}
}

// Close drops idle connections. The client may be used again.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status is a snapshot of the whole proxy.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, pathStatus)
}

// Sessions lists every conversation that is known, newest main turn first.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	return get[[]Session](ctx, c, pathSessions)
}

// Session is one conversation.
func (c *Client) Session(ctx context.Context, agent, id string) (Session, error) {
	return send[Session](ctx, c, pathSession, sessionRequest{Agent: agent, ID: id})
}

// MovePrice says what Move would cost and changes nothing.
func (c *Client) MovePrice(ctx context.Context, agent, id, server string) (MovePrice, error) {
	return send[MovePrice](ctx, c, pathPrice, sessionRequest{Agent: agent, ID: id, Server: server})
}

// Move pins the conversation to the server from its next turn on.
func (c *Client) Move(ctx context.Context, agent, id, server string) (Session, error) {
	return send[Session](ctx, c, pathMove, sessionRequest{Agent: agent, ID: id, Server: server})
}

// Forget drops the conversation's pin and history.
func (c *Client) Forget(ctx context.Context, agent, id string) error {
	_, err := send[empty](ctx, c, pathForget, sessionRequest{Agent: agent, ID: id})
	return err
}

// Use sets the server of an agent's new conversations.
func (c *Client) Use(ctx context.Context, agent, server string) (Switch, error) {
	return send[Switch](ctx, c, pathUse, agentRequest{Agent: agent, Server: server})
}

// Reset makes the agent not routed.
func (c *Client) Reset(ctx context.Context, agent string) (Switch, error) {
	return send[Switch](ctx, c, pathReset, agentRequest{Agent: agent})
}

// AddServer adds a server or changes the one of that name. The secret in spec
// goes over the socket to the proxy, and nowhere else.
func (c *Client) AddServer(ctx context.Context, spec ServerSpec) (ServerChange, error) {
	return send[ServerChange](ctx, c, pathAdd, addRequest{ServerSpec: spec, Secret: spec.Secret})
}

// RemoveServer removes a server and its stored key.
func (c *Client) RemoveServer(ctx context.Context, name string) (ServerChange, error) {
	return send[ServerChange](ctx, c, pathRemove, serverRequest{Name: name})
}

// Preflight asks a server what it can do for these agents.
func (c *Client) Preflight(ctx context.Context, server string, agents []string) (Preflight, error) {
	return send[Preflight](ctx, c, pathPreflight, serverRequest{Name: server, Agents: agents})
}

// TestServer is Preflight and one request of a single token.
func (c *Client) TestServer(ctx context.Context, server string, agents []string) (Preflight, error) {
	return send[Preflight](ctx, c, pathTest, serverRequest{Name: server, Agents: agents})
}

// Requests is the last tail lines of the request log, oldest first.
func (c *Client) Requests(ctx context.Context, tail int) ([]Request, error) {
	return get[[]Request](ctx, c, pathRequests+"?"+url.Values{"tail": {strconv.Itoa(tail)}}.Encode())
}

// Restart begins a hand-over to a fresh worker and returns when it is done.
func (c *Client) Restart(ctx context.Context) error {
	_, err := send[empty](ctx, c, pathRestart, empty{})
	return err
}

// Subscribe opens the event stream: a snapshot, then what happens. It ends
// with ctx or with Stream.Close.
func (c *Client) Subscribe(ctx context.Context) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	r, err := c.do(ctx, http.MethodGet, pathEvents, nil) //nolint:bodyclose // Stream.Close does
	if err != nil {
		cancel()
		return nil, err
	}
	return &Stream{cancel: cancel, body: r.Body, in: json.NewDecoder(bufio.NewReader(r.Body))}, nil
}

// Stream is an open event stream. Next is for one goroutine; Close may be
// called from another.
type Stream struct {
	cancel context.CancelFunc
	body   io.Closer
	in     *json.Decoder
}

// Next waits for the next event. After an error there is no other: io.EOF or
// io.ErrUnexpectedEOF when the proxy ended, the context's error when that did.
func (s *Stream) Next() (Event, error) {
	var e Event
	err := s.in.Decode(&e)
	return e, err
}

// Close ends the stream; a waiting Next returns.
func (s *Stream) Close() error {
	s.cancel()
	return s.body.Close()
}

func get[A any](ctx context.Context, c *Client, path string) (A, error) {
	return call[A](ctx, c, http.MethodGet, path, nil)
}

func send[A any](ctx context.Context, c *Client, path string, q any) (A, error) {
	body, err := json.Marshal(q)
	if err != nil {
		var none A
		return none, fmt.Errorf("encode control request: %w", err)
	}
	return call[A](ctx, c, http.MethodPost, path, body)
}

func call[A any](ctx context.Context, c *Client, method, path string, body []byte) (A, error) {
	var a A
	r, err := c.do(ctx, method, path, body)
	if err != nil {
		return a, err
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(r.Body, maxAnswer)).Decode(&a); err != nil {
		return a, fmt.Errorf("read the proxy's answer: %w", err)
	}
	return a, nil
}

// do sends one request and turns every answer that is not a success into an
// error. The caller closes the body.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://agentop"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make control request: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := c.http.Do(q)
	if err != nil {
		return nil, dialError(err)
	}
	if r.StatusCode == http.StatusOK {
		return r, nil
	}
	defer func() { _ = r.Body.Close() }()
	e := &Error{}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil || json.Unmarshal(text, e) != nil || e.Message == "" {
		return nil, fmt.Errorf("the control socket answered %s without a reason", r.Status)
	}
	return nil, e
}

// dialError tells the ways in which nobody answers from all others.
func dialError(err error) error {
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTSOCK) {
		return ErrNotRunning
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the address in it is made up
	}
	return fmt.Errorf("ask the running proxy: %w", err)
}
