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

// A shard's chunks are full but for the last, whatever comes and goes.
func TestChunksAreFullButTheLast(t *testing.T) {
	sizes := []int{0, 1, perChunk - 1, perChunk, perChunk + 1, 2 * perChunk, 2*perChunk + 1, 7 * perChunk}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range sizes {
		for _, stay := range sizes {
			x := NewIndex(Limits{}, fixed(0))
			s, who := &x.keys.shards[0], x.convs.sideOwner("glm")
			known := map[uint64]bool{} // to those that stay
			for i := 0; len(known) < max(n, stay); {
				if v := rnd.Uint64() | 1; x.keys.shard(mix(v)) == s {
					known[v] = i < stay
					x.keys.add(v, who, hour(map[bool]int{true: 20, false: 10}[i < stay]))
					i++
				}
			}
			checkShard(t, &x.keys, s, known)
			x.keys.sweep(15, false)
			for v, stays := range known {
				if !stays {
					delete(known, v)
				}
			}
			checkShard(t, &x.keys, s, known)
			if t.Failed() {
				t.Fatalf("%d entries, of which %d stay", max(n, stay), stay)
			}
		}
	}
}

func checkShard(t *testing.T, x *table, s *shard, known map[uint64]bool) {
	t.Helper()
	if s.n != len(known) || len(s.chunks) != (s.n+perChunk-1)/perChunk {
		t.Errorf("%d entries in %d chunks, want %d entries", s.n, len(s.chunks), len(known))
	}
	for _, c := range s.chunks[len(s.chunks):cap(s.chunks)] {
		if c != nil {
			t.Error("a chunk is held that no entry is in")
		}
	}
	for i := 1; i < s.n; i++ {
		if s.at(i-1).hash() >= s.at(i).hash() {
			t.Errorf("entries %d and %d are out of order", i-1, i)
		}
	}
	for v := range known {
		if _, n := x.owners(v, 0); n != 1 {
			t.Errorf("value %d has %d owners", v, n)
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
