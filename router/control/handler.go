package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Limits of one request to the API.
const (
	maxRequest  = 1 << 20 // bytes of a request's body
	maxTail     = 10_000  // lines of the request log in one answer
	readTimeout = 10 * time.Second
)

// The paths of the API. Every answer is JSON; a refusal is an Error.
const (
	pathStatus    = "/v1/status"
	pathSessions  = "/v1/sessions"
	pathSession   = "/v1/session"
	pathPrice     = "/v1/session/price"
	pathMove      = "/v1/session/move"
	pathForget    = "/v1/session/forget"
	pathUse       = "/v1/agent/use"
	pathReset     = "/v1/agent/reset"
	pathAdd       = "/v1/server/add"
	pathRemove    = "/v1/server/remove"
	pathPreflight = "/v1/server/preflight"
	pathTest      = "/v1/server/test"
	pathRequests  = "/v1/requests"
	pathRestart   = "/v1/restart"
	pathEvents    = "/v1/events"
)

// The requests' bodies. Ids hold any byte, so they travel in bodies and
// queries and never in paths.
type (
	sessionRequest struct {
		Agent  string `json:"agent"`
		ID     string `json:"id"`
		Server string `json:"server,omitempty"`
	}
	agentRequest struct {
		Agent  string `json:"agent"`
		Server string `json:"server,omitempty"`
	}
	serverRequest struct {
		Name   string   `json:"name"`
		Agents []string `json:"agents,omitempty"`
	}
	addRequest struct {
		ServerSpec
		Secret string `json:"secret,omitempty"`
	}
	empty struct{}
)

// NewServer is an HTTP server for a listener made by Listen, with the limits
// that a socket for people's tools needs. Its Close cuts event streams too.
func NewServer(b Backend) *http.Server {
	return &http.Server{
		Handler:           Handler(b),
		ReadHeaderTimeout: readTimeout,
		MaxHeaderBytes:    64 << 10,
	}
}

// Handler serves the API. Access is the socket's matter: whoever reaches the
// handler may do everything.
func Handler(b Backend) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathStatus, answer(b.Status))
	mux.HandleFunc("GET "+pathSessions, answer(b.Sessions))
	mux.HandleFunc("GET "+pathRequests, func(w http.ResponseWriter, r *http.Request) {
		tail, err := tailOf(r)
		if err != nil {
			writeError(w, err)
			return
		}
		requests, err := b.Requests(r.Context(), tail)
		write(w, requests, err)
	})
	mux.HandleFunc("GET "+pathEvents, events(b))
	post(mux, pathSession, func(ctx context.Context, q sessionRequest) (Session, error) {
		return b.Session(ctx, q.Agent, q.ID)
	})
	post(mux, pathPrice, func(ctx context.Context, q sessionRequest) (MovePrice, error) {
		return b.MovePrice(ctx, q.Agent, q.ID, q.Server)
	})
	post(mux, pathMove, func(ctx context.Context, q sessionRequest) (Session, error) {
		return b.Move(ctx, q.Agent, q.ID, q.Server)
	})
	post(mux, pathForget, func(ctx context.Context, q sessionRequest) (empty, error) {
		return empty{}, b.Forget(ctx, q.Agent, q.ID)
	})
	post(mux, pathUse, func(ctx context.Context, q agentRequest) (Switch, error) {
		return b.Use(ctx, q.Agent, q.Server)
	})
	post(mux, pathReset, func(ctx context.Context, q agentRequest) (Switch, error) {
		return b.Reset(ctx, q.Agent)
	})
	post(mux, pathAdd, func(ctx context.Context, q addRequest) (ServerChange, error) {
		q.ServerSpec.Secret = q.Secret
		return b.AddServer(ctx, q.ServerSpec)
	})
	post(mux, pathRemove, func(ctx context.Context, q serverRequest) (ServerChange, error) {
		return b.RemoveServer(ctx, q.Name)
	})
	post(mux, pathPreflight, func(ctx context.Context, q serverRequest) (Preflight, error) {
		return b.Preflight(ctx, q.Name, q.Agents)
	})
	post(mux, pathTest, func(ctx context.Context, q serverRequest) (Preflight, error) {
		return b.TestServer(ctx, q.Name, q.Agents)
	})
	post(mux, pathRestart, func(ctx context.Context, _ empty) (empty, error) {
		return empty{}, b.Restart(ctx)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &Error{
			Message: fmt.Sprintf("the running proxy has no %s %q", r.Method, r.URL.Path),
			Hint:    "this command and the proxy are of different versions: run `agentop service restart`",
			Code:    CodeInvalid,
		})
	})
	return mux
}

// answer serves a request that has nothing to say but its path.
func answer[T any](get func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := get(r.Context())
		write(w, v, err)
	}
}

// post serves a request whose JSON body is a Q.
func post[Q, A any](mux *http.ServeMux, path string, do func(context.Context, Q) (A, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := decode(http.MaxBytesReader(w, r.Body, maxRequest), &q); err != nil {
			writeError(w, err)
			return
		}
		v, err := do(r.Context(), q)
		write(w, v, err)
	})
}

// decode reads exactly one JSON object. A field that is not known is refused:
// a newer command must not believe that an older proxy obeyed it.
func decode(r io.Reader, q any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	err := d.Decode(q)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		// The decoder's text quotes at most one character or a field's name
		// of the body, so a key in it is not repeated.
		return &Error{Message: "control request: " + err.Error(), Code: CodeInvalid}
	}
	return nil
}

func tailOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("tail")
	tail, err := strconv.Atoi(text)
	if err != nil || tail < 0 || tail > maxTail {
		return 0, &Error{
			Message: fmt.Sprintf("tail is %q, not a number from 0 to %d", text, maxTail),
			Code:    CodeInvalid,
		}
	}
	return tail, nil
}

// events streams one JSON event a line until the reader goes or the
// subscription ends. A reader that does not read blocks this goroutine alone.
func events(b Backend) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stream, err := b.Subscribe(ctx)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		out, enc := http.NewResponseController(w), json.NewEncoder(w)
		if out.Flush() != nil {
			return
		}
		for e := range stream {
			if enc.Encode(e) != nil || len(stream) == 0 && out.Flush() != nil {
				return
			}
		}
	}
}

func write(w http.ResponseWriter, v any, err error) {
	if err != nil {
		writeError(w, err)
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		writeError(w, fmt.Errorf("encode answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client has hung up: nobody to tell
}

func writeError(w http.ResponseWriter, err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Message: err.Error()}
	}
	body, _ := json.Marshal(e) // three strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status(e.Code))
	_, _ = w.Write(append(body, '\n'))
}

func status(c Code) int {
	switch c {
	case CodeInvalid:
		return http.StatusBadRequest
	case CodeNotFound:
		return http.StatusNotFound
	case CodeConflict:
		return http.StatusConflict
	case CodeBusy:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
