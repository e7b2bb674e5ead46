package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentop/agents"
)

func TestMetricsAreServed(t *testing.T) {
	two := func() float64 { return 2 }
	m := New("1.2.3", Gauges{Pins: two, UnsavedPins: two, SaveFailing: two, Keys: two, DroppedKeys: two, BadLines: two, Streams: two})
	m.Request("claude-code", "glm", agents.Opening, 200)
	m.Request("claude-code", "glm", agents.Opening, 200)
	m.Request("codex", "-", agents.Side, 503)
	m.FirstByte("glm", 300*time.Millisecond)
	m.PinWrite("new")
	m.Refused("guard")

	w := httptest.NewRecorder()
	m.ServeHTTP(w, nil)
	for _, want := range []string{
		`agentop_requests_total{agent="claude-code",server="glm",turn="opening",status="200"} 2`,
		`agentop_requests_total{agent="codex",server="-",turn="side",status="503"} 1`,
		`agentop_first_byte_seconds_bucket{server="glm",le="0.25"} 0`,
		`agentop_first_byte_seconds_bucket{server="glm",le="0.5"} 1`,
		`agentop_pin_writes_total{reason="new"} 1`,
		`agentop_refused_total{reason="guard"} 1`,
		`agentop_pins 2`, `agentop_streams 2`, `agentop_prefix_keys_dropped_total 2`,
		`agentop_build_info{version="1.2.3"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %q in\n%s", want, w.Body)
		}
	}
	if want := "# TYPE agentop_prefix_keys_dropped_total counter\n"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("no line %q", want)
	}
	named := map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		rest, ok := strings.CutPrefix(line, "# HELP agentop_")
		if !ok {
			continue
		}
		name, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
		named["agentop_"+name] = true
		if text == "" {
			t.Errorf("agentop_%s has no meaning", name)
		}
	}
	for name := range help {
		if !named[name] {
			t.Errorf("%s is told of and not served", name)
		}
	}
}
