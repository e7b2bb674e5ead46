package simulation

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// event is a kind of thing that happens to a conversation.
type event string

// tally counts what happened, by event. Those of several worlds can be added.
type tally struct {
	mu     sync.Mutex
	counts map[event]*counts
}

type counts struct {
	events   int
	turns    int // main turns that reached a server
	diverted int // of them, those that reached the own upstream and belonged elsewhere
	sides    int
	strayed  int // side requests that reached the own upstream and belonged elsewhere
}

func newTally() *tally { return &tally{counts: map[event]*counts{}} }

func (t *tally) of(e event) *counts {
	c, ok := t.counts[e]
	if !ok {
		c = &counts{}
		t.counts[e] = c
	}
	return c
}

func (t *tally) happened(e event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(e).events++
}

func (t *tally) turn(e event, diverted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(e)
	c.turns++
	if diverted {
		c.diverted++
	}
}

func (t *tally) side(e event, strayed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(e)
	c.sides++
	if strayed {
		c.strayed++
	}
}

func (t *tally) add(other *tally) {
	other.mu.Lock()
	defer other.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for e, o := range other.counts {
		c := t.of(e)
		c.events += o.events
		c.turns += o.turns
		c.diverted += o.diverted
		c.sides += o.sides
		c.strayed += o.strayed
	}
}

// requests is how many requests reached a server.
func (t *tally) requests() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := 0
	for _, c := range t.counts {
		sum += c.turns + c.sides
	}
	return sum
}

func (t *tally) total() (events int) {
	for _, c := range t.counts {
		events += c.events
	}
	return events
}

// table shows the counts and the share that went to the own upstream.
func (t *tally) table() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.counts))
	for e := range t.counts {
		names = append(names, string(e))
	}
	sort.Strings(names)
	var b strings.Builder
	total := t.total()
	fmt.Fprintf(&b, "%-22s %8s %7s %9s %9s %8s %8s\n", "event", "events", "share", "turns", "to own", "sides", "to own")
	for _, name := range names {
		c := t.counts[event(name)]
		fmt.Fprintf(&b, "%-22s %8d %6.1f%% %9d %8.3f%% %8d %7.3f%%\n", name, c.events, percent(c.events, total),
			c.turns, percent(c.diverted, c.turns), c.sides, percent(c.strayed, c.sides))
	}
	return b.String()
}

func percent(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}
