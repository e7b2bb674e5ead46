package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/supervise/ahead"
	"agentop/router/config"
	"agentop/router/control"
)

// The exit codes of every command.
const (
	ExitOK       = 0
	ExitFailed   = 1 // it was tried and did not work, or the answer is no
	ExitUsage    = 2 // the command line makes no sense
	ExitDeclined = 3 // the user, or the lack of a terminal to ask on, said no
)

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

// hint adds what to do to an error.
func hint(err error, what string) error { return &hinted{error: err, hint: what} }

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errDeclined ends a command that the user did not confirm. Nothing has
// changed.
var errDeclined = errors.New("nothing was changed")

// declined is an errDeclined with another reason than the user's word.
type declined struct{ error }

// Is makes it an errDeclined.
func (declined) Is(target error) bool { return target == errDeclined }

// errSilent is a failure that the command has told already.
var errSilent = errors.New("told already")

// Main runs the command line and gives the process's exit code.
func Main(b Build, args []string) int {
	ctx := context.Background()
	if !ownsSignals(args) {
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
	}
	a := newApp(b)
	if serves, worker := isProxy(args); serves {
		// The tree of all commands is not needed to start fast, and would stay
		// in the memory of a process that runs for weeks.
		return a.exit((&proxyOptions{App: a, Worker: worker}).run(ctx))
	}
	return a.execute(ctx, args)
}

// isProxy reports whether a command line is `proxy` and nothing else, or a
// worker's.
func isProxy(args []string) (serves, worker bool) {
	worker = slices.Equal(args, ahead.Worker)
	return worker || slices.Equal(args, ahead.Proxy), worker
}

// execute runs one command line.
func (a *App) execute(ctx context.Context, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	return a.exit(root.ExecuteContext(ctx))
}

// exit tells an error to the user and gives its exit code.
func (a *App) exit(err error) int {
	if err == nil {
		return ExitOK
	}
	if !errors.Is(err, errSilent) {
		_, _ = fmt.Fprintf(a.Err, "agentop: %s\n", plain.Lines(err.Error()))
		if h := hintFor(err); h != "" {
			_, _ = fmt.Fprintf(a.Err, "agentop: hint: %s\n", plain.Lines(h))
		}
	}
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, errDeclined), errors.Is(err, context.Canceled):
		return ExitDeclined
	}
	return ExitFailed
}

// hintFor says what to do about an error, where something can be done.
func hintFor(err error) string {
	var h *hinted
	var refused *control.Error
	switch {
	case errors.As(err, &h):
		return h.hint
	case errors.As(err, &refused):
		return refused.Hint
	case errors.Is(err, control.ErrNotRunning):
		return "start it with `agentop proxy`"
	case errors.Is(err, control.ErrTooLong):
		return "set AGENTOP_HOME to a directory with a shorter path"
	case errors.Is(err, config.ErrNoServer):
		return "`agentop server list` lists the servers"
	}
	return ""
}
