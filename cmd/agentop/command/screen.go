package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/supervise"
	"agentop/router/control"
	"agentop/tui"
	"agentop/tui/view"
)

// runScreen joins the terminal UI to the control API. hello is what a demo
// begins with, "" for the user's own home.
func runScreen(ctx context.Context, b Build, dir home.Home, hello string) error {
	client := control.Dial(dir.String())
	defer client.Close()
	var source tui.Source = &screenSource{client: client, home: dir, build: b}
	if hello != "" {
		// A demo must neither point the user's agents at itself nor start a
		// proxy that outlives it.
		source = struct{ tui.Source }{source}
	}
	return tui.Run(ctx, tui.Options{
		Source: source,
		In:     os.Stdin, Out: os.Stdout,
		Colour: os.Getenv("NO_COLOR") == "", ASCII: asciiOnly(os.Getenv),
		StartCommand: "agentop proxy", Hello: hello,
		Crashed: func(stack []byte) string { return writeCrash(dir, stack) },
	})
}

// asciiOnly reports whether the terminal cannot be trusted with more than
// ASCII: its locale is not UTF-8, or it is the Linux console, whose font lacks
// most characters.
func asciiOnly(getenv func(string) string) bool {
	if term := getenv("TERM"); term == "linux" || term == "dumb" || term == "vt100" || term == "vt220" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set decides
		if v := strings.ToLower(getenv(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return true
}

// writeCrash keeps the stack of a panic and says where.
func writeCrash(dir home.Home, stack []byte) string {
	path := filepath.Join(dir.LogDir(), "screen-crash.log")
	if err := os.MkdirAll(dir.LogDir(), home.DirMode); err != nil {
		return fmt.Sprintf("no file (%v):\n%s", err, stack)
	}
	if err := os.WriteFile(path, stack, home.FileMode); err != nil {
		return fmt.Sprintf("no file (%v):\n%s", err, stack)
	}
	return path
}

// screenSource is the control API as the terminal UI wants it.
type screenSource struct {
	client *control.Client
	home   home.Home
	build  Build
}

// screenError keeps the hint of a refusal.
type screenError struct{ error }

func (e screenError) Unwrap() error { return e.error }

// Hint implements tui.Hinted.
func (e screenError) Hint() string {
	if errors.Is(e.error, tui.ErrNotRunning) {
		return ""
	}
	return hintFor(e.error)
}

// screenErr translates the errors that the screen decides by.
func screenErr(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, control.ErrNotRunning):
		return tui.ErrNotRunning
	}
	return screenError{err}
}

// Subscribe implements tui.Source.
func (s *screenSource) Subscribe(ctx context.Context) (tui.Stream, error) {
	stream, err := s.client.Subscribe(ctx)
	if err != nil {
		return nil, s.notRunning(err)
	}
	return screenStream{stream}, nil
}

// notRunning tells a proxy that cannot serve from none.
func (s *screenSource) notRunning(err error) error {
	holder, held := supervise.Find(s.home)
	if errors.Is(err, control.ErrNotRunning) && held && holder.Trouble != "" {
		return &tui.TroubledError{PID: holder.PID, Reason: holder.Trouble, Cure: holder.Cure}
	}
	return screenErr(err)
}

type screenStream struct{ *control.Stream }

// Next implements tui.Stream.
func (s screenStream) Next() (tui.Event, error) {
	e, err := s.Stream.Next()
	if err != nil {
		return tui.Event{}, screenErr(err)
	}
	out := tui.Event{Snapshot: e.Kind == control.EventSnapshot}
	if e.Status != nil {
		status := screenStatus(*e.Status)
		out.Status = &status
	}
	for _, session := range e.Sessions {
		out.Sessions = append(out.Sessions, view.Session(session))
	}
	switch {
	case e.Session == nil:
	case e.Kind == control.EventGone:
		out.Gone = &view.Key{Agent: e.Session.Agent, ID: e.Session.ID}
	default:
		out.Sessions = append(out.Sessions, view.Session(*e.Session))
	}
	if e.Request != nil {
		request := view.Request(*e.Request)
		out.Request = &request
	}
	if e.Kind == control.EventWarning {
		out.Warning = e.Text
	}
	return out, nil
}

// Status implements tui.Source.
func (s *screenSource) Status(ctx context.Context) (view.Status, error) {
	status, err := s.client.Status(ctx)
	return screenStatus(status), screenErr(err)
}

