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
	for i := range old.Servers {
		s := &old.Servers[i]
		n := w.runningOn(s)
		if n == 0 {
			continue
		}
		after, there := now.Server(s.Name)
		line := ""
		switch {
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
