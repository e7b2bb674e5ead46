// Package metrics counts what the proxy does and serves the counts in
// Prometheus's text format:
// https://prometheus.io/docs/instrumenting/exposition_formats. Each name of its
// own begins with agentop_. It counts by itself: of the libraries that do, the
// smallest reads files and builds tables at the start of each process.
package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentop/agents"
)

// Gauges are asked when somebody reads the metrics.
type Gauges struct {
	Pins        func() float64 // in the store
	UnsavedPins func() float64 // writes that only memory holds
	SaveFailing func() float64 // 1 while saves fail
	Keys        func() float64 // prefix keys in the index
	DroppedKeys func() float64 // keys that found the index full; only grows
	BadLines    func() float64 // damaged lines skipped when the log was read
	Streams     func() float64 // requests in flight
}

// Metrics holds the counters. Its methods may be called at the same time.
type Metrics struct {
	version string
	gauges  Gauges
	started time.Time

	requests   named[requestLabels, atomic.Uint64]
	firstBytes named[string, histogram]
	pinWrites  named[string, atomic.Uint64]
	refused    named[string, atomic.Uint64]
}

// named are counters or histograms by their labels. The zero value is ready.
type named[L comparable, M any] struct {
	mu   sync.RWMutex
	made map[L]*M
}

// get finds what counts for some labels, or makes it.
func (n *named[L, M]) get(labels L) *M {
	n.mu.RLock()
	m, ok := n.made[labels]
	n.mu.RUnlock()
	if ok {
		return m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if m, ok = n.made[labels]; ok {
		return m
	}
	if n.made == nil {
		n.made = map[L]*M{}
	}
	m = new(M)
	n.made[labels] = m
	return m
}

// lines writes each of them out, in the order of their text.
func (n *named[L, M]) lines(write func(labels L, m *M) string) string {
	n.mu.RLock()
	made := maps.Clone(n.made)
	n.mu.RUnlock()
	var all []string
	for labels, m := range made {
		all = append(all, write(labels, m))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

type requestLabels struct {
	agent, server string
	turn          agents.Turn
	status        int
}

// New makes the counters, and gauges that ask g.
func New(version string, g Gauges) *Metrics {
	return &Metrics{version: version, gauges: g, started: time.Now()}
}

// ServeHTTP writes the metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	for _, f := range m.families() {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n%s", f.name, f.help, f.name, cmp.Or(f.kind, "gauge"), f.lines)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text.Bytes()) // an error says that the reader has gone
}

// family is a metric with all of its labels.
type family struct {
	name, help string
	kind       string // "" is a gauge
	lines      string
}

func (m *Metrics) families() []family {
	counted := func(name, label string, by *named[string, atomic.Uint64]) string {
		return by.lines(func(value string, n *atomic.Uint64) string {
			return fmt.Sprintf("%s{%s=%q} %d\n", name, label, value, n.Load())
		})
	}
	line := func(name string, read func() float64) string { return name + " " + number(read()) + "\n" }
	list := []family{
		{"agentop_build_info", "1; the version is the label.", "",
			fmt.Sprintf("agentop_build_info{version=%q} 1\n", m.version)},
		{"agentop_first_byte_seconds", "From a request's arrival to the first byte of its answer.", "histogram",
			m.firstBytes.lines(func(server string, h *histogram) string { return h.lines(server) })},
		{"agentop_log_bad_lines", "Damaged lines skipped when the request log was read back.", "",
			line("agentop_log_bad_lines", m.gauges.BadLines)},
		{"agentop_pin_writes_total", "Writes of pins, by reason.", "counter",
			counted("agentop_pin_writes_total", "reason", &m.pinWrites)},
		{"agentop_pins", "Pins in the store.", "", line("agentop_pins", m.gauges.Pins)},
		{"agentop_pins_unsaved", "Writes of pins that only memory holds.", "",
			line("agentop_pins_unsaved", m.gauges.UnsavedPins)},
		{"agentop_prefix_keys", "Prefix keys in the index.", "", line("agentop_prefix_keys", m.gauges.Keys)},
		{"agentop_prefix_keys_dropped_total", "Prefix keys that found the index full.", "counter",
			line("agentop_prefix_keys_dropped_total", m.gauges.DroppedKeys)},
		{"agentop_refused_total", "Requests that agentop refused by itself, by reason.", "counter",
			counted("agentop_refused_total", "reason", &m.refused)},
		{"agentop_requests_total", "Requests that ended, by agent, place, turn and status.", "counter",
			m.requests.lines(func(l requestLabels, n *atomic.Uint64) string {
				return fmt.Sprintf("agentop_requests_total{agent=%q,server=%q,turn=%q,status=\"%d\"} %d\n", l.agent, l.server, l.turn, l.status, n.Load())
			})},
		{"agentop_save_failing", "1 while pins cannot be saved.", "", line("agentop_save_failing", m.gauges.SaveFailing)},
		{"agentop_streams", "Requests in flight.", "", line("agentop_streams", m.gauges.Streams)},
	}
	return append(list, process(m.started)...)
}

// number writes a number without an exponent.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Request counts a request that ended.
func (m *Metrics) Request(agent, server string, turn agents.Turn, status int) {
	m.requests.get(requestLabels{agent, server, turn, status}).Add(1)
}

// FirstByte observes the time from a request's arrival to the first byte of
// its answer.
func (m *Metrics) FirstByte(server string, d time.Duration) { m.firstBytes.get(server).observe(d) }

// PinWrite counts a write of a pin: new, member, model, renew, move or forget.
func (m *Metrics) PinWrite(reason string) { m.pinWrites.get(reason).Add(1) }

// Refused counts a request that agentop refused by itself.
func (m *Metrics) Refused(reason string) { m.refused.get(reason).Add(1) }