// Requests implements tui.Source.
func (s *screenSource) Requests(ctx context.Context, n int) ([]view.Request, error) {
	lines, err := s.client.Requests(ctx, n)
	list := make([]view.Request, 0, len(lines))
	for _, line := range lines {
		list = append(list, view.Request(line))
	}
	return list, screenErr(err)
}

// Use implements tui.Source.
func (s *screenSource) Use(ctx context.Context, agent, server string) (view.Switch, error) {
	var change control.Switch
	var err error
	if server == "" {
		change, err = s.client.Reset(ctx, agent)
	} else {
		change, err = s.client.Use(ctx, agent, server)
	}
	return view.Switch(change), screenErr(err)
}

// Preflight implements tui.Source.
func (s *screenSource) Preflight(ctx context.Context, server, agent string) (view.Preflight, error) {
	p, err := s.client.Preflight(ctx, server, []string{agent})
	return screenPreflight(&p), screenErr(err)
}

// Test implements tui.Source.
func (s *screenSource) Test(ctx context.Context, server string) (view.Preflight, error) {
	p, err := s.client.TestServer(ctx, server, nil)
	return screenPreflight(&p), screenErr(err)
}

// MovePrice implements tui.Source.
func (s *screenSource) MovePrice(ctx context.Context, key view.Key, server string) (view.MovePrice, error) {
	price, err := s.client.MovePrice(ctx, key.Agent, key.ID, server)
	return view.MovePrice(price), screenErr(err)
}

// Move implements tui.Source.
func (s *screenSource) Move(ctx context.Context, key view.Key, server string) (view.Session, error) {
	session, err := s.client.Move(ctx, key.Agent, key.ID, server)
	return view.Session(session), screenErr(err)
}

// RemoveServer implements tui.Source.
func (s *screenSource) RemoveServer(ctx context.Context, name string) ([]string, error) {
	change, err := s.client.RemoveServer(ctx, name)
	return change.Warnings, screenErr(err)
}

func screenStatus(s control.Status) view.Status {
	out := view.Status{
		Version: s.Version, PID: s.PID, Started: s.Started, Home: s.Home, Listen: s.Listen, ConfigFile: s.ConfigFile,
		ConfigError: s.ConfigError, Warnings: s.Warnings, Store: view.Store(s.Store), Log: view.Log(s.Log),
		Running: s.Running, Streams: s.Streams,
	}
	for _, a := range s.Agents {
		out.Agents = append(out.Agents, view.Agent(a))
	}
	for i := range s.Draining {
		d := &s.Draining[i]
		drains := view.Draining{PID: d.PID, Version: d.Version, Streams: d.Streams, Since: d.Since}
		for _, key := range d.Sessions {
			drains.Sessions = append(drains.Sessions, view.Key(key))
		}
		out.Draining = append(out.Draining, drains)
	}
	for i := range s.Servers {
		out.Servers = append(out.Servers, screenServer(&s.Servers[i]))
	}
	return out
}

func screenServer(s *control.Server) view.Server {
	out := view.Server{
		Name: s.Name, URL: s.URL, Key: s.Key, Rename: screenRename(s.Rename), Health: view.Health(s.Health),
		Running: s.Running, Streams: s.Streams, FirstMS: s.FirstMS, Warnings: s.Warnings,
	}
	for _, m := range s.Members {
		out.Members = append(out.Members, view.Member{
			Name: m.Name, URL: m.URL, Health: view.Health(m.Health), Capacity: m.Capacity, Cost: m.Cost, Streams: m.Streams,
		})
	}
	return out
}

func screenPreflight(p *control.Preflight) view.Preflight {
	out := view.Preflight{
		Server: p.Server, Up: p.Up, KeyOK: p.KeyOK, Models: p.Models, Formats: p.Formats, Context: p.Context,
		FirstMS: p.FirstMS, Kind: p.Kind, Tried: p.Tried, Missing: p.Missing, Rename: screenRename(p.Rename), Warnings: p.Warnings,
	}
	for _, n := range p.Names {
		out.Names = append(out.Names, view.Name(n))
	}
	return out
}

func screenRename(list []control.Rename) []view.Rename {
	var out []view.Rename
	for _, r := range list {
		out = append(out, view.Rename(r))
	}
	return out
}
