// Package metrics counts what the proxy does and serves the counts in
// Prometheus's text format. It is the only importer of the metrics library.
// Each name begins with agentop_ and has a line in help.
package metrics

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

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
	set         *vm.Set
	dropped     *vm.Counter // is set to what droppedKeys says when it is read
	droppedKeys func() float64

	requests   named[requestLabels, *vm.Counter]
	firstBytes named[string, *vm.PrometheusHistogram]
}

// named finds again what was made for some labels, without writing out its
// name.
type named[L comparable, M any] struct {
	mu   sync.RWMutex
	made map[L]M
}

func (n *named[L, M]) get(labels L, make func() M) M {
	n.mu.RLock()
	m, ok := n.made[labels]
	n.mu.RUnlock()
	if !ok {
		m = make()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.made[labels] = m
	}
	return m
}

type requestLabels struct {
	agent, server string
	turn          agents.Turn
	status        int
}

// firstByteBuckets are in seconds: a cache hit on a desk to a model that has
// to be loaded.
var firstByteBuckets = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// New makes the counters, and gauges that ask g.
func New(version string, g Gauges) *Metrics {
	vm.ExposeMetadata(true)
	m := &Metrics{set: vm.NewSet()}
	m.requests.made, m.firstBytes.made = map[requestLabels]*vm.Counter{}, map[string]*vm.PrometheusHistogram{}
	for name, read := range map[string]func() float64{
		"agentop_pins":          g.Pins,
		"agentop_pins_unsaved":  g.UnsavedPins,
		"agentop_save_failing":  g.SaveFailing,
		"agentop_prefix_keys":   g.Keys,
		"agentop_log_bad_lines": g.BadLines,
		"agentop_streams":       g.Streams,
	} {
		m.set.NewGauge(name, read)
	}
	m.dropped, m.droppedKeys = m.set.NewCounter("agentop_prefix_keys_dropped_total"), g.DroppedKeys
	m.set.NewGauge(fmt.Sprintf("agentop_build_info{version=%q}", version), func() float64 { return 1 })
	return m
}

// ServeHTTP writes the metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.dropped.Set(uint64(m.droppedKeys()))
	var text bytes.Buffer
	m.set.WritePrometheus(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for line := range bytes.Lines(text.Bytes()) {
		// The library leaves the meaning out.
		if name, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("# HELP ")); ok {
			line = fmt.Appendf(nil, "# HELP %s %s\n", name, help[string(name)])
		}
		if _, err := w.Write(line); err != nil {
			return // the reader has gone
		}
	}
	vm.WriteProcessMetrics(w)
}

// help says what each name means.
var help = map[string]string{
	"agentop_build_info":                "1; the version is the label.",
	"agentop_requests_total":            "Requests that ended, by agent, place, turn and status.",
	"agentop_first_byte_seconds":        "From a request's arrival to the first byte of its answer.",
	"agentop_streams":                   "Requests in flight.",
	"agentop_pins":                      "Pins in the store.",
	"agentop_pins_unsaved":              "Writes of pins that only memory holds.",
	"agentop_pin_writes_total":          "Writes of pins, by reason.",
	"agentop_save_failing":              "1 while pins cannot be saved.",
	"agentop_prefix_keys":               "Prefix keys in the index.",
	"agentop_prefix_keys_dropped_total": "Prefix keys that found the index full.",
	"agentop_log_bad_lines":             "Damaged lines skipped when the request log was read back.",
	"agentop_refused_total":             "Requests that agentop refused by itself, by reason.",
}

// Request counts a request that ended.
func (m *Metrics) Request(agent, server string, turn agents.Turn, status int) {
	m.requests.get(requestLabels{agent, server, turn, status}, func() *vm.Counter {
		return m.set.GetOrCreateCounter(fmt.Sprintf("agentop_requests_total{agent=%q,server=%q,turn=%q,status=\"%d\"}", agent, server, turn, status))
	}).Inc()
}

// FirstByte observes the time from a request's arrival to the first byte of
// its answer.
func (m *Metrics) FirstByte(server string, d time.Duration) {
	m.firstBytes.get(server, func() *vm.PrometheusHistogram {
		return m.set.GetOrCreatePrometheusHistogramExt(fmt.Sprintf("agentop_first_byte_seconds{server=%q}", server), firstByteBuckets)
	}).Update(d.Seconds())
}

// PinWrite counts a write of a pin: new, member, model, renew, move or forget.
func (m *Metrics) PinWrite(reason string) {
	m.set.GetOrCreateCounter(fmt.Sprintf("agentop_pin_writes_total{reason=%q}", reason)).Inc()
}

// Refused counts a request that agentop refused by itself.
func (m *Metrics) Refused(reason string) {
	m.set.GetOrCreateCounter(fmt.Sprintf("agentop_refused_total{reason=%q}", reason)).Inc()
}
