// Package doctor looks at everything that must be right for agentop to work,
// and gives findings as data: each says what was looked at, whether it is
// wrong, and the command that fixes it. It needs no running proxy, changes
// nothing by itself, and shows no key. Start reading at Doctor.Run.
package doctor

import (
	"context"
	"net/http"
	"slices"
	"time"

	"agentop/agents/setup"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
	"agentop/router/control"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	OK    Level = "ok"
	Note  Level = "note"  // worth knowing; nothing need be done
	Wrong Level = "wrong" // something does not work, or will not
)

// Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"`  // the command or edit that fixes it; never empty where Level is wrong
	Safe  bool   `json:"safe,omitempty"` // Repair may be called without asking

	repair func() error
}

// Repair does what Fix says. It may be called for a Safe finding only.
func (f Finding) Repair() error { return f.repair() }

// Service is what the login service says of itself.
type Service struct {
	Supported bool // this system has one that agentop can use
	Installed bool
	Running   bool
	Trouble   string // what is wrong with it; "" = nothing
	Fix       string // what cures Trouble
}

// Holder is the proxy process of a home, whether it can serve or not.
type Holder struct {
	PID     int    // 0 = there is none
	Trouble string // why it cannot serve; "" = it does not say
	Cure    string // of Trouble
}

// Doctor is what can be asked.
type Doctor struct {
	Home    home.Home
	Version string
	Getenv  func(string) string
	Now     func() time.Time

	// Elsewhere says which running sessions of an enabled agent do not use
	// agentop yet; "" for none. nil knows nothing.
	Elsewhere func(agent string, enabled time.Time) string

	// Config is config.yaml, or the defaults where ConfigErr says what is wrong
	// with it.
	Config    *config.Config
	ConfigErr error
	// Status asks the running proxy; control.ErrNotRunning if there is none.
	Status func(context.Context) (control.Status, error)
	// Holder is the process that holds the home; nil knows of none.
	Holder func() Holder
	// Service may be nil.
	Service func(context.Context) (Service, error)
	// Key says why a server's key cannot be had, without giving it.
	Key func(context.Context, *config.Server) error
	// Ask asks a server what it can do; nil dials it only.
	Ask func(context.Context, *config.Server) control.Preflight
	// Setup looks at the agents' settings.
	Setup *setup.Setup
	// Program finds an agent's program; "" if it is not installed.
	Program func(agent string) string
	// ProgramVersion asks an agent's program for its version; nil asks none.
	ProgramVersion func(ctx context.Context, agent string) string
	// Client is used for agentop's own address; nil = the default.
	Client *http.Client

	status control.Status
	up     bool // the proxy has given its status
	holder Holder
	found  []Finding
}

// Run looks at everything and gives what it found, in the order in which
// things depend on each other.
func (d *Doctor) Run(ctx context.Context) []Finding {
	d.found = nil
	status, err := d.Status(ctx)
	d.status, d.up = status, err == nil
	d.holder = Holder{}
	if d.Holder != nil {
		d.holder = d.Holder()
	}
	d.checkHome()
	d.checkDisk()
	d.checkClock()
	d.checkLeftovers()
	d.checkConfig()
	d.checkProxy(err)
	d.checkPort(ctx)
	d.checkSocket()
	d.checkLocks()
	d.checkService(ctx)
	if d.ConfigErr == nil {
		d.checkServers(ctx)
	}
	d.checkAgents(ctx)
	d.checkEnvironment()
	return d.found
}

// Any says whether one of the findings is of the level.
func Any(found []Finding, level Level) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Level == level })
}

func (d *Doctor) ok(check, text string) {
	d.found = append(d.found, Finding{Check: check, Level: OK, Text: text})
}

func (d *Doctor) note(check, text, fix string) {
	d.found = append(d.found, Finding{Check: check, Level: Note, Text: text, Fix: fix})
}

func (d *Doctor) wrong(check, text, fix string) {
	d.found = append(d.found, Finding{Check: check, Level: Wrong, Text: text, Fix: fix})
}

// repairable adds a finding that --fix may mend.
func (d *Doctor) repairable(f Finding, repair func() error) {
	f.Safe, f.repair = true, repair
	d.found = append(d.found, f)
}
