package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/service"
	"agentop/cmd/agentop/supervise"
)

// serviceInstallOptions is `agentop service install`.
type serviceInstallOptions struct {
	*App
	Linger bool
	DryRun bool
}

func newServiceInstall(a *App, run func(*serviceInstallOptions, context.Context) error) *cobra.Command {
	o := &serviceInstallOptions{App: a}
	c := &cobra.Command{
		Use:   "install",
		Short: "Start the proxy now and at every login",
		Long: `Start the proxy now and at every login, as you and without root: by a systemd
user unit with its socket on Linux, by a launchd agent on macOS. Done again, it
changes what differs. PATH and proxy variables are taken from this shell, and
shown; keys are not.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.Linger, "linger", false, "let it live on after you log out, and start at boot (Linux: loginctl enable-linger)")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "show the files that would be written, and change nothing")
	return c
}

func (o *serviceInstallOptions) run(ctx context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	if o.DryRun {
		return o.show(dir)
	}
	change, err := o.install(ctx, dir)
	if sayErr := o.lines(change); sayErr != nil || err != nil {
		return errors.Join(err, sayErr)
	}
	if len(change.Done) == 0 {
		if err := o.say("installed already, nothing to change"); err != nil {
			return err
		}
	}
	return o.linger(ctx, dir)
}

// show prints the files.
func (o *serviceInstallOptions) show(dir home.Home) error {
	m, err := o.manager(dir)
	if err != nil {
		return err
	}
	s, _, err := o.spec(dir)
	if err != nil {
		return err
	}
	files, err := m.Files(s)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := o.say("==> %s\n%s", plain.Text(path), plain.Lines(files[path])); err != nil {
			return err
		}
	}
	return nil
}

// install does it and returns what was done and what there is to know.
func (o *serviceInstallOptions) install(ctx context.Context, dir home.Home) (service.Change, error) {
	var none service.Change
	m, err := o.manager(dir)
	if err != nil {
		return none, err
	}
	s, notes, err := o.spec(dir)
	if err != nil {
		return none, err
	}
	if err := o.inTheWay(ctx, dir, m); err != nil {
		return none, err
	}
	if err := dir.Create(); err != nil {
		return none, err
	}
	change, err := m.Install(ctx, s)
	change.Notes = append(notes, change.Notes...)
	return change, explain(err)
}

// inTheWay says whether a proxy that somebody started by hand has the home:
// the service could not start.
func (o *serviceInstallOptions) inTheWay(ctx context.Context, dir home.Home, m service.Manager) error {
	holder, held := supervise.Find(dir)
	if !held {
		return nil
	}
	status, err := m.Status(ctx)
	if err == nil && status.PID == holder.PID && holder.PID != 0 {
		return nil
	}
	return hint(fmt.Errorf("a proxy that is not the service serves this home (process %d)", holder.PID),
		"end it (an interrupt where it runs, or `kill` and its number), then try again")
}

// linger turns lingering on if it was asked for, or asks where it is off.
func (o *serviceInstallOptions) linger(ctx context.Context, dir home.Home) error {
	m, err := o.manager(dir)
	if err != nil {
		return err
	}
	status, err := m.Status(ctx)
	if err != nil || !o.Linger && (status.Linger == nil || *status.Linger) {
		return err
	}
	if !o.Linger {
		if !o.InTerminal {
			return nil
		}
		if o.confirm(ctx, false, nil, "Let it live on after you log out (loginctl enable-linger)?") != nil {
			return nil // what was said about it stands
		}
	}
	if err := m.Linger(ctx); err != nil {
		return err
	}
	return o.say("it lives on after a log-out; `agentop service uninstall` undoes that too")
}

// serviceUninstallOptions is `agentop service uninstall`.
type serviceUninstallOptions struct{ *App }

func newServiceUninstall(a *App, run func(*serviceUninstallOptions, context.Context) error) *cobra.Command {
	o := &serviceUninstallOptions{App: a}
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Undo what install did, and nothing else",
		Args:  noArgs,
		RunE:  runner(o, run, nil),
	}
}

func (o *serviceUninstallOptions) run(ctx context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	m, err := o.manager(dir)
	if err != nil {
		return err
	}
	change, err := m.Uninstall(ctx)
	if sayErr := o.lines(change); sayErr != nil || err != nil {
		return errors.Join(err, sayErr)
	}
	if len(change.Done) == 0 {
		return o.say("it is not installed")
	}
	if !awaitFree(ctx, dir, stopPatience) {
		return o.say("the proxy finishes its running streams and ends then")
	}
	return nil
}
