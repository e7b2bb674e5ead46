package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentop/router/reqlog"
)

// flavours are the kinds of worlds. Most are as a user's; in some the pin
// store is so small that pins are evicted all the time.
func flavour(seed uint64) options {
	if seed%3 == 2 {
		return options{pins: 60}
	}
	return options{}
}

// run is one world's life.
type run struct {
	seed uint64
	ops  []operation
	opts options
	full bool // tables are full: what has no history is not done
}

// outcome is how it went.
type outcome struct {
	broken     []string // violations of the rule
	diversions []string
	tally      *tally
}

// live runs a world through its operations, in simulated time, until the rule
// is broken.
func live(t *testing.T, r run) (out outcome) {
	t.Helper()
	dir := scratch(t)
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(r.seed, dir, r.opts)
		w.history, w.judge.lenient = r.full, r.full
		for i, op := range r.ops {
			if err := w.run(op); err != nil {
				t.Errorf("seed %d, operation %d (%s): %v", r.seed, i, op.kind, err)
				break
			}
			if len(w.broken()) > 0 {
				break
			}
		}
		if w.proxy != nil {
			w.proxy.die()
		}
		out = outcome{w.broken(), w.judge.diversions, w.judge.tally}
	})
	return out
}

// scratch is a folder in memory where the system has one: the simulation
// restarts thousands of times.
func scratch(t *testing.T) string {
	t.Helper()
	base := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "agentop-simulation-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// setting is a number from the environment.
func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// TestNeverMoved lets worlds live until AGENTOP_SIMULATION_REQUESTS requests
// were sent (a short run by default), several at once. The first has the seed
// AGENTOP_SIMULATION_SEED, a random one by default.
func TestNeverMoved(t *testing.T) {
	first := uint64(setting("AGENTOP_SIMULATION_SEED", int(time.Now().UnixNano()%1_000_000_000)))
	want := setting("AGENTOP_SIMULATION_REQUESTS", 6_000)
	events := 3300 // 1,000 conversations come about
	if want < 20_000 {
		events = 1400
	}
	all, began := newTally(), time.Now()
	var worlds atomic.Uint64
	t.Run("worlds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for all.requests() < want && !t.Failed() {
					seed := first + worlds.Add(1) - 1
					lifeOf(t, run{seed: seed, ops: plan(seed, events), opts: flavour(seed)}, all)
				}
			})
		}
	})
	took := time.Since(began)
	fmt.Printf("%d requests, %d events in %.0f s (%.0f requests/s), %d worlds from seed %d\n%s", all.requests(), all.total(),
		took.Seconds(), float64(all.requests())/took.Seconds(), worlds.Load(), first, all.table())
	for _, e := range []event{forked, rewound, compacted} {
		if c := all.of(e); c.diverted > 0 {
			t.Errorf("%s: %d of %d turns went to the own upstream, want none", e, c.diverted, c.turns)
		}
	}
	if all.total() > 20_000 {
		everyKind(t, all)
	}
}

// everyKind wants each event to be at least one in a hundred.
func everyKind(t *testing.T, all *tally) {
	for _, k := range weights {
		if share := percent(all.of(k.kind).events, all.total()); share < 1 {
			t.Errorf("%s: %.2f %% of the events, want at least 1 %%", k.kind, share)
		}
	}
}

// lifeOf lets one world live, and tells what broke the rule.
func lifeOf(t *testing.T, r run, all *tally) {
	t.Helper()
	out := live(t, r)
	if len(out.broken) > 0 {
		t.Errorf("world %d: %s\n%s", r.seed, out.broken[0], shrink(t, r))
	}
	all.add(out.tally)
	if testing.Verbose() {
		for _, d := range out.diversions {
			if !strings.HasPrefix(d, string(terseReplies)) && !strings.HasPrefix(d, string(afterOwn)) {
				t.Logf("to the own upstream: %s", d)
			}
		}
	}
}

// TestNeverMovedWithFullTables has every table of the index full. What then
// cannot be known may go to the own upstream. When it comes back from there,
// an older reply of its history may be all that is known of it, and no other
// server than one of those that made it may get it.
func TestNeverMovedWithFullTables(t *testing.T) {
	seed := uint64(setting("AGENTOP_SIMULATION_SEED", int(time.Now().UnixNano()%1_000_000_000)))
	opts := options{pins: 40, limits: reqlog.Limits{Conversations: 120, Keys: 200, Marks: 200, Responses: 50}}
	all := newTally()
	lifeOf(t, run{seed: seed, ops: plan(seed, 600), opts: opts, full: true}, all)
	t.Logf("seed %d\n%s", seed, all.table())
	if all.of(smallTables).diverted == 0 {
		t.Error("nothing went to the own upstream: the tables were not full")
	}
}

// shrink leaves out operations as long as the rule is still broken, for a
// while, and tells what remains.
func shrink(t *testing.T, r run) string {
	t.Helper()
	broken := ""
	fails := func(ops []operation) bool {
		smaller := r
		smaller.ops = ops
		out := live(t, smaller)
		if len(out.broken) > 0 {
			broken = out.broken[0]
		}
		return len(out.broken) > 0
	}
	deadline := time.Now().Add(time.Duration(setting("AGENTOP_SIMULATION_SHRINK", 20)) * time.Second)
	for again := true; again; {
		again = false
		for size := len(r.ops) / 2; size > 0; size /= 2 {
			for at := 0; at+size <= len(r.ops) && time.Now().Before(deadline); {
				if without := slices.Concat(r.ops[:at], r.ops[at+size:]); fails(without) {
					r.ops, again = without, true
				} else {
					at += size
				}
			}
		}
	}
	text := fmt.Sprintf("%d operations are enough: %s\n", len(r.ops), broken)
	for _, op := range r.ops[:min(len(r.ops), 30)] {
		text += fmt.Sprintf("  %s %d\n", op.kind, op.seed)
	}
	return text
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // each restart makes and drops whole tables
	code := m.Run()
	if folder, ok := built.Load().(string); ok {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}
