// Package memory keeps a process small that is idle for most of the day. What
// it does was chosen by measurement (docs/performance.md); it changes nothing
// but memory and time. Start reading at Settle.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// How much garbage may come together before it is collected. Most of what lives
// are tables without pointers, so that a collection is cheap.
const (
	// room is aimed at, in bytes: a proxy with few conversations need not
	// collect all the time, and one with many need not hold a quarter of them
	// in vain.
	room = 2 << 20
	// least and most bound what it comes to in percent of what lives. That is
	// reckoned at rest, and stays under load, when more lives.
	least = 12
	most  = 50 // Go's own is 100
)

func percent(live uint64) int {
	return int(min(max(100*room/max(live, 1), least), most))
}

// live is what the last collection left, in bytes.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// Hurry keeps the garbage collector from a process that is starting: it would
// take longer than what it gains. Settle or GiveBack follows.
func Hurry() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Settle makes the garbage collector go for little memory, measured by what
// lives now. GOGC in the environment stands above it.
func Settle() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent(live()))
	}
}

// Wait makes a process that waits for most of its life do one thing at a time:
// then a timer wakes one thread and not several.
func Wait() { runtime.GOMAXPROCS(1) }

// GiveBack returns free memory and the program's own pages to the system, and
// settles anew. It takes some ten milliseconds.
func GiveBack() {
	runtime.GC() // pools let go of what they hold at the second collection
	debug.FreeOSMemory()
	Settle()
	dropProgram()
	calm()
}

// calm keeps the processor for some milliseconds. A collection wakes Go's
// monitor thread (sysmon), which then looks fifty times, each 20 microseconds,
// before it looks more seldom; a process that does nothing else spreads these
// wake-ups over the next minute.
func calm() {
	for range 20_000_000 { // by no clock, as tests have their own
	}
}

// Rest gives memory back once nothing has happened for a while. The zero value
// is ready, and keeps no timer until something happens. It is safe for
// concurrent use.
type Rest struct {
	// Before, if set, is called before memory is given back: it lets go of what
	// lies ready. It must not be changed once something has happened.
	Before func()

	mu    sync.Mutex
	timer *time.Timer
}

// quiet is how long nothing must have happened.
const quiet = 10 * time.Second

// Happened says that something has just happened.
func (r *Rest) Happened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		r.timer = time.AfterFunc(quiet, r.rest)
		return
	}
	r.timer.Reset(quiet)
}

func (r *Rest) rest() {
	if r.Before != nil {
		r.Before()
	}
	GiveBack()
}

// Stop ends the wait.
func (r *Rest) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}
