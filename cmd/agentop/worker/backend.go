package worker

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"agentop/agents"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/placement"
	"agentop/router/reqlog"
)

// This file answers the control API with what the parts know.

var _ control.Backend = (*Worker)(nil)

// Status implements control.Backend.
func (w *Worker) Status(context.Context) (control.Status, error) { return w.status(), nil }

func (w *Worker) status() control.Status {
	c := w.config.Current()
	s := control.Status{
		Version: w.opts.Version, PID: os.Getpid(), Started: w.started, Home: w.opts.Home.String(),
		Listen: w.listen, ConfigFile: w.opts.Home.Config(),
		Warnings: w.warnings(c), Store: w.storeStatus(), Log: w.logStatus(),
		Streams: w.router.Streams(), Draining: w.others.list(),
	}
	if err := w.config.Err(); err != nil {
		s.ConfigError = err.Error()
	}
	if line := movedListen(c.Listen, w.listen); line != "" {
		s.Warnings = append(s.Warnings, line)
	}
	running := w.router.Running("")
	for _, n := range running {
		s.Running += n
	}
	s.Agents = w.agentStatus(c)
	for i := range c.Servers {
		s.Servers = append(s.Servers, w.serverStatus(&c.Servers[i], running))
	}
	return s
}

func (w *Worker) storeStatus() control.Store {
	state := w.store.State()
	s := control.Store{Pins: state.Keys, Unsaved: state.Unsaved, Since: state.ErrSince}
	if state.Err != nil {
		s.Error = state.Err.Error()
	}
	if state.ReadOnly {
		s.ReadOnly = "pins.json was written by a newer agentop"
	}
	return s
}

func (w *Worker) logStatus() control.Log {
	state := w.reqlog.State()
	s := control.Log{Loaded: state.Loaded, Lines: int(state.Lines), Keys: state.Keys, Bad: int(state.Damaged)}
	if state.Err != nil {
		s.Error = state.Err.Error()
	}
	return s
}

