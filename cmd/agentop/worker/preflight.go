package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"agentop/agents"
	"agentop/agents/outline"
	"agentop/cmd/agentop/home"
	"agentop/router"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/preflight"
)

// This file asks servers what they can do, and tells it as the control API
// does.

// Preflight implements control.Backend.
func (w *Worker) Preflight(ctx context.Context, server string, agents []string) (control.Preflight, error) {
	return w.preflight(ctx, server, agents, false)
}

// TestServer implements control.Backend.
func (w *Worker) TestServer(ctx context.Context, server string, agents []string) (control.Preflight, error) {
	return w.preflight(ctx, server, agents, true)
}

func (w *Worker) preflight(ctx context.Context, server string, agents []string, speed bool) (control.Preflight, error) {
	s, ok := w.config.Current().Server(server)
	if !ok {
		return control.Preflight{}, unknownServer(server)
	}
	e := w.examiner(speed)
	p, a := e.examine(ctx, s, w.asked(agents))
	if p.Up {
		w.keepAnswer(s, a)
		w.publishStatus()
	}
	for _, m := range w.router.Refused(s.Name) { // what the list does not tell
		if !slices.Contains(p.Missing, m.Asked) {
			p.Warnings = append(p.Warnings, w.refusedLine(s, m))
		}
	}
	return p, nil
}

func (w *Worker) examiner(speed bool) examiner {
	return examiner{keys: w.keys, carry: w.router.Carrier, agent: "agentop/" + w.opts.Version, speed: speed}
}

// asked are the names that agents ask for: those that conversations here had,
// and those that are usual. Without agents it is all that were seen, and those
// that most people have where none was.
func (w *Worker) asked(names []string) []preflight.Asked {
	sessions := w.router.Sessions()
	if len(names) == 0 {
		for _, s := range sessions {
			names = append(names, s.Agent)
		}
		for _, agent := range agents.Known() {
			if at, _ := w.router.Seen(agents.Agent(agent)); !at.IsZero() {
				names = append(names, agent)
			}
		}
	}
	return askedBy(names, sessions)
}

// maxAsked bounds the names that a preflight looks for.
const maxAsked = 64

func askedBy(names []string, sessions []control.Session) []preflight.Asked {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		names = []string{string(agents.ClaudeCode), string(agents.Codex)}
	}
	var list []preflight.Asked
	add := func(q preflight.Asked) {
		known := slices.ContainsFunc(list, func(o preflight.Asked) bool { return o.Agent == q.Agent && o.Model == q.Model })
		if q.Model != "" && !known && len(list) < maxAsked {
			list = append(list, q)
		}
	}
	for _, agent := range names {
		for _, s := range sessions {
			if s.Agent == agent && s.Running {
				add(preflight.Asked{Agent: agent, Model: s.ModelAsked, Seen: true})
			}
		}
		for _, model := range preflight.Usual(agent) {
			add(preflight.Asked{Agent: agent, Model: model})
		}
	}
	return list
}

// Examine is a preflight without a proxy: what `server add` and `server test`
// ask when none runs. Speed adds the one request that generates a token.
func Examine(ctx context.Context, s *config.Server, q Examination) control.Preflight {
	e := examiner{keys: credential.NewResolver(q.Home.Keys()), carry: router.NewCarrier, agent: "agentop/" + q.Version, speed: q.Speed}
	p, _ := e.examine(ctx, s, askedBy(q.Agents, nil))
	return p
}

// Examination is what Examine needs to know besides the server.
type Examination struct {
	Home    home.Home
	Version string   // of agentop
	Agents  []string // whose models are asked after; none: all that are known
	Speed   bool     // measure the first token too
}

// examiner asks one server everything.
type examiner struct {
	keys  *credential.Resolver
	carry func(s *config.Server, base *url.URL) (http.RoundTripper, error)
	agent string
	speed bool
}

func (e examiner) examine(ctx context.Context, s *config.Server, asked []preflight.Asked) (control.Preflight, *preflight.Answer) {
	ask := preflight.Asker{Server: s, Agent: e.agent, Transport: func(base *url.URL) (http.RoundTripper, error) { return e.carry(s, base) }}
	ask.Key, ask.KeyErr = e.key(ctx, s)
	a := ask.Ask(ctx)
	names := preflight.Check(s, &a, asked)
	p := control.Preflight{
		Server: s.Name, Up: a.Up, Kind: a.Kind, Context: a.Context(), Missing: names.Missing,
		Warnings: slices.Concat(a.Trouble, names.Trouble),
	}
	switch a.Key {
	case preflight.KeyAccepted:
		p.KeyOK = new(true)
	case preflight.KeyRefused:
		p.KeyOK = new(false)
	}
	for _, m := range a.Models {
		p.Models = append(p.Models, m.Name)
	}
	for _, f := range a.Formats {
		p.Formats = append(p.Formats, preflight.Word(f))
	}
	for _, line := range names.Rename {
		p.Rename = append(p.Rename, control.Rename{Glob: line.Glob, Name: line.Name})
	}
	for _, n := range names.All {
		p.Names = append(p.Names, control.Name{Agent: n.Agent, Asked: n.Model, Sent: n.Sent, Served: n.Served, Seen: n.Seen})
	}
	if e.speed && a.Up && a.Key != preflight.KeyRefused {
		e.time(ctx, ask, &a, names, &p)
	}
	return p, &a
}

// key gives the server's key. A command that takes longer than the questions
// do is told as such.
func (e examiner) key(ctx context.Context, s *config.Server) (credential.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, preflight.DefaultLimit)
	defer cancel()
	key, err := e.keys.Key(ctx, s)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("server %q: its key was not there within %s; ask again in a moment", s.Name, preflight.DefaultLimit)
	}
	return key, err
}

// time sends the tiny request, for a name that agents ask for if one is
// served.
func (e examiner) time(ctx context.Context, ask preflight.Asker, a *preflight.Answer, names preflight.Names, p *control.Preflight) {
	model := ""
	for _, n := range names.All {
		if n.Served && a.Listed {
			model = n.Sent
			break
		}
	}
	for i := 0; model == "" && i < len(a.Models); i++ {
		model = a.Models[i].Name
	}
	if model == "" {
		p.Warnings = append(p.Warnings, p.Server+": no first token was measured, since it tells no model to ask for")
		return
	}
	formats := a.Formats
	if len(formats) == 0 {
		formats = []outline.Format{outline.Messages, outline.ChatCompletions, outline.Responses}
	}
	s := ask.FirstToken(ctx, model, formats)
	if s.Error != "" {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: no first token was measured: %s", p.Server, s.Error))
		return
	}
	p.FirstMS = max(1, s.First.Round(time.Millisecond).Milliseconds())
	p.Tried = fmt.Sprintf("one %s request of a single token to %s", preflight.Word(s.Format), model)
}
