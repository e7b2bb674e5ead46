package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentop/agents/setup"
	"agentop/cmd/agentop/command/plain"
	"agentop/router/config"
)

// agentDisableOptions is `agentop agent disable`.
type agentDisableOptions struct {
	*App
	Agent  string
	DryRun bool
}

func newAgentDisable(a *App, run func(*agentDisableOptions, context.Context) error) *cobra.Command {
	o := &agentDisableOptions{App: a}
	c := &cobra.Command{
		Use:   "disable AGENT",
		Short: "Put an agent's settings file back as it was",
		Long: `Put an agent's settings file back as it was. A file that nobody has touched
since comes back byte for byte; in one that was changed, each key that holds
what agentop wrote gets what it held before, and a key that holds something
else stays. It needs no running proxy.`,
		Args: exactArgs("AGENT"),
		RunE: runner(o, run, func(o *agentDisableOptions, args []string) { o.Agent = args[0] }),

		ValidArgsFunction: completeSetup(a),
	}
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "show the change and make none")
	c.Flags().Bool("yes", false, "as for enable; nothing is asked either way")
	return c
}

func (o *agentDisableOptions) run(context.Context) error {
	if err := config.CheckAgent(o.Agent); err != nil {
		return usageError{err}
	}
	dir, err := o.home()
	if err != nil {
		return err
	}
	s, bad := o.agentSetup(dir)
	if bad != nil {
		o.warn(fmt.Sprintf("config.yaml is not valid, so agentop's address is taken to be %s: %v", s.Proxy.Listen, bad))
	}
	return o.disableAgent(s, o.Agent, o.DryRun)
}

// disableAgent undoes one agent and says what was done.
func (a *App) disableAgent(s *setup.Setup, agent string, dry bool) error {
	u, err := s.Disable(agent, dry)
	if errors.Is(err, setup.ErrUnknownAgent) {
		return hint(err, "take agentop's address out of its settings by hand")
	}
	if u != nil {
		if told := a.tellUndone(u, dry); told != nil {
			return told
		}
	}
	if err != nil {
		return wrapSetup(agent, err)
	}
	if u.Changed() && !dry {
		return a.tellRunning(agent)
	}
	return nil
}

// tellUndone says what became of each settings file.
func (a *App) tellUndone(u *setup.Undone, dry bool) error {
	for _, n := range u.Notes {
		a.warn(n)
	}
	if !u.Changed() {
		for i := range u.Files {
			if err := a.tellKept(&u.Files[i]); err != nil {
				return err
			}
		}
		return a.say("%s: nothing to undo", u.Agent)
	}
	for i := range u.Files {
		f := &u.Files[i]
		if f.How == setup.HowNothing || f.How == setup.HowUnparsed {
			continue
		}
		var err error
		if dry {
			err = a.write(plain.Lines(f.Diff))
		} else {
			err = a.say("%s: %s %s", u.Agent, f.How, plain.Text(f.File))
		}
		if err == nil {
			err = a.tellKept(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellKept names what was not put back, and why.
func (a *App) tellKept(f *setup.UndoneFile) error {
	if len(f.Kept) > 0 {
		if err := a.say("kept in %s, since it was changed after agentop wrote it: %s", plain.Text(f.File), plain.Text(strings.Join(f.Kept, ", "))); err != nil {
			return err
		}
	}
	if len(f.Unknown) > 0 {
		return a.say("taken out of %s without knowing what was there before, since the record is lost: %s", plain.Text(f.File), plain.Text(strings.Join(f.Unknown, ", ")))
	}
	return nil
}

// tellRunning says which sessions go on using agentop.
func (a *App) tellRunning(agent string) error {
	n, known := 0, false
	if a.Processes != nil {
		var started []time.Time
		started, known = a.Processes(agent)
		n = len(started)
	}
	switch {
	case known && n == 0:
		return nil
	case agent == "codex":
		return a.say("open Codex threads keep using agentop until /new or resume")
	case known:
		return a.say("%s of %s %s using agentop until restarted", plural(n, "running session"), agent, keepKeeps(n))
	}
	return a.say("running sessions of %s keep using agentop until restarted", agent)
}

func keepKeeps(n int) string {
	if n == 1 {
		return "keeps"
	}
	return "keep"
}
