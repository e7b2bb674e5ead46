package metrics

import (
	"net/http/httptest"
	"regexp"
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
	served(t, w.Body.String())
}

// served checks that the text is in Prometheus's format, each metric with its
// meaning and its kind, and that the process tells of itself.
func served(t *testing.T, text string) {
	t.Helper()
	format := regexp.MustCompile(`^([a-z_]+?)(_bucket|_sum|_count)?(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.]+$`)
	helped, typed, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, meaning, _ := strings.Cut(rest, " ")
			helped[name] = meaning != ""
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			typed[name] = (kind == "counter") == strings.HasSuffix(name, "_total")
			continue
		}
		m := format.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("the line %q has another format", line)
			continue
		}
		if seen[m[1]] = true; !helped[m[1]] || !typed[m[1]] {
			t.Errorf("%s: meaning told %v, kind right %v", m[1], helped[m[1]], typed[m[1]])
		}
	}
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_peak_bytes", "process_open_fds"} {
		if !seen[name] {
			t.Errorf("%s is not served", name)
		}
	}
}

// A time counts at its own bound and at all above.
func TestHistogramCountsWhatIsBelow(t *testing.T) {
	m := New("", Gauges{})
	for _, d := range []time.Duration{0, 50 * time.Millisecond, 51 * time.Millisecond, 299 * time.Second, time.Hour} {
		m.FirstByte("glm", d)
	}
	text := m.firstBytes.lines(func(server string, h *histogram) string { return h.lines(server) })
	for _, want := range []string{`_bucket{server="glm",le="0.05"} 2`, `le="0.1"} 3`, `le="60"} 3`, `le="300"} 4`, `le="+Inf"} 5`, `_sum{server="glm"} 3899.101`, `_count{server="glm"} 5`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
