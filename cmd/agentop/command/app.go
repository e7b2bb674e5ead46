package command

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/service"
	"agentop/router/config"
	"agentop/router/control"
)

// App is all that a command may touch outside of its options.
type App struct {
	In          io.Reader
	Out         io.Writer
	Err         io.Writer
	InTerminal  bool
	OutTerminal bool
	Width       int // of the terminal in cells; 0 = unknown
	Getenv      func(string) string
	Now         func() time.Time
	Build       Build

	// ReadSecret asks on the terminal and reads one line without echo.
	ReadSecret func(ctx context.Context, prompt string) (string, error)
	// Proxy serves until ctx is done.
	Proxy func(context.Context, ProxyOptions) error
	// Demo runs the built-in demonstration until ctx is done.
	Demo func(context.Context, DemoOptions) error
	// Examine asks a server what it can do where no proxy runs that could; nil
	// leaves it unasked.
	Examine func(context.Context, home.Home, *config.Server, Questions) control.Preflight
	// Service gives the login service of a home; nil where the system has none.
	Service func(home.Home) LoginService
	// System is what the service commands act on; without Run, this one.
	System service.System
	// Processes gives when each running process of an agent was started; false
	// where that is not known. nil knows nothing.
	Processes func(agent string) ([]time.Time, bool)
	// Screen is the terminal UI; nil shows the status in its place.
	Screen func(context.Context, home.Home) error
}

// Questions is what a server is asked besides what it serves.
type Questions struct {
	Agents []string // whose model names are looked for; none = the usual ones
	Speed  bool     // with one request that generates a token
}

// ProxyOptions is what the proxy needs to know from the command line.
type ProxyOptions struct {
	Home    home.Home
	Version string
	Stderr  io.Writer
	Worker  bool // serve for the supervisor that started this process
}

// DemoOptions is what the demonstration needs to know from the command line.
type DemoOptions struct {
	Version  string
	Terminal bool // the screen can be shown
	Stdout   io.Writer
	Stderr   io.Writer
}

// newApp is the App of this process. It asks the terminal nothing: a command
// in the background or in a multiplexer must not wait for an answer.
func newApp(b Build) *App {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	a := &App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal:  term.IsTerminal(in),
		OutTerminal: term.IsTerminal(out),
		Getenv:      os.Getenv,
		Now:         time.Now,
		Build:       b,
		ReadSecret:  readSecret,
		Proxy:       runProxy,
		Demo:        runDemo,
		Examine:     examine(b.Version),
		Processes:   runningSince,
		Screen:      func(ctx context.Context, dir home.Home) error { return runScreen(ctx, b, dir, "") },
	}
	a.Service = newLoginService(a)
	if a.OutTerminal {
		if width, _, err := term.GetSize(out); err == nil {
			a.Width = width
		}
	}
	return a
}

// home finds the home directory without making it.
func (a *App) home() (home.Home, error) { return home.Find(a.Getenv) }

// dial gives a client for the proxy of the home directory, connected or not.
func (a *App) dial() (*control.Client, home.Home, error) {
	dir, err := a.home()
	if err != nil {
		return nil, "", err
	}
	return control.Dial(dir.String()), dir, nil
}
