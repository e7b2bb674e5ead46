package tui

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// paintTime is the least time between two writes to the terminal, for keys
// that repeat; a single one is painted at once.
const paintTime = 16 * time.Millisecond

// stopFor is how long the end waits for a terminal that takes no bytes.
const stopFor = 500 * time.Millisecond

// Sequences around the screen: the alternate screen, no cursor, no wrapping at
// the right edge (a terminal that draws a character wider than it is would
// break the line), pasted text told apart from keys.
const (
	enterScreen = ansi.SetModeAltScreenSaveCursor + ansi.EraseEntireScreen + ansi.HideCursor + ansi.ResetModeAutoWrap + ansi.SetModeBracketedPaste
	leaveScreen = ansi.ResetModeBracketedPaste + ansi.SetModeAutoWrap + ansi.ShowCursor + ansi.ResetModeAltScreenSaveCursor
)

// painter brings frames to the terminal. Bubble Tea's own renderer wakes up
// for every frame that could be, sixty times a second, and costs one percent
// of a core while nothing happens; this one sleeps until there is something,
// and writes the lines that differ, all in one write.
type painter struct {
	out  io.Writer
	wake chan struct{} // holds one: there is a frame
	done chan struct{} // closed when the loop is to end
	end  chan struct{} // closed when it has

	mu    sync.Mutex // also held while writing, so that leave comes after a frame
	next  string
	shown []string // what is on the terminal, nil: not known
	on    bool     // the alternate screen is ours
}

func newPainter(out io.Writer) *painter {
	return &painter{out: out, wake: make(chan struct{}, 1), done: make(chan struct{}), end: make(chan struct{})}
}

// start takes the terminal and paints until stop.
func (p *painter) start() {
	p.enter()
	go func() {
		defer close(p.end)
		for {
			select {
			case <-p.done:
				return
			case <-p.wake:
			}
			p.paint()
			select {
			case <-p.done:
				return
			case <-time.After(paintTime):
			}
		}
	}()
}

// stop ends the loop and gives the terminal back. It does not wait for ever
// for a terminal that takes no bytes.
func (p *painter) stop() {
	close(p.done)
	left := make(chan struct{})
	go func() {
		<-p.end
		p.leave()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(stopFor):
	}
}

// frame is the screen from now on. The loop is not woken for one like the last.
func (p *painter) frame(text string) {
	p.mu.Lock()
	same := p.next == text
	p.next = text
	p.mu.Unlock()
	if !same {
		p.signal()
	}
}

// afresh paints every line with the next frame: the terminal's content is not
// what was painted.
func (p *painter) afresh() {
	p.mu.Lock()
	p.shown = nil
	p.mu.Unlock()
	p.signal()
}

// enter takes the terminal.
func (p *painter) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on, p.shown = true, nil
	_, _ = io.WriteString(p.out, enterScreen) // a terminal that is gone ends the input, too
	p.signal()
}

// leave gives the terminal back; nothing is painted until enter.
func (p *painter) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on {
		p.on = false
		_, _ = io.WriteString(p.out, leaveScreen)
	}
}

func (p *painter) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // the loop has not looked since the last signal
	}
}

// paint writes what differs from what is on the terminal.
func (p *painter) paint() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on || p.next == "" {
		return
	}
	lines := strings.Split(p.next, "\n")
	var b strings.Builder
	if len(p.shown) != len(lines) {
		b.WriteString(ansi.EraseEntireScreen)
		p.shown = nil
	}
	for i, line := range lines {
		if p.shown == nil || p.shown[i] != line {
			b.WriteString("\x1b[" + strconv.Itoa(i+1) + ";1H")
			b.WriteString(line)
		}
	}
	p.shown = lines
	if b.Len() > 0 {
		_, _ = io.WriteString(p.out, b.String())
	}
}
