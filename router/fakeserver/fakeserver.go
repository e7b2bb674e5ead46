// Package fakeserver is an inference server that needs no model: it speaks the
// three API formats as coding agents use them, streamed and whole, and signs
// each reply with its name and a number. `agentop demo` runs two of them; tests
// script their misbehaviour. It promises the shape of answers, not their sense,
// and shares no code with the parts of agentop that it is there to judge. Start
// reading at New.
package fakeserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what a server is. The zero value is a server named "fake" that
// takes any model and any credential.
type Options struct {
	// Name is in each reply's signature. Characters other than letters,
	// digits and "-" become "-".
	Name string
	// Models is what the model list shows; the first one answers where a
	// request names none.
	Models []string
	// Strict refuses, as a real server would, models that are not in Models.
	Strict bool
	// Key, if set, is the API key without which requests get 401.
	Key string
	// Window is the context length in the model list, in tokens; zero is 200,000.
	Window int
	// FirstReply is the number of the first reply; zero is 1. A server that
	// follows another of its name goes on counting with it.
	FirstReply int64
	// Addr is where Start listens; "" is a free port of 127.0.0.1.
	Addr string

	// Script says how to answer a request whose body was read; nil answers all
	// plainly. It may block; other requests go on.
	Script func(*Record) Behaviour
	// Early, if set, is asked before the body is read, and may answer then.
	Early func(*Record) *Behaviour
	// OnRequest is told of each request before it is answered. The record's
	// Body is whole then.
	OnRequest func(*Record)
	// OnDone is told when the answer ended or the client left.
	OnDone func(*Record)

	// KeepRecords is how many records Records returns, the newest; zero is
	// 4,096, and negative is none.
	KeepRecords int
	// KeepBody is how many bytes of a body, and of an answer, a kept record
	// holds once it is done; zero is 64 MB.
	KeepBody int
}

// Server is a fake inference server. Its methods may be called at once.
type Server struct {
	opts     Options
	cache    prefixCache
	arrivals atomic.Int64
	replies  atomic.Int64
	inFlight atomic.Int64

	mu      sync.Mutex
	records []*Record

	stop     context.CancelFunc
	stopped  context.Context
	handlers sync.WaitGroup
	listener net.Listener
	http     *http.Server
}

// New returns a server, an http.Handler, that does not listen yet.
func New(opts Options) *Server {
	opts.Name = cleanName(opts.Name)
	if opts.Window == 0 {
		opts.Window = 200_000
	}
	if opts.KeepRecords == 0 {
		opts.KeepRecords = 4096
	}
	if opts.KeepBody == 0 {
		opts.KeepBody = 64 << 20
	}
	s := &Server{opts: opts}
	s.replies.Store(max(0, opts.FirstReply-1))
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s
}

func cleanName(name string) string {
	if name == "" {
		return "fake"
	}
	return strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
}

// Start listens and serves until Close.
func (s *Server) Start() error {
	addr := s.opts.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for fake server %q: %w", s.opts.Name, err)
	}
	s.Serve(l)
	return nil
}

// Serve serves connections of l, which Close closes, and returns at once.
func (s *Server) Serve(l net.Listener) {
	s.listener = l
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.stop()
		}
	}()
}

// Close ends all answers at once, and returns when the last handler has.
func (s *Server) Close() error {
	s.stop()
	var err error
	if s.http != nil {
		err = s.http.Close()
	}
	s.handlers.Wait()
	return err
}

// Name is the name that is in the signatures.
func (s *Server) Name() string { return s.opts.Name }

// URL is the base URL, without /v1; "" before Start.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// InFlight is the number of requests that are being answered.
func (s *Server) InFlight() int { return int(s.inFlight.Load()) }

// Arrivals is the number of requests that have come, kept or not.
func (s *Server) Arrivals() int { return int(s.arrivals.Load()) }

// Records are the newest requests whose bodies were read, oldest first. What an
// answer adds to a record may be read once its Done is closed.
func (s *Server) Records() []*Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Record(nil), s.records...)
}

// Reset forgets the records and the conversations it has cached.
func (s *Server) Reset() {
	s.mu.Lock()
	s.records = nil
	s.mu.Unlock()
	s.cache.reset()
}

func (s *Server) keep(rec *Record) {
	if s.opts.KeepRecords < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) >= s.opts.KeepRecords {
		s.records = append(s.records[:0], s.records[len(s.records)-s.opts.KeepRecords+1:]...)
	}
	s.records = append(s.records, rec)
}
