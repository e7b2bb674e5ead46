package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// discard turns a method without a value into one with.
func discard(err error) (any, error) { return nil, err }

func pair[T any](v T, err error) (any, error) { return v, err }

func TestEveryMethodGoesThere(t *testing.T) {
	ctx, odd := context.Background(), "\x01px:ü/?&%\n"
	tests := []struct {
		name string
		do   func(*Client) (any, error)
		call string
		want any
	}{
		{"status", func(c *Client) (any, error) { return pair(c.Status(ctx)) },
			"status", Status{PID: 7, Started: noon, Running: 3}},
		{"sessions", func(c *Client) (any, error) { return pair(c.Sessions(ctx)) },
			"sessions", []Session{{Agent: "codex", ID: "\x01px:1"}, {Agent: "codex", ID: "2"}}},
		{"session", func(c *Client) (any, error) { return pair(c.Session(ctx, "codex", odd)) },
			fmt.Sprintf("session codex %q", odd), Session{Agent: "codex", ID: odd}},
		{"price", func(c *Client) (any, error) { return pair(c.MovePrice(ctx, "codex", odd, "glm")) },
			fmt.Sprintf("price codex %q glm", odd), MovePrice{Agent: "codex", ID: odd, To: "glm", Tokens: 9}},
		{"move", func(c *Client) (any, error) { return pair(c.Move(ctx, "codex", odd, "glm")) },
			fmt.Sprintf("move codex %q glm", odd), Session{Agent: "codex", ID: odd, Server: "glm"}},
		{"forget", func(c *Client) (any, error) { return discard(c.Forget(ctx, "codex", odd)) },
			fmt.Sprintf("forget codex %q", odd), nil},
		{"use", func(c *Client) (any, error) { return pair(c.Use(ctx, "codex", "glm")) },
			"use codex glm", Switch{Agent: "codex", Server: "glm", Stay: map[string]int{"own": 2}}},
		{"reset", func(c *Client) (any, error) { return pair(c.Reset(ctx, "codex")) },
			"reset codex", Switch{Agent: "codex"}},
		{"add", func(c *Client) (any, error) { return pair(c.AddServer(ctx, ServerSpec{Name: "glm"})) },
			"add glm", ServerChange{Name: "glm"}},
		{"remove", func(c *Client) (any, error) { return pair(c.RemoveServer(ctx, "glm")) },
			"remove glm", ServerChange{Name: "glm", Running: 4}},
		{"preflight", func(c *Client) (any, error) { return pair(c.Preflight(ctx, "glm", []string{"a", "b"})) },
			"preflight glm [a b]", Preflight{Server: "glm", Up: true}},
		{"test", func(c *Client) (any, error) { return pair(c.TestServer(ctx, "glm", nil)) },
			"test glm []", Preflight{Server: "glm", Up: true, FirstMS: 7}},
		{"requests", func(c *Client) (any, error) { return pair(c.Requests(ctx, 20)) },
			"requests 20", []Request{{ID: "r1", Time: noon}}},
		{"restart", func(c *Client) (any, error) { return discard(c.Restart(ctx)) }, "restart", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			c := serve(t, f)
			got, err := tt.do(c)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
			if want := []string{tt.call}; !reflect.DeepEqual(f.calls, want) {
				t.Errorf("backend got %q, want %q", f.calls, want)
			}

			f.err = &Error{Message: "no", Hint: "do this", Code: CodeConflict}
			_, err = tt.do(c)
			var e *Error
			if !errors.As(err, &e) || *e != (Error{Message: "no", Hint: "do this", Code: CodeConflict}) {
				t.Errorf("refusal: got %#v", err)
			}
			f.err = errors.New("plain")
			if _, err = tt.do(c); !errors.As(err, &e) || *e != (Error{Message: "plain"}) {
				t.Errorf("failure: got %#v", err)
			}
		})
	}
}

func TestSecretGoesOneWay(t *testing.T) {
	const secret = "sk-fake-0123456789"
	f := newFake()
	c := serve(t, f)
	spec := ServerSpec{Name: "glm", URL: "https://glm.example.com", Key: "stored", Secret: secret}
	if _, err := c.AddServer(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.spec, spec) {
		t.Errorf("backend got another spec: %v, secret kept: %t", f.spec, f.spec.Secret == secret)
	}
	body, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v %s", spec, spec, spec, spec), fmt.Sprintf("%v %+v %#v", &spec, &spec, &spec), string(body),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is printed: %s", text)
		}
	}
}

func TestNotRunning(t *testing.T) {
	stale := func(t *testing.T, path string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
	}
	tests := []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"no socket", func(*testing.T, string) {}},
		{"socket of a dead process", stale},
		{"a plain file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := home(t)
			tt.make(t, filepath.Join(dir, SocketName))
			if _, err := Dial(dir).Status(context.Background()); !errors.Is(err, ErrNotRunning) {
				t.Errorf("got %v, want ErrNotRunning", err)
			}
			if _, err := Dial(dir).Subscribe(context.Background()); !errors.Is(err, ErrNotRunning) {
				t.Errorf("subscribe: got %v, want ErrNotRunning", err)
			}
		})
	}
	t.Run("a path that is too long", func(t *testing.T) {
		_, err := Dial("/tmp/" + strings.Repeat("x", 100)).Status(context.Background())
		if !errors.Is(err, ErrTooLong) || errors.Is(err, ErrNotRunning) {
			t.Errorf("got %v, want ErrTooLong", err)
		}
	})
}

func TestClientDoubtsTheAnswer(t *testing.T) {
	tests := []struct {
		name, answer, want string
		status             int
	}{
		{"not JSON", "hello", "read the proxy's answer", 200},
		{"cut", `{"pid":`, "read the proxy's answer", 200},
		{"no reason", "", "404 Not Found without a reason", 404},
		{"another service", "<html>", "502 Bad Gateway without a reason", 502},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := home(t)
			l, err := Listen(filepath.Join(dir, SocketName))
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.answer)
			}))
			s.Listener = l
			s.Start()
			t.Cleanup(s.Close)
			c := Dial(dir)
			defer c.Close()
			if _, err := c.Status(context.Background()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestEventsComeInOrderUntilTheProxyEnds(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	s, err := c.Subscribe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	next := func() Event {
		t.Helper()
		e, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if got := next(); got.Kind != EventSnapshot || got.Status.PID != 7 {
		t.Errorf("first event is %+v, want a snapshot", got)
	}
	f.hub.Publish(Event{Kind: EventWarning, Text: "disk full"})
	if got, want := next(), (Event{Kind: EventWarning, Text: "disk full"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.hub.Close()
	if e, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the proxy's end: got %+v, %v, want EOF", e, err)
	}
}

func TestClosingAStreamEndsItsSubscription(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	s, err := c.Subscribe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if _, err := s.Next(); err == nil {
		t.Error("Next after Close gave an event")
	}
	// A subscription that stays would make the limit refuse this many.
	for i := range maxSubscribers * 2 {
		s, err := c.Subscribe(context.Background())
		for err != nil && i >= maxSubscribers && isBusy(err) {
			s, err = c.Subscribe(context.Background()) // its end is on the way
		}
		if err != nil {
			t.Fatalf("subscription %d: %v", i, err)
		}
		_ = s.Close()
	}
}

func isBusy(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == CodeBusy
}
