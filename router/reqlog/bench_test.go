package reqlog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// writeHeavyUser writes a month of n lines: 6,000 conversations, of each five
// lines three main turns and two side requests.
func writeHeavyUser(tb testing.TB, dir string, n int) (bytes int64) {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	perDay := n/30 + 1
	var buf []byte
	for day := range 30 {
		buf = buf[:0]
		for i := range min(perDay, n-day*perDay) {
			// A conversation lives for a day.
			session := fmt.Sprintf("%08x-7777-4000-8000-%012x", day, (i*200/perDay)/20*20+rnd.IntN(20))
			l := Line{
				Time: at(time.Duration(day-29)*24*time.Hour + time.Duration(i)*time.Second), Kind: KindTurn,
				ID: fmt.Sprintf("01K%023d", i), Agent: "claude-code", Session: session,
				Turn: TurnContinuation, Pin: PinKept, Server: "glm", Why: "pinned",
				Format: "messages", Method: "POST", Path: "/v1/messages",
				ModelAsked: "claude-opus-4-5-20260101", ModelSent: "glm-5", Status: 200,
				Input: 90000 + int64(i), CacheRead: 80000, Output: 400, BytesIn: 400000, BytesOut: 30000,
				FirstMS: 900, TotalMS: 9000, Key: Hex(rnd.Uint64()), Mark: Hex(rnd.Uint64()),
			}
			if i%5 > 2 {
				l.Turn, l.Side, l.Key = TurnSide, "title", ""
			}
			buf = appendLine(buf, &l)
		}
		bytes += int64(len(buf))
		name := newFileID(dayOf(at(0))-29+day, 1).name()
		if err := os.WriteFile(filepath.Join(dir, name), buf, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return bytes
}

// cpuTime is what this process has used: on a busy machine it says more than
// the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkLoad200000 tells the time until Open returns (the proxy can serve),
// until the newest conversation is known, in all, and what the index holds.
func BenchmarkLoad200000(b *testing.B) {
	dir := b.TempDir()
	size := writeHeavyUser(b, dir, 200_000)
	b.SetBytes(size)
	for b.Loop() {
		before := heap()
		start, cpu := time.Now(), cpuTime()
		l, err := Open(dir, Options{Now: func() time.Time { return at(0) }})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/1e3, "ms-to-open")
		if err := l.Load(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-to-loaded")
		b.ReportMetric(float64((cpuTime() - cpu).Milliseconds()), "cpu-ms")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB-held")
		s := l.State()
		b.ReportMetric(float64(s.Conversations), "conversations")
		if s.Lines != 200_000 || s.Keys < 120_000 || s.Damaged != 0 {
			b.Fatalf("state %+v", s)
		}
		l.Close()
	}
}

// BenchmarkMillionKeys tells what 2^20 keys cost.
func BenchmarkMillionKeys(b *testing.B) {
	for b.Loop() {
		before := heap()
		x := NewIndex(Limits{}, nil)
		for i := range uint64(1 << 20) {
			x.Register(Placed{Agent: "codex", Session: "s", Server: "glm", Key: mix(i + 1), At: at(0)})
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB-held")
		b.ReportMetric(float64(x.Stats().Keys), "keys")
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	line := fullLine()
	line.Time = time.Time{}
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Append(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendParallel(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		line := fullLine()
		line.Time = time.Time{}
		for pb.Next() {
			if err := l.Append(line); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkLookUp(b *testing.B) {
	x := NewIndex(Limits{}, nil)
	for i := range uint64(200_000) {
		x.Register(Placed{Agent: "codex", Session: fmt.Sprint(i / 100), Server: "glm", Key: mix(i + 1), At: at(0)})
	}
	b.Run("key hit", func(b *testing.B) {
		b.ReportAllocs()
		for i := uint64(0); b.Loop(); i++ {
			if len(x.ByKey(mix(i%200_000+1))) != 1 {
				b.Fatal("missed")
			}
		}
	})
	b.Run("key miss", func(b *testing.B) {
		b.ReportAllocs()
		for i := uint64(0); b.Loop(); i++ {
			x.ByKey(i << 40)
		}
	})
	b.Run("last", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Last("codex", "77")
		}
	})
	b.Run("register", func(b *testing.B) {
		b.ReportAllocs()
		for i := uint64(0); b.Loop(); i++ {
			x.Register(Placed{Agent: "codex", Session: "77", Server: "glm", Key: mix(i%200_000 + 1), At: at(0)})
		}
	})
}

func BenchmarkSweepMillionKeys(b *testing.B) {
	x := NewIndex(Limits{}, func() time.Time { return at(0) })
	for i := range uint64(1 << 20) {
		x.Register(Placed{Agent: "codex", Session: "s", Server: "glm", Key: mix(i + 1), At: at(0)})
	}
	b.Run("nothing to do", func(b *testing.B) {
		for b.Loop() {
			x.Sweep()
		}
	})
	b.Run("walked", func(b *testing.B) {
		for b.Loop() {
			x.keys.sweep(hourOf(micros(at(-day))), true)
		}
	})
}
