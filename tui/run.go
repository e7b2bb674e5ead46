package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/term"

	_ "agentop/tui/quiet" // before Bubble Tea asks the terminal
)

// Options is what the screen needs to know.
type Options struct {
	Source Source
	In     io.Reader        // a terminal
	Out    io.Writer        // a terminal
	Now    func() time.Time // nil: time.Now
	Colour bool             // colours may be used
	ASCII  bool             // nothing beyond ASCII is drawn

	// StartCommand is what starts a proxy, for a Source that cannot.
	StartCommand string
	// Hello is a sentence to begin with, "" for none.
	Hello string
	// Crashed is given the stack of a panic, and returns where it can be read.
	Crashed func(stack []byte) (place string)
}

// Run shows the screen until the user quits, ctx is done or the terminal is
// gone. The terminal is as it was when it returns, also after a panic, which
// is an error.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, o)
	paint := newPainter(o.Out)
	m.painter = paint
	g := &guard{model: m}
	p := tea.NewProgram(g, tea.WithContext(ctx), tea.WithInput(o.In),
		tea.WithOutput(silentOf(o.Out)), tea.WithFPS(1), // the painter writes
		tea.WithoutSignalHandler()) // ctx ends with the signals
	g.quit = p.Quit
	paint.start()
	_, err := p.Run()
	paint.stop()
	if stack := g.crash(); stack != nil {
		place := "nowhere"
		if o.Crashed != nil {
			place = o.Crashed(stack)
		}
		return fmt.Errorf("the screen crashed; the stack is in %s", place)
	}
	switch {
	case m.orphan:
		return errors.New("the program that started the screen is gone")
	case ctx.Err() != nil: // asked to end: that is no failure
		return ctx.Err()
	case errors.Is(err, os.ErrClosed), errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("show the screen: %w", err)
	}
	return nil
}

// silent is a terminal to Bubble Tea, which sets its modes and asks its size,
// but takes nothing that is written: Bubble Tea's renderer cannot be left out
// without those.
type silent struct{ term.File }

// Write implements io.Writer.
func (silent) Write(b []byte) (int, error) { return len(b), nil }

func silentOf(out io.Writer) io.Writer {
	if f, ok := out.(term.File); ok {
		return silent{f}
	}
	return io.Discard
}

// guard catches the panics of a model before they leave the terminal in a
// state that nobody can type in. A panic in a command arrives as a message.
type guard struct {
	model *model
	quit  func() // ends the program

	mu    sync.Mutex
	stack []byte
}

// panicMsg is a panic in a command.
type panicMsg struct{ stack []byte }

// guarded makes a panic of a command a message.
func guarded(cmd func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = panicMsg{stackOf(r)}
			}
		}()
		return cmd()
	}
}

func stackOf(r any) []byte { return fmt.Appendf(nil, "panic: %v\n\n%s", r, debug.Stack()) }

func (g *guard) crash() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stack
}

func (g *guard) crashed(stack []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stack == nil {
		g.stack = stack
	}
}

// Init implements tea.Model.
func (g *guard) Init() tea.Cmd { return g.model.Init() }

// Update implements tea.Model.
func (g *guard) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil {
			g.crashed(stackOf(r))
			next, cmd = g, tea.Quit
		}
	}()
	if p, ok := msg.(panicMsg); ok {
		g.crashed(p.stack)
		return g, tea.Quit
	}
	if g.crash() != nil {
		return g, tea.Quit // View has crashed
	}
	_, cmd = g.model.Update(msg)
	return g, cmd
}

// View implements tea.Model. What it shows goes to the painter, and nothing to
// Bubble Tea.
func (g *guard) View() string {
	defer func() {
		if r := recover(); r != nil {
			g.crashed(stackOf(r))
			go g.quit() // it waits for the loop that this is called from
		}
	}()
	if g.crash() == nil {
		g.model.View()
	}
	return ""
}
