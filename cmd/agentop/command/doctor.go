package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/doctor"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/supervise"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
)

// doctorOptions is `agentop doctor`.
type doctorOptions struct {
	*App
	JSON bool
	Fix  bool
}

func newDoctor(a *App, run func(*doctorOptions, context.Context) error) *cobra.Command {
	o := &doctorOptions{App: a}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find what keeps agentop from working, and say what fixes it",
		Long: `Find what keeps agentop from working: the home directory, the configuration, the
proxy and its address, keys (which are not shown), servers, each agent's
settings, this shell's environment. Each finding ends with the command that
fixes it; --fix runs the safe ones. The exit code is 1 when something is wrong.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	c.Flags().BoolVar(&o.Fix, "fix", false, "mend what can be mended safely: modes of agentop's own files, what crashes left")
	return c
}

func (o *doctorOptions) run(ctx context.Context) error {
	d, err := o.doctor()
	if err != nil {
		return err
	}
	found := d.Run(ctx)
	if o.Fix {
		if err := o.mend(found); err != nil {
			return err
		}
		found = d.Run(ctx)
	}
	if o.JSON {
		err = o.json(list(found))
	} else {
		err = o.tell(found)
	}
	if err == nil && doctor.Any(found, doctor.Wrong) {
		err = errSilent
	}
	return err
}

// mend runs the safe repairs.
func (o *doctorOptions) mend(found []doctor.Finding) error {
	for _, f := range found {
		if !f.Safe {
			continue
		}
		if err := f.Repair(); err != nil {
			o.warn(fmt.Sprintf("%s: %v", f.Fix, err))
			continue
		}
		if o.JSON {
			continue
		}
		if err := o.say("fixed: %s", plain.Text(f.Fix)); err != nil {
			return err
		}
	}
	return nil
}

// tell prints the findings, each that is not right with its fix below it.
func (o *doctorOptions) tell(found []doctor.Finding) error {
	wrong := 0
	for _, f := range found {
		if f.Level == doctor.Wrong {
			wrong++
		}
		if err := o.say("%-5s  %s: %s", f.Level, plain.Text(f.Check), plain.Text(f.Text)); err != nil {
			return err
		}
		if f.Fix == "" || f.Level == doctor.OK {
			continue
		}
		if err := o.say("       fix: %s", plain.Text(f.Fix)); err != nil {
			return err
		}
	}
	if wrong == 0 {
		return o.say("nothing is wrong")
	}
	return o.say("%s wrong", plural(wrong, "thing")+" "+isAre(wrong))
}

// doctor joins the doctor to what it asks.
func (a *App) doctor() (*doctor.Doctor, error) {
	dir, err := a.home()
	if err != nil {
		return nil, err
	}
	c, bad := readConfig(dir)
	if bad != nil {
		c = config.Default()
	}
	s, _ := a.agentSetup(dir) // its error is bad
	keys := credential.NewResolver(dir.Keys())
	d := &doctor.Doctor{
		Home: dir, Version: a.Build.Version, Getenv: a.Getenv, Now: a.Now,
		Config: c, ConfigErr: bad,
		Status: func(ctx context.Context) (control.Status, error) {
			client := control.Dial(dir.String())
			defer client.Close()
			return client.Status(ctx)
		},
		Holder: func() doctor.Holder { return holder(dir) },
		Key: func(ctx context.Context, s *config.Server) error {
			_, err := keys.Key(ctx, s)
			return err
		},
		Setup: s, Program: a.programOf, Elsewhere: a.stillElsewhere,
		ProgramVersion: func(ctx context.Context, agent string) string {
			if program := a.programOf(agent); program != "" {
				return a.versionOf(ctx, program)
			}
			return ""
		},
	}
	if a.Examine != nil {
		d.Ask = func(ctx context.Context, s *config.Server) control.Preflight {
			return a.Examine(ctx, dir, s, Questions{})
		}
	}
	if service := a.service(dir); service != nil {
		d.Service = service.Status
	}
	return d, nil
}

// holder is the proxy process of a home, by its lock.
func holder(dir home.Home) doctor.Holder {
	h, held := supervise.Find(dir)
	if !held {
		return doctor.Holder{}
	}
	return doctor.Holder{PID: h.PID, Trouble: h.Trouble, Cure: h.Cure}
}
