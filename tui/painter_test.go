package tui

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tape is a terminal that notes each write.
type tape struct {
	mu     sync.Mutex
	writes []string
}

func (t *tape) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes = append(t.writes, string(b))
	return len(b), nil
}

// got gives what was written since the last time.
func (t *tape) got() []string {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.writes
	t.writes = nil
	return w
}

func TestPainterWritesWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &tape{}
		p := newPainter(out)
		p.start()
		expect := func(what string, want ...string) {
			t.Helper()
			got := out.got()
			if len(got) != len(want) {
				t.Errorf("%s: got %q, want %q", what, got, want)
				return
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%s: got %q, want %q", what, got[i], want[i])
				}
			}
			time.Sleep(2 * paintTime)
		}
		expect("enter", enterScreen)
		p.frame("a\nb\nc")
		expect("first", "\x1b[2J\x1b[1;1Ha\x1b[2;1Hb\x1b[3;1Hc")
		p.frame("a\nB\nc")
		expect("one line", "\x1b[2;1HB")
		p.frame("a\nB\nc")
		expect("the same")
		p.afresh()
		expect("afresh", "\x1b[2J\x1b[1;1Ha\x1b[2;1HB\x1b[3;1Hc")
		p.frame("a\nB")
		expect("fewer lines", "\x1b[2J\x1b[1;1Ha\x1b[2;1HB")
		p.leave()
		p.frame("x\ny")
		expect("suspended", leaveScreen)
		p.enter()
		expect("back", enterScreen, "\x1b[2J\x1b[1;1Hx\x1b[2;1Hy")
		p.stop()
		expect("stopped", leaveScreen)
	})
}

func TestPainterSkipsFramesThatComeFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &tape{}
		p := newPainter(out)
		p.start()
		for i := range 1000 { // in a second
			p.frame(string(rune('a' + i%26)))
			time.Sleep(time.Millisecond)
		}
		if n := len(out.got()); n < 50 || n > 65 {
			t.Errorf("%d writes in a second of keys", n)
		}
		p.stop()
	})
}

func TestPainterStopsOnAStuckTerminal(t *testing.T) {
	p := newPainter(&bytes.Buffer{})
	p.start()
	p.mu.Lock() // as a write that never returns holds it
	defer p.mu.Unlock()
	done := make(chan struct{})
	go func() { p.stop(); close(done) }()
	<-done
}

// A screen on which nothing changes costs nothing but its making.
func TestPainterSleepsThroughEqualFrames(t *testing.T) {
	p := newPainter(&tape{})
	p.frame("a")
	<-p.wake
	for range 3 {
		p.frame("a")
	}
	if len(p.wake) != 0 {
		t.Error("a frame like the last woke the painter")
	}
	if p.frame("b"); len(p.wake) != 1 {
		t.Error("a new frame did not wake it")
	}
}
