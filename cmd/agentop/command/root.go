package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot builds the whole command tree.
func newRoot(a *App) *cobra.Command {
	root := &cobra.Command{
		Use:   "agentop",
		Short: "See and choose which inference server each coding agent's conversations use",
		Long: `agentop is a local proxy for coding agents and a terminal UI.

New conversations go to the server chosen for their agent; a running one stays
on the server it started on. Without a command agentop opens the terminal UI,
or prints the status where there is no terminal.

Exit codes: 0 done, 1 failed, 2 usage, 3 declined.`,
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			return (&rootOptions{App: a}).run(c.Context())
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return hint(usageError{err}, fmt.Sprintf("`%s --help` lists the flags", c.CommandPath()))
	})
	root.CompletionOptions.DisableDescriptions = true
	root.AddCommand(
		newStatus(a, (*statusOptions).run),
		newServer(a),
		newAgent(a),
		newSessions(a),
		newLogs(a, (*logsOptions).run),
		newConfig(a),
		newSetup(a, (*setupOptions).run),
		newDoctor(a, (*doctorOptions).run),
		newUninstall(a, (*uninstallOptions).run),
		newService(a),
		newProxy(a),
		newDemo(a),
		newVersion(a, (*versionOptions).run),
	)
	root.InitDefaultCompletionCmd(root.Commands()[0].Name())
	checkGroups(root)
	return root
}

// Tree gives the commands of a build, to be described and not to be run.
func Tree(b Build) *cobra.Command { return newRoot(newApp(b)) }

// rootOptions is `agentop` without a command.
type rootOptions struct{ *App }

func (o *rootOptions) run(ctx context.Context) error {
	if o.Screen != nil && o.canScreen() {
		dir, err := o.home()
		if err != nil {
			return err
		}
		return o.Screen(ctx, dir)
	}
	return (&statusOptions{App: o.App}).run(ctx)
}

// canScreen reports whether there is a terminal that a screen can be drawn on.
func (a *App) canScreen() bool { return a.InTerminal && a.OutTerminal && a.Getenv("TERM") != "dumb" }

// runner fits an options struct's run method to cobra. o is filled by the
// flags; args fills it from the arguments and may be nil.
func runner[O any](o *O, run func(*O, context.Context) error, args func(*O, []string)) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, given []string) error {
		if args != nil {
			args(o, given)
		}
		return run(o, c.Context())
	}
}

// noArgs refuses arguments: for a group of commands they are misspelt names.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasAvailableSubCommands() {
		return usageHint(c, "%s takes no arguments, got %q", c.CommandPath(), args[0])
	}
	err := usagef("%s has no command %q", c.CommandPath(), args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return hint(err, fmt.Sprintf("did you mean `%s %s`?", c.CommandPath(), near[0]))
	}
	return hint(err, fmt.Sprintf("`%s --help` lists the commands", c.CommandPath()))
}

// exactArgs wants these arguments, which it names when they are not there.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageHint(c, "%s needs %s", c.CommandPath(), strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return usageHint(c, "%s takes %s alone, got also %q", c.CommandPath(), strings.Join(names, " and "), args[len(names)])
		}
		return nil
	}
}

func usageHint(c *cobra.Command, format string, args ...any) error {
	return hint(usagef(format, args...), "usage: "+c.UseLine())
}

// checkGroups gives every command, those that cobra adds included, a check of
// its arguments whose errors are exit code 2.
func checkGroups(c *cobra.Command) {
	c.SilenceUsage = true
	c.SuggestionsMinimumDistance = 2
	check := c.Args
	if check == nil {
		check = noArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return asUsage(err)
		}
		return nil
	}
	if !c.Runnable() { // then cobra shows the help before it looks at the arguments
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	for _, sub := range c.Commands() {
		checkGroups(sub)
	}
}

func asUsage(err error) error {
	var usage usageError
	if errors.As(err, &usage) {
		return err
	}
	return usageError{err}
}
