package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsGivenBackAfterABurst(t *testing.T) {
	held := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	func() {
		burst := make([]byte, 64<<20)
		for i := 0; i < len(burst); i += 4096 {
			burst[i] = 1
		}
		runtime.KeepAlive(burst)
	}()
	GiveBack()
	if n := held(); n > 16<<20 {
		t.Errorf("%d MB of free memory are held after 64 MB were let go of", n>>20)
	}
}

func TestRestIsAfterTheLastThatHappened(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		told := 0
		r := Rest{Before: func() { told++ }}
		r.Happened()
		time.Sleep(quiet - time.Second)
		r.Happened()
		before := collections()
		time.Sleep(quiet - time.Second)
		synctest.Wait()
		if collections() != before {
			t.Error("memory was given back while things happened")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if collections() == before {
			t.Error("memory was not given back after it was quiet")
		}
		if told != 1 {
			t.Errorf("Before was called %d times, want once", told)
		}
		r.Stop()
	})
}

// collections counts those that were asked for.
func collections() uint64 {
	s := []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestTheEnvironmentSaysHowTheCollectorWorks(t *testing.T) {
	set := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	defer debug.SetGCPercent(set())
	t.Setenv("GOGC", "")
	debug.SetGCPercent(77)
	Settle()
	if got := set(); got < least || got > most {
		t.Errorf("GC percent %d, want %d to %d", got, least, most)
	}
	t.Setenv("GOGC", "77")
	debug.SetGCPercent(77)
	for _, f := range []func(){Settle, GiveBack} {
		if f(); set() != 77 {
			t.Errorf("GC percent %d with GOGC=77", set())
		}
	}
}

// What may come together is near room, in a small proxy and in a large one.
func TestGarbageIsMeasuredByWhatLives(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, most}, {1 << 20, most}, {8 << 20, 25}, {12 << 20, 16}, {100 << 20, least}} {
		if got := percent(c.live); got != c.want {
			t.Errorf("%d MB live: %d percent, want %d", c.live>>20, got, c.want)
		}
	}
}

// A collector that was settled while little lived is settled anew once more does.
func TestMemoryThatIsGivenBackSettlesAnew(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	t.Setenv("GOGC", "")
	lives := make([]byte, 64<<20)
	GiveBack()
	runtime.KeepAlive(lives)
	if got := debug.SetGCPercent(100); got != least {
		t.Errorf("GC percent %d with 64 MB alive, want %d", got, least)
	}
}
