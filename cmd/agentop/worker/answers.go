package worker

import (
	"context"
	"fmt"

	"agentop/router"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/placement"
	"agentop/router/preflight"
)

// withContext adds what is known of a conversation's longest context.
func (w *Worker) withContext(s control.Session) control.Session {
	server, ok := w.config.Current().Server(serverOf(s.Server))
	if !ok || s.ModelSent == "" {
		return s
	}
	if a := w.answers.of(server); a != nil {
		s.ContextMax = a.ContextOf(s.ModelSent)
	}
	return s
}

func (w *Worker) withContexts(list []control.Session) []control.Session {
	for i := range list {
		list[i] = w.withContext(list[i])
	}
	return list
}

// publish tells those who look of what happened.
func (w *Worker) publish(e control.Event) {
	if e.Session != nil && e.Kind == control.EventSession {
		s := w.withContext(*e.Session)
		e.Session = &s
	}
	w.hub.Publish(e)
}

// price adds to a move's price what the target says of itself: it is asked
// now if it was not before.
func (w *Worker) price(ctx context.Context, p *control.MovePrice, asked string) {
	server, ok := w.config.Current().Server(p.To)
	if !ok || p.To == placement.Own {
		return
	}
	a := w.answers.of(server)
	if a == nil {
		_, fresh := w.examiner(false).examine(ctx, server, nil)
		if fresh.Up {
			w.keepAnswer(server, fresh)
		} else {
			p.Warnings = append(p.Warnings, fresh.Trouble...)
		}
		a = fresh
	}
	if asked == "" {
		return
	}
	sent, _ := server.SendModel(asked)
	p.ContextMax = a.ContextOf(sent)
	if a.Listed && !a.AnyName && !a.Serves(sent) {
		p.MissingModel = sent
	}
}

// serverWarnings are what is wrong with a server as far as its turns told, one
// line each with what helps.
func (w *Worker) serverWarnings(s *config.Server) []string {
	var list []string
	for _, m := range w.router.Refused(s.Name) {
		list = append(list, w.refusedLine(s, m))
	}
	return list
}

func (w *Worker) refusedLine(s *config.Server, m router.RefusedModel) string {
	return fmt.Sprintf("%s refused the model %s (%d); %s", s.Name, m.Sent, m.Status, w.cure(s, m))
}

// cure is the rename line that would help, if it is known by now.
func (w *Worker) cure(s *config.Server, m router.RefusedModel) string {
	if m.Sent != m.Asked {
		return fmt.Sprintf("correct its rename line for %s in config.yaml; `agentop server test %s` lists what it serves", m.Asked, s.Name)
	}
	if a := w.answers.of(s); a != nil {
		if line, ok := preflight.Help(a, m.Asked); ok {
			return fmt.Sprintf("this line under %s in config.yaml would help: rename: {%q: %s}", s.Name, line.Glob, line.Name)
		}
	}
	return fmt.Sprintf("`agentop server test %s` shows the rename line that would help", s.Name)
}
