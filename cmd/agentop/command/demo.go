package command

import (
	"context"

	"github.com/spf13/cobra"
)

// demoOptions is `agentop demo`.
type demoOptions struct{ *App }

func newDemo(a *App) *cobra.Command {
	o := &demoOptions{App: a}
	return &cobra.Command{
		Use:   "demo",
		Short: "Try agentop with two built-in servers, without a key or a network",
		Args:  noArgs,
		RunE:  runner(o, (*demoOptions).run, nil),
	}
}

func (o *demoOptions) run(ctx context.Context) error {
	return o.Demo(ctx, DemoOptions{Version: o.Build.Version, Terminal: o.canScreen(), Stdout: o.Out, Stderr: o.Err})
}
