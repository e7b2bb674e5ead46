package reqlog

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A table that is swept and filled again knows what a map knows.
func TestTableKnowsWhatAMapKnows(t *testing.T) {
	x := NewIndex(Limits{}, fixed(0))
	who := x.convs.sideOwner("glm")
	known := map[uint64]hour{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 40 {
		// Values close to each other: they differ in few bits.
		for range 500 {
			value, used := rnd.Uint64N(1<<14)+1, hour(round)-20 // over the end of the hours
			x.keys.add(value, who, used)
			known[value] = used
		}
		if round%4 == 3 {
			before := hour(round) - 30
			x.keys.sweep(before, false)
			for value, used := range known {
				if used.before(before) {
					delete(known, value)
				}
			}
		}
		if n := int(x.keys.count.Load()); n != len(known) {
			t.Fatalf("round %d: %d entries, want %d", round, n, len(known))
		}
	}
	for value := range uint64(1<<14 + 1) {
		_, n := x.keys.owners(value, 0)
		if _, want := known[value]; want != (n == 1) {
			t.Fatalf("value %d: %d owners, want it known: %t", value, n, want)
		}
	}
}

// Hours are told apart over three years each way, wherever they begin anew.
func TestHoursEndAndBeginAnew(t *testing.T) {
	for year := 1970; year < 2100; year++ {
		now := time.Date(year, 6, 1, 0, 30, 0, 0, time.UTC)
		for _, ahead := range []time.Duration{time.Hour, 31 * day, 3 * 365 * day} {
			a, b := hourOf(micros(now)), hourOf(micros(now.Add(ahead)))
			if !a.before(b) || b.before(a) || a.before(a) {
				t.Errorf("%v and %v after: %d and %d are not told apart", now, ahead, a, b)
			}
		}
	}
}

// What a conversation claimed goes with it, and what others share with it stays.
func TestSweepDropsWhatNobodyOwns(t *testing.T) {
	x := NewIndex(Limits{}, fixed(0))
	for i := range uint64(3000) {
		x.Register(Placed{Agent: "codex", Session: "gone", Server: "glm", Key: i + 1, At: at(0)})
		if i%3 == 0 {
			x.Register(Placed{Agent: "codex", Session: "stays", Server: "lab", Key: i + 1, At: at(0)})
		}
	}
	x.Apply(&Line{Time: at(time.Second), Kind: KindForget, Agent: "codex", Session: "gone"})
	x.Sweep()
	if n := x.Stats().Keys; n != 1000 {
		t.Errorf("%d keys after the sweep, want 1000", n)
	}
	for i := range uint64(3000) {
		if got, want := len(x.ByKey(i+1)), map[bool]int{true: 1}[i%3 == 0]; got != want {
			t.Fatalf("key %d has %d owners, want %d", i+1, got, want)
		}
	}
}
