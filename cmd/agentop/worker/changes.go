package worker

import (
	"fmt"
	"slices"

	"agentop/router/config"
	"agentop/router/control"
)

// tellChanges says what a change of config.yaml means for running
// conversations. A command says it before it changes anything; an edit by hand
// can only be told of once it is in force.
func (w *Worker) tellChanges(old, now *config.Config) {
	running := w.router.Running("")
	for i := range old.Servers {
		s := &old.Servers[i]
		n := runningOn(running, s)
		if n == 0 {
			continue
		}
		after, there := now.Server(s.Name)
		line := ""
		switch newName := renamed(s, old, now); {
		case !there && newName != "":
			line = fmt.Sprintf("server %s is named %s now: a name is a server's identity, so its running conversations (%d) are refused until there is a server %s again", s.Name, newName, n, s.Name)
		case !there:
			line = fmt.Sprintf("server %s is no longer configured: its running conversations (%d) are refused until it is back (`agentop server add %s URL`)", s.Name, n, s.Name)
		case !slices.Equal(s.URLs(), after.URLs()) && len(s.Pool) == 0 && len(after.Pool) == 0:
			line = fmt.Sprintf("server %s has another URL: its running conversations (%d) go there from their next turn on", s.Name, n)
		default:
			continue
		}
		w.log.Warn(line)
		w.hub.Publish(control.Event{Kind: control.EventWarning, Text: line})
	}
}

// renamed is the new name of a server that is gone; "" if none is like it.
func renamed(s *config.Server, old, now *config.Config) string {
	for i := range now.Servers {
		other := &now.Servers[i]
		if _, before := old.Server(other.Name); !before && slices.Equal(s.URLs(), other.URLs()) {
			return other.Name
		}
	}
	return ""
}
