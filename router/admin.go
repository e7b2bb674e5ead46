package router

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"agentop/agents"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/placement"
	"agentop/router/reqlog"
)

// This file is what people may ask and change while the proxy runs.

// Conversation finds the conversation that a person names by agent and id, as
// lists show them.
func (r *Router) Conversation(agent, id string) placement.Conversation {
	c := placement.Conversation{Agent: agents.Agent(agent), Session: id}
	if derived := (placement.Conversation{Agent: c.Agent, Session: "\x01" + id}); strings.HasPrefix(id, "px:") {
		if _, ok := r.roster.get(derived, r.Now()); ok {
			return derived
		}
	}
	return c
}

// Sessions lists every known conversation, the newest main turn first.
func (r *Router) Sessions() []control.Session {
	list := r.roster.list(r.Now())
	for i := range list {
		list[i] = r.shown(list[i])
	}
	return list
}

// Streaming names the conversations with a request in flight, as many as may be
// named, in no order.
func (r *Router) Streaming() []control.Streaming { return r.roster.streaming(control.MaxStreaming) }

// Session is one conversation.
func (r *Router) Session(c placement.Conversation) (control.Session, bool) {
	s, ok := r.roster.get(c, r.Now())
	return r.shown(s), ok
}

// Running counts the running conversations of an agent ("" for all) by the
// place they are at.
func (r *Router) Running(agent agents.Agent) map[string]int {
	return r.roster.running(agent, r.Now())
}

// Streams is the number of requests in flight.
func (r *Router) Streams() int { return r.load.total() }

// Load is the number of requests in flight by server, or pool/member.
func (r *Router) Load() map[string]int {
	r.load.mu.Lock()
	defer r.load.mu.Unlock()
	return maps.Clone(r.load.n)
}

// LoadElsewhere says how many requests another process that serves the same
// home has in flight by place: they take room of servers that both use.
func (r *Router) LoadElsewhere(n map[string]int) {
	r.load.mu.Lock()
	defer r.load.mu.Unlock()
	r.load.elsewhere = n
}

// Seen tells when an agent's last request came, and its client's version.
func (r *Router) Seen(agent agents.Agent) (time.Time, string) {
	s := r.seen.get(agent)
	return s.at, s.version
}

// ServerState is what is known of a configured server from its requests.
func (r *Router) ServerState(s *config.Server) (health control.Health, firstMS int64, streams int, members []control.Member) {
	if len(s.Pool) == 0 {
		health, firstMS = r.health.get(s.Name)
		return health, firstMS, r.load.at(s.Name), nil
	}
	health = control.Health{State: healthUnknown}
	for _, m := range s.Pool {
		place := placeName(s.Name, m.Name)
		condition, first := r.health.get(place)
		n := r.load.at(place)
		streams += n
		members = append(members, control.Member{
			Name: m.Name, URL: m.URL, Health: condition, Capacity: m.Capacity, Cost: m.Cost, Streams: n,
		})
		if condition.At.After(health.At) {
			health = condition
		}
		if first > 0 && (firstMS == 0 || first < firstMS) {
			firstMS = first
		}
	}
	return health, firstMS, streams, members
}

// Move pins a conversation to another place from its next turn on. It is
// recorded in the log too, so that no later rule brings the old place back.
func (r *Router) Move(ctx context.Context, c placement.Conversation, server string) error {
	leave, err := r.gates.enter(ctx, c)
	if err != nil {
		return err
	}
	defer leave()
	now := r.Now()
	p := &pinRecord{Agent: c.Agent, Session: c.Session, Opened: now}
	if value, ok := r.Pins.Get(pinKey(c)); ok {
		if old, err := decodePin(c, value); err == nil {
			p = old
		}
	}
	before := p.Server
	p.Server, p.Member, p.Names, p.Renewed = server, "", nil, now
	p.Pin, p.Why = reqlog.PinMoved, fmt.Sprintf("moved here by you on %s", now.Format("2 Jan 15:04"))
	r.entitle(p)
	r.Meter.PinWrite("move")
	if err := r.Pins.Put(ctx, pinKey(c), p.encode(), pinTTL, true); err != nil {
		r.Logger.Warn("moved pin is in memory only", "agent", c.Agent, "session", placement.Plain(c.Session), "error", err)
	}
	r.Recorder.Append(reqlog.Line{Time: now, Kind: reqlog.KindMove, Agent: string(c.Agent), Session: c.Session, Server: server, Pin: p.Pin, Why: p.Why})
	r.Logger.Info("conversation moved", "agent", c.Agent, "session", placement.Plain(c.Session), "from", before, "to", server)
	r.roster.update(c, func(s *control.Session) { s.Server, s.Pin, s.Why = server, p.Pin, p.Why })
	return nil
}

// Forget drops a conversation's pin and history: its next turn is placed as
// one that agentop never saw.
func (r *Router) Forget(ctx context.Context, c placement.Conversation) error {
	leave, err := r.gates.enter(ctx, c)
	if err != nil {
		return err
	}
	defer leave()
	r.Recorder.Append(reqlog.Line{Time: r.Now(), Kind: reqlog.KindForget, Agent: string(c.Agent), Session: c.Session})
	r.Meter.PinWrite("forget")
	if err := r.Pins.Delete(ctx, pinKey(c)); err != nil {
		r.Logger.Warn("forgotten pin is still on disk", "agent", c.Agent, "session", placement.Plain(c.Session), "error", err)
	}
	r.roster.forget(c)
	r.Publish(control.Event{Kind: control.EventGone, Session: &control.Session{Agent: string(c.Agent), ID: placement.Plain(c.Session)}})
	return nil
}

// Restore fills the roster with what was known before this start: the stored
// pins and the log's last word on each conversation. Rows that a request has
// made since are left as they are.
func (r *Router) Restore(pinValues []string, logged []control.Session) {
	for _, s := range logged {
		c := placement.Conversation{Agent: agents.Agent(s.Agent), Session: s.ID}
		r.roster.restore(c, s)
		r.seen.restore(c.Agent, s.LastTurn)
	}
	for _, value := range pinValues {
		p, err := decodePinAny(value)
		if err != nil {
			continue // logged when a request asks for it
		}
		r.roster.restorePin(p)
	}
}
