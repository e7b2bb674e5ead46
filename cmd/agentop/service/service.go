// Package service makes the proxy start at login: a systemd user unit with its
// socket on Linux, a launchd agent on macOS. It writes the files, runs the
// system's own commands, and records what it did so that Uninstall undoes just
// that. It needs no root and asks nobody: what needs a person's word is an
// argument. Hand-overs are the supervisor's matter, not this package's.
//
// Start reading at Manager; systemd.go and launchd.go are the two of them.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"agentop/cmd/agentop/home"
)

// EnvName is the variable that tells a proxy which manager started it.
const EnvName = "AGENTOP_SERVICE"

// The values of EnvName.
const (
	Systemd = "systemd"
	Launchd = "launchd"
)

// stopLimit is how long a manager waits for the proxy to end: a little above
// the grace that streams have.
const stopLimit = 31 * time.Minute

// Errors that somebody decides by.
var (
	// ErrNoManager is returned when this system has no service manager for
	// users, or none can be reached from here. The text says why.
	ErrNoManager = errors.New("no service manager can be used here")
	// ErrForeign is returned when a file that Install would write is there and
	// is not agentop's.
	ErrForeign = errors.New("a file that agentop did not write is in the way")
	// ErrNotInstalled is returned by what needs an installed service.
	ErrNotInstalled = errors.New("the service is not installed")
)

// Spec is what the service runs.
type Spec struct {
	Binary    string     // absolute, and stable across upgrades
	Home      home.Home  // agentop's
	Addresses []string   // to listen on, the configured one first
	Env       []Variable // of the installing shell, for what the proxy runs and reaches
}

// Variable is one environment variable of the service.
type Variable struct{ Name, Value string }

// Change says what an operation did, in lines for people, and what they
// should know.
type Change struct {
	Done  []string
	Notes []string
}

func (c *Change) did(format string, args ...any) {
	c.Done = append(c.Done, fmt.Sprintf(format, args...))
}
func (c *Change) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// Status is the service as its manager sees it.
type Status struct {
	Manager   string     `json:"manager"` // systemd or launchd
	Installed bool       `json:"installed"`
	Enabled   bool       `json:"enabled"` // starts at login
	Active    bool       `json:"active"`
	State     string     `json:"state"` // in the manager's words
	PID       int        `json:"pid,omitempty"`
	Restarts  int        `json:"restarts,omitempty"`  // by the manager, since it was started
	Linger    *bool      `json:"linger,omitempty"`    // lives without a login; nil where there is no such thing
	Binary    string     `json:"binary,omitempty"`    // that the files name
	Addresses []string   `json:"addresses,omitempty"` // that the files name
	Env       []Variable `json:"env,omitempty"`       // that the files set
	Files     []string   `json:"files,omitempty"`
	Logs      string     `json:"logs,omitempty"` // command that shows what it wrote
	Problems  []string   `json:"problems,omitempty"`
}

// Manager is the system's service manager for this user. Only one process at
// a time may change things.
type Manager interface {
	// Usable says why this manager cannot be used from here, if so.
	Usable(ctx context.Context) error
	// Files are what Install would write, by path.
	Files(Spec) (map[string]string, error)
	// Install writes the files and starts the service; done again, it changes
	// what differs. What the files name need not be running.
	Install(ctx context.Context, s Spec) (Change, error)
	// Uninstall undoes what Install did, also when half of it is gone.
	Uninstall(ctx context.Context) (Change, error)
	Start(ctx context.Context) error
	// Stop returns when the manager has been told; streams get their grace.
	Stop(ctx context.Context) error
	Status(ctx context.Context) (Status, error)
	// Linger lets the service live without a login, and records that it was
	// agentop that asked for it.
	Linger(ctx context.Context) error
}

// System is what a manager may touch besides files.
type System struct {
	OS     string // as runtime.GOOS
	UID    int
	Getenv func(string) string
	// Run runs a command and returns what it printed on both its outputs.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// Sleep waits between two looks at what a command has begun.
	Sleep func(context.Context, time.Duration)
}

// Here is the system of this process.
func Here(goos string) System {
	return System{OS: goos, UID: os.Getuid(), Getenv: os.Getenv, Run: run, Sleep: sleep}
}

// New gives the manager of a system. records is the directory of what
// Install did: agentop's home.
func New(s System, records home.Home) (Manager, error) {
	user := s.Getenv("HOME")
	if user == "" {
		return nil, fmt.Errorf("%w: HOME is not set", ErrNoManager)
	}
	switch s.OS {
	case "linux":
		return newSystemd(s, records, user), nil
	case "darwin":
		return newLaunchd(s, records, user), nil
	}
	return nil, fmt.Errorf("%w: agentop knows those of Linux and macOS", ErrNoManager)
}

// runLimit bounds one command of a service manager.
const runLimit = 60 * time.Second

func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// command runs one command; its error holds what it printed.
func (s System) command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := s.Run(ctx, name, args...)
	if err == nil {
		return out, nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%w: %s is not installed", ErrNoManager, name)
	}
	if out != "" {
		return out, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return out, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
}
