package router

import (
	"net/http"
	"strings"

	"agentop/agents"
)

// The paths that are agentop's own.
const (
	pathHealthy = "/-/healthy"
	pathReady   = "/-/ready"
	pathMetrics = "/-/metrics"
)

// own answers a path that is agentop's own, and says whether it was one.
func (t *turn) own(path string) bool {
	if !strings.HasPrefix(path, "/-/") {
		return false
	}
	t.route().set(t.w.Header())
	h := t.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	switch path {
	case pathHealthy:
		t.say(http.StatusOK, "agentop is here\n")
	case pathReady:
		t.say(http.StatusOK, "ready\n")
	case pathMetrics:
		t.r.Metrics.ServeHTTP(t.w, t.in)
	default:
		t.say(http.StatusNotFound, "agentop: no such page; there are "+pathHealthy+", "+pathReady+" and "+pathMetrics+"\n")
	}
	return true
}

func (t *turn) say(status int, text string) {
	t.w.WriteHeader(status)
	_, _ = t.w.Write([]byte(text)) // who asked may be gone
}

// greet answers an agent's probe.
func (t *turn) greet() {
	t.recogniseHeaders()
	if t.rec.Agent == "" {
		t.rec.Agent = agents.Other
	}
	t.r.seen.note(t.rec.Agent, agents.Version(t.rec.Agent, t.in.UserAgent()), t.started)
	t.route().set(t.w.Header())
	t.w.WriteHeader(http.StatusOK)
}
