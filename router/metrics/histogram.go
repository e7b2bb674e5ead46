package metrics

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// bounds are in seconds: a cache hit on a desk to a model that has to be
// loaded.
var bounds = [...]float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// histogram counts times to the first byte. The zero value is ready.
type histogram struct {
	mu     sync.Mutex
	counts [len(bounds) + 1]uint64 // the last is of what is above all bounds
	sum    float64                 // seconds
}

func (h *histogram) observe(d time.Duration) {
	s, i := d.Seconds(), 0
	for i < len(bounds) && s > bounds[i] {
		i++
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[i]++
	h.sum += s
}

// lines writes the histogram of a server; each bound counts what is below it.
func (h *histogram) lines(server string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	var n uint64
	for i, bound := range bounds {
		n += h.counts[i]
		fmt.Fprintf(&b, "agentop_first_byte_seconds_bucket{server=%q,le=\"%v\"} %d\n", server, bound, n)
	}
	n += h.counts[len(bounds)]
	fmt.Fprintf(&b, "agentop_first_byte_seconds_bucket{server=%q,le=\"+Inf\"} %d\n", server, n)
	fmt.Fprintf(&b, "agentop_first_byte_seconds_sum{server=%q} %v\n", server, h.sum)
	fmt.Fprintf(&b, "agentop_first_byte_seconds_count{server=%q} %d\n", server, n)
	return b.String()
}
