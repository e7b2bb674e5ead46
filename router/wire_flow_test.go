package router

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

func TestEarlyAnswersArriveWhole(t *testing.T) {
	for _, size := range []int{100 << 10, 31 << 20} {
		for _, keeps := range []bool{true, false} {
			t.Run(fmt.Sprint(size, " then closes ", !keeps), func(t *testing.T) {
				var arrivals atomic.Int64
				base := upstream(t, func(c net.Conn) {
					arrivals.Add(1)
					r := bufio.NewReader(c)
					for line := ""; line != "\r\n"; {
						line, _ = r.ReadString('\n')
					}
					_, _ = io.WriteString(c, answerJSON(413, `{"error":{"message":"early"}}`))
					if keeps {
						_, _ = io.Copy(io.Discard, r) // what still comes
					}
					// Else: closed with bytes unread, which is a reset.
				})
				b := newBench(t, nil)
				b.only(base, "key: none")
				res := b.do("POST", "/claude-code/v1/messages", strings.NewReader(claudeBody(user(strings.Repeat("x", size)))), claudeHeader("s1"))
				body := read(t, res)
				if res.StatusCode != 413 || !strings.Contains(body, `"early"`) {
					t.Errorf("%d %s, want the server's 413", res.StatusCode, body)
				}
				if n := arrivals.Load(); n != 1 {
					t.Errorf("%d arrivals, want 1", n)
				}
			})
		}
	}
}

// TestASlowReaderHoldsTheServerBack: what a client does not read is not piled
// up in agentop.
func TestASlowReaderHoldsTheServerBack(t *testing.T) {
	var sent atomic.Int64
	const chunk = 64 << 10
	base := upstream(t, func(c net.Conn) {
		if req, _ := request(bufio.NewReader(c)); req == nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
		line := append(bytes.Repeat([]byte("x"), chunk-2), "\n\n"...)
		for {
			if _, err := c.Write(line); err != nil {
				return
			}
			sent.Add(chunk)
		}
	})
	b := newBench(t, nil)
	b.only(base, "key: none")
	res := b.claude("s1", user("hello"))
	if _, err := io.ReadFull(res.Body, make([]byte, chunk)); err != nil {
		t.Fatal(err)
	}
	// The server is held back when it has sent nothing for a while.
	last := int64(-1)
	for quiet := 0; quiet < 5; time.Sleep(50 * time.Millisecond) {
		if now := sent.Load(); now == last {
			quiet++
		} else {
			last, quiet = now, 0
		}
		if sent.Load() > 64<<20 {
			t.Fatalf("%d MB were taken from the server for a client that reads nothing", sent.Load()>>20)
		}
	}
	t.Logf("the server was held back after %d KB, in the buffers of four sockets", last>>10)
	_ = res.Body.Close()
}

// TestSoakSlowStreams runs many slow streams at once, through agentop and
// directly, and prints how late events are and what a stream costs.
func TestSoakSlowStreams(t *testing.T) {
	streams, length := 100, 3*time.Second
	if full() {
		streams, length = 2000, 5*time.Minute
	}
	const every = 500 * time.Millisecond
	s := fakeserver.New(fakeserver.Options{Name: "slow", KeepRecords: -1, Script: func(*fakeserver.Record) fakeserver.Behaviour {
		return fakeserver.Behaviour{Interval: every, Events: int(length / every), TextBytes: 40 * int(length/every)}
	}})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := newBench(t, nil)
	b.only(s.URL(), "key: none")
	direct := soak(t, s.URL()+"/v1/messages", streams, every)
	through := soak(t, b.url+"/claude-code/v1/messages", streams, every)
	t.Logf("%d streams of %v, an event each %v", streams, length, every)
	t.Logf("directly: %v", direct)
	t.Logf("agentop:  %v", through)
	if through.cut > 0 {
		t.Errorf("%d streams were cut", through.cut)
	}
	// One process holds client, agentop and server: of a stream's three
	// connections two are agentop's, and the rest is counted against it too.
	if extra := (through.memory - max(direct.memory, 0)) / int64(streams); extra > 256<<10 {
		t.Errorf("%d KB a stream more than directly, want at most 256", extra>>10)
	}
	if late := through.worst - direct.worst; full() && late > 50*time.Millisecond {
		t.Errorf("events are %v later than directly at p99.9, want at most 50ms", late)
	}
}

type soaked struct {
	memory    int64 // heap and stacks, while all streams run
	cut       int
	half      time.Duration // of the lateness of gaps between events: median
	worst     time.Duration // p99.9
	perStream int64
}

func (s soaked) String() string {
	return fmt.Sprintf("late by %v at p50, %v at p99.9; %d KB of heap and stacks a stream (client and server included)", s.half, s.worst, s.perStream>>10)
}

func soak(t *testing.T, url string, streams int, every time.Duration) (out soaked) {
	t.Helper()
	client := &http.Transport{MaxIdleConnsPerHost: -1, DisableKeepAlives: true}
	before := inUse()
	type result struct {
		late []time.Duration
		err  error
	}
	results := make(chan result, streams)
	started := make(chan struct{}, streams)
	for i := range streams {
		go func() {
			var r result
			defer func() { results <- r }()
			req, _ := http.NewRequest("POST", url, strings.NewReader(claudeBody(user(fmt.Sprint("hello ", i)))))
			req.Header = claudeHeader(fmt.Sprint("soak-", i))
			res, err := client.RoundTrip(req)
			started <- struct{}{}
			if err != nil {
				r.err = err
				return
			}
			defer res.Body.Close()
			lines := bufio.NewReaderSize(res.Body, 1<<10)
			var last time.Time
			for {
				line, err := lines.ReadString('\n')
				if err == io.EOF {
					return
				}
				if err != nil {
					r.err = err
					return
				}
				if strings.HasPrefix(line, "data:") {
					now := time.Now()
					if !last.IsZero() {
						r.late = append(r.late, max(0, now.Sub(last)-every))
					}
					last = now
				}
			}
		}()
		time.Sleep(every / time.Duration(streams)) // spread, as real ones are
	}
	for range streams {
		<-started
	}
	out.memory = inUse() - before
	out.perStream = out.memory / int64(streams)
	var all []time.Duration
	for range streams {
		r := <-results
		if r.err != nil {
			out.cut++
		}
		all = append(all, r.late...)
	}
	if len(all) > 0 {
		slices.Sort(all)
		out.half, out.worst = all[len(all)/2], all[len(all)*999/1000]
	}
	return out
}

func inUse() int64 {
	runtime.GC()
	runtime.GC() // the first one leaves what pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
