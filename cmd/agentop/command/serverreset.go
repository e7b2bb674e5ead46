package command

import (
	"context"

	"github.com/spf13/cobra"

	"agentop/router/config"
	"agentop/router/control"
)

// serverResetOptions is `agentop server reset`.
type serverResetOptions struct {
	*App
	Agent string
	JSON  bool
}

func newServerReset(a *App, run func(*serverResetOptions, context.Context) error) *cobra.Command {
	o := &serverResetOptions{App: a}
	c := &cobra.Command{
		Use:   "reset --agent AGENT",
		Short: "Send an agent's new conversations to its own upstream again",
		Long: `Send an agent's new conversations to its own upstream again, where they would
go without agentop. Running conversations stay where they are.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	agentFlag(c, a, &o.Agent)
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *serverResetOptions) run(ctx context.Context) error {
	if err := needAgent(o.Agent); err != nil {
		return err
	}
	view, err := o.listed(ctx)
	if err != nil {
		return err
	}
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	var change control.Switch
	if view.running() {
		change, err = client.Reset(ctx, o.Agent)
	} else {
		change = control.Switch{Agent: o.Agent, Before: serverOfAgent(&view.Status, o.Agent)}
		err = editConfig(dir, func(data []byte) ([]byte, error) { return config.ResetServer(data, o.Agent) })
	}
	if err != nil {
		return err
	}
	return o.tellSwitch(view, change, o.JSON)
}
