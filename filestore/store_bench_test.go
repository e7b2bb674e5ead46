package filestore_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentop/filestore"
)

const month = 31 * 24 * time.Hour

// pinKey and pinValue are as large as typical pins.
func pinKey(i int) string { return fmt.Sprintf("pin:claude-code:%08x-4e96-4b0c-9d1e-0123456789ab", i) }

func pinValue(i int) string {
	return fmt.Sprintf(`{"agent":"claude-code","session":"%08x-4e96-4b0c-9d1e-0123456789ab","place":"glm","why":"opened when claude-code was set to glm","model":"glm-5","at":"2026-01-02T03:04:05Z","renewed":"2026-01-02T03:04:05Z","name":"claude-opus"}`, i)
}

// benchDir is on the disk that the temporary folder is on.
func openBench(b *testing.B, pins int, opts ...filestore.Option) (filestore.Store, string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "pins.json")
	opts = append(opts, filestore.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	s, err := filestore.Open(context.Background(), filestore.FileURL(path), opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	for i := range pins {
		if err := s.Set(pinKey(i), pinValue(i), month); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Sync(context.Background()); err != nil {
		b.Fatal(err)
	}
	return s, path
}

// cpuPerOp reports processor time, which a busy machine does not add to.
func cpuPerOp(b *testing.B) (stop func()) {
	used := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkGet(b *testing.B) {
	s, _ := openBench(b, 65536)
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = pinKey(i * 16)
	}
	b.ReportAllocs()
	defer cpuPerOp(b)()
	i := 0
	for b.Loop() {
		if _, found, _ := s.Get(keys[i&4095]); !found {
			b.Fatal("not found")
		}
		i++
	}
}

func BenchmarkGetParallel(b *testing.B) {
	s, _ := openBench(b, 65536)
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = pinKey(i * 16)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			s.Get(keys[i&4095])
		}
	})
}

// BenchmarkGetMiss has a stat in it: another process may have made the key.
func BenchmarkGetMiss(b *testing.B) {
	s, _ := openBench(b, 65536)
	for b.Loop() {
		s.Get("no such key")
	}
}

func BenchmarkSet(b *testing.B) {
	s, _ := openBench(b, 65536, filestore.WithSaveDelay(time.Hour))
	keys, vals := make([]string, 4096), make([]string, 4096)
	for i := range keys {
		keys[i], vals[i] = pinKey(i*16), pinValue(i)
	}
	b.ReportAllocs()
	defer cpuPerOp(b)()
	i := 0
	for b.Loop() {
		s.Set(keys[i&4095], vals[i&4095], month)
		i++
	}
}

// BenchmarkSetDurable tells what group commit gains: callers that wait at the
// same time share a save. Compare ns/op of callers=64 with that of callers=1.
func BenchmarkSetDurable(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s, _ := openBench(b, 100)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						if err := s.SetDurable(context.Background(), pinKey(int(i%100)), pinValue(int(i)), month); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(s.State().Saves)/float64(b.N), "saves/op")
		})
	}
}

// BenchmarkOpening is what a new conversation waits for: a miss and a durable
// write under the lock, beside the least that anything durable can cost, an append to a file
// and its fsync.
func BenchmarkOpening(b *testing.B) {
	b.Run("fsynced-append", func(b *testing.B) {
		f, err := os.OpenFile(filepath.Join(b.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line := []byte(pinValue(1) + "\n")
		for b.Loop() {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, pins := range []int{100, 5000} {
		b.Run(fmt.Sprintf("pins=%d", pins), func(b *testing.B) {
			s, _ := openBench(b, pins)
			i := 0
			for b.Loop() {
				i++
				if _, found, _ := s.Get("no such pin"); found {
					b.Fatal("found")
				}
				// An old key, so that the number of pins stays as it is.
				err := s.UpdateDurable(context.Background(), pinKey(i%pins), func(filestore.Item) (filestore.Item, error) {
					return filestore.Item{Value: pinValue(i), TTL: month, Exists: true}, nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("pins=5000/new", func(b *testing.B) {
		s, _ := openBench(b, 5000)
		defer cpuPerOp(b)()
		i := 5000
		for b.Loop() {
			i++
			if err := s.SetDurable(context.Background(), pinKey(i), pinValue(i), month); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSave compares a save of 65,536 typical pins with writing and
// syncing the same bytes to a new file plainly.
func BenchmarkSave(b *testing.B) {
	b.Run("plain-write-and-sync", func(b *testing.B) {
		_, path := openBench(b, 65536)
		bytes, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(bytes)))
		name := filepath.Join(filepath.Dir(path), "plain")
		for b.Loop() {
			if err := writePlainly(name, bytes); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("store", func(b *testing.B) {
		s, path := openBench(b, 65536)
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(info.Size())
		for b.Loop() {
			if err := s.SetDurable(context.Background(), pinKey(7), pinValue(7), month); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSavePaired does the two of BenchmarkSave in turn, so that what else
// the machine does meets both alike, and reports the median of their ratios.
func BenchmarkSavePaired(b *testing.B) {
	s, path := openBench(b, 65536)
	bytes, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	name := filepath.Join(filepath.Dir(path), "plain")
	var ratios []float64
	for b.Loop() {
		began := time.Now()
		if err := writePlainly(name, bytes); err != nil {
			b.Fatal(err)
		}
		plain := time.Since(began)
		began = time.Now()
		if err := s.SetDurable(context.Background(), pinKey(7), pinValue(7), month); err != nil {
			b.Fatal(err)
		}
		ratios = append(ratios, float64(time.Since(began))/float64(plain))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "store/plain")
}

func writePlainly(name string, bytes []byte) error {
	os.Remove(name)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(bytes); err != nil {
		return err
	}
	return f.Sync()
}

// BenchmarkReload is what taking in another process's save costs: all lines
// but one are as they were.
func BenchmarkReload(b *testing.B) {
	for _, pins := range []int{100, 5000, 65536} {
		b.Run(fmt.Sprintf("pins=%d", pins), func(b *testing.B) {
			s, path := openBench(b, pins)
			other, err := filestore.Open(context.Background(), filestore.FileURL(path))
			if err != nil {
				b.Fatal(err)
			}
			defer other.Close()
			i := pins
			for b.Loop() {
				b.StopTimer()
				i++
				key := pinKey(i)
				if err := other.SetDurable(context.Background(), key, strings.Repeat("x", 200), month); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, found, _ := s.Get(key); !found {
					b.Fatal("not found")
				}
			}
		})
	}
}