// AgentNames are the agents that lists show: the known ones, then other
// configured ones by name.
func AgentNames(c *config.Config) []string {
	names := agents.Known()
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// DescribeAgent tells of an agent what the configuration does.
func DescribeAgent(c *config.Config, name string) control.AgentStatus {
	return control.AgentStatus{Agent: name, Server: c.Agents[name].Server, Upstream: c.UpstreamWords(name)}
}

func (w *Worker) agentStatus(c *config.Config) []control.AgentStatus {
	var list []control.AgentStatus
	for _, name := range AgentNames(c) {
		a := DescribeAgent(c, name)
		a.LastSeen, a.Version = w.router.Seen(agents.Agent(name))
		for _, n := range w.router.Running(agents.Agent(name)) {
			a.Running += n
		}
		list = append(list, a)
	}
	return list
}

// DescribeServer tells of a server what the configuration does; its health is
// unknown.
func DescribeServer(s *config.Server) control.Server {
	unknown := control.Health{State: "unknown"}
	out := control.Server{Name: s.Name, URL: s.URL, Key: s.Key.String(), Health: unknown}
	for _, r := range s.Rename {
		out.Rename = append(out.Rename, control.Rename{Glob: r.Glob, Name: r.Name})
	}
	for _, m := range s.Pool {
		out.Members = append(out.Members, control.Member{Name: m.Name, URL: m.URL, Capacity: m.Capacity, Cost: m.Cost, Health: unknown})
	}
	return out
}

func (w *Worker) serverStatus(s *config.Server, running map[string]int) control.Server {
	out := DescribeServer(s)
	out.Warnings = w.serverWarnings(s)
	out.Health, out.FirstMS, out.Streams, out.Members = w.router.ServerState(s)
	out.Running = runningOn(running, s)
	return out
}

// Sessions implements control.Backend.
func (w *Worker) Sessions(ctx context.Context) ([]control.Session, error) {
	w.awaitLists(ctx)
	return w.withContexts(w.router.Sessions()), nil
}

// Session implements control.Backend.
func (w *Worker) Session(ctx context.Context, agent, id string) (control.Session, error) {
	w.awaitLists(ctx)
	s, ok := w.router.Session(w.router.Conversation(agent, id))
	if !ok {
		return control.Session{}, unknownSession(agent, id)
	}
	return w.withContext(s), nil
}

func unknownSession(agent, id string) error {
	return &control.Error{
		Message: fmt.Sprintf("no conversation %q of %s is known", id, agent),
		Hint:    "list them with `agentop sessions`", Code: control.CodeNotFound,
	}
}

// MovePrice implements control.Backend.
func (w *Worker) MovePrice(ctx context.Context, agent, id, server string) (control.MovePrice, error) {
	w.awaitLists(ctx)
	s, ok := w.router.Session(w.router.Conversation(agent, id))
	if !ok {
		return control.MovePrice{}, unknownSession(agent, id)
	}
	if err := w.checkPlace(agent, server); err != nil {
		return control.MovePrice{}, err
	}
	p := control.MovePrice{Agent: agent, ID: id, From: s.Server, To: server, Tokens: s.Context, Signed: s.Signed}
	w.price(ctx, &p, s.ModelAsked)
	if s.Streams > 0 {
		p.Warnings = append(p.Warnings, "it is streaming now; the move takes effect with its next turn")
	}
	return p, nil
}

// checkPlace says whether a conversation of agent could be moved to server.
func (w *Worker) checkPlace(agent, server string) error {
	c := w.config.Current()
	if server == placement.Own {
		if c.Agents[agent].UpstreamNone {
			return &control.Error{Message: fmt.Sprintf("%s has no upstream of its own (`upstream: none`)", agent), Code: control.CodeConflict}
		}
		return nil
	}
	if _, ok := c.Server(server); !ok {
		return unknownServer(server)
	}
	return nil
}

func unknownServer(name string) error {
	return &control.Error{
		Message: fmt.Sprintf("no server %q is configured", name),
		Hint:    "list them with `agentop server`, add one with `agentop server add NAME URL`", Code: control.CodeNotFound,
	}
}

// Move implements control.Backend.
func (w *Worker) Move(ctx context.Context, agent, id, server string) (control.Session, error) {
	w.awaitLists(ctx)
	c := w.router.Conversation(agent, id)
	if _, ok := w.router.Session(c); !ok {
		return control.Session{}, unknownSession(agent, id)
	}
	if err := w.checkPlace(agent, server); err != nil {
		return control.Session{}, err
	}
	if err := w.router.Move(ctx, c, server); err != nil {
		return control.Session{}, err
	}
	s, _ := w.router.Session(c)
	return s, nil
}

// Forget implements control.Backend.
func (w *Worker) Forget(ctx context.Context, agent, id string) error {
	w.awaitLists(ctx)
	c := w.router.Conversation(agent, id)
	if _, ok := w.router.Session(c); !ok {
		return unknownSession(agent, id)
	}
	return w.router.Forget(ctx, c)
}

// Use implements control.Backend.
func (w *Worker) Use(ctx context.Context, agent, server string) (control.Switch, error) {
	w.awaitLists(ctx)
	if _, ok := w.config.Current().Server(server); !ok {
		return control.Switch{}, unknownServer(server)
	}
	return w.change(agent, server, func(data []byte) ([]byte, error) { return config.UseServer(data, agent, server) })
}

// Reset implements control.Backend.
func (w *Worker) Reset(ctx context.Context, agent string) (control.Switch, error) {
	w.awaitLists(ctx)
	return w.change(agent, "", func(data []byte) ([]byte, error) { return config.ResetServer(data, agent) })
}

// change edits config.yaml, takes it into force and tells who stays where.
func (w *Worker) change(agent, server string, edit func([]byte) ([]byte, error)) (control.Switch, error) {
	s := control.Switch{Agent: agent, Server: server, Before: w.config.Current().Agents[agent].Server}
	if err := w.edit(edit); err != nil {
		return s, err
	}
	s.Stay = map[string]int{}
	for place, n := range w.router.Running(agents.Agent(agent)) {
		s.Stay[place] += n
	}
	return s, nil
}

func (w *Worker) edit(edit func([]byte) ([]byte, error)) error {
	if err := config.Edit(w.opts.Home.Config(), edit); err != nil {
		return &control.Error{Message: err.Error(), Hint: "mend " + w.opts.Home.Config() + ", then try again", Code: control.CodeConflict}
	}
	if err := w.config.Reload(); err != nil {
		return &control.Error{Message: "written, but not in force: " + err.Error(), Code: control.CodeFailed}
	}
	return nil
}

// ServerOf is a server as it is told over the control API, by itself.
func ServerOf(spec control.ServerSpec) (config.Server, error) {
	key, err := config.ParseKeySource(spec.Key)
	s := config.Server{Name: spec.Name, URL: spec.URL, Key: key, StripV1: spec.StripV1}
	for _, line := range spec.Rename {
		s.Rename = append(s.Rename, config.Rename{Glob: line.Glob, Name: line.Name})
	}
	return s, err
}

// AddServer implements control.Backend.
func (w *Worker) AddServer(ctx context.Context, spec control.ServerSpec) (control.ServerChange, error) {
	change := control.ServerChange{Name: spec.Name}
	server, err := ServerOf(spec)
	if err != nil {
		return change, &control.Error{Message: err.Error(), Code: control.CodeInvalid}
	}
	old, changed := w.config.Current().Server(spec.Name)
	if change.Changed = changed; changed {
		change.Running = runningOn(w.router.Running(""), old)
		change.Agents = w.config.Current().AgentsOf(spec.Name)
	}
	if spec.Secret != "" {
		if err := w.keys.Store(ctx, spec.Name, server.Key.Kind, credential.NewSecret(spec.Secret)); err != nil {
			return change, &control.Error{Message: err.Error(), Code: control.CodeFailed}
		}
	}
	if err := w.edit(func(data []byte) ([]byte, error) { return config.AddServer(data, server.Over(old)) }); err != nil {
		return change, err
	}
	w.keys.Invalidate(spec.Name)
	if changed && old.Key.Kind != server.Key.Kind {
		if err := w.keys.Remove(ctx, spec.Name, old.Key.Kind); err != nil {
			change.Warnings = append(change.Warnings, "its former key is still there: "+err.Error())
		}
	}
	return change, nil
}

// RemoveServer implements control.Backend.
func (w *Worker) RemoveServer(ctx context.Context, name string) (control.ServerChange, error) {
	change := control.ServerChange{Name: name}
	c := w.config.Current()
	server, ok := c.Server(name)
	if !ok {
		return change, unknownServer(name)
	}
	change.Changed, change.Running, change.Agents = true, runningOn(w.router.Running(""), server), c.AgentsOf(name)
	if err := w.edit(func(data []byte) ([]byte, error) { return config.RemoveServer(data, name) }); err != nil {
		return change, err
	}
	if err := w.keys.Drop(ctx, name, server.Key.Kind); err != nil {
		change.Warnings = append(change.Warnings, "its stored key is still there: "+err.Error())
	}
	return change, nil
}

// runningOn counts what runs on a server and on its members.
func runningOn(running map[string]int, s *config.Server) int {
	n := running[s.Name]
	for _, m := range s.Pool {
		n += running[s.Name+"/"+m.Name]
	}
	return n
}

// Requests implements control.Backend.
func (w *Worker) Requests(ctx context.Context, tail int) ([]control.Request, error) {
	lines, err := w.reqlog.Tail(ctx, tail, reqlog.Filter{Kind: reqlog.KindTurn})
	if err != nil {
		return nil, err
	}
	list := make([]control.Request, 0, len(lines))
	for i := range lines {
		list = append(list, requestOf(&lines[i]))
	}
	return list, nil
}

// Subscribe implements control.Backend.
func (w *Worker) Subscribe(ctx context.Context) (<-chan control.Event, error) {
	w.awaitLists(ctx)
	return w.hub.Subscribe(ctx)
}

// snapshot is everything a reader of the event stream begins with.
func (w *Worker) snapshot() control.Event {
	status := w.status()
	return control.Event{Kind: control.EventSnapshot, Status: &status, Sessions: w.withContexts(w.router.Sessions())}
}

func (w *Worker) publishStatus() {
	if w.hub == nil || !w.hub.Listening() {
		return
	}
	status := w.status()
	w.hub.Publish(control.Event{Kind: control.EventStatus, Status: &status})
}

// rows are the conversations as the log tells them.
func (w *Worker) rows() []control.Session {
	known := w.reqlog.Index().Conversations(time.Now().Add(-pinLife))
	rows := make([]control.Session, 0, len(known))
	for _, c := range known {
		rows = append(rows, control.Session{
			Agent: c.Agent, ID: c.Session, Server: c.Server, Pin: c.Pin, Why: c.Why,
			Opened: c.Opened, LastTurn: c.LastTurn, Turns: c.Turns,
			ModelAsked: c.ModelAsked, ModelSent: c.ModelSent, Context: c.Context, Cached: c.Cached,
			Input: c.Input, Output: c.Output, CacheRead: c.CacheRead,
			FirstMS: c.FirstMS, TotalMS: c.TotalMS, Status: c.Status, Error: c.Error,
		})
	}
	return rows
}

// pinLife is how long ago a conversation may have been used to be listed.
const pinLife = 31 * 24 * time.Hour
