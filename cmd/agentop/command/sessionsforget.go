package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
)

// sessionsForgetOptions is `agentop sessions forget`.
type sessionsForgetOptions struct {
	*App
	ID    string
	Agent string
	Yes   bool
}

func newSessionsForget(a *App, run func(*sessionsForgetOptions, context.Context) error) *cobra.Command {
	o := &sessionsForgetOptions{App: a}
	c := &cobra.Command{
		Use:   "forget ID",
		Short: "Drop a conversation's pin and history",
		Long: `Drop a conversation's pin and history. If it goes on, it is placed as one that
agentop never saw.`,
		Args: exactArgs("ID"),
		RunE: runner(o, run, func(o *sessionsForgetOptions, args []string) { o.ID = args[0] }),

		ValidArgsFunction: completeSessions(a, false),
	}
	c.Flags().StringVar(&o.Agent, "agent", "", "the agent, where two have such an id")
	c.Flags().BoolVar(&o.Yes, "yes", false, "do not ask")
	return c
}

func (o *sessionsForgetOptions) run(ctx context.Context) error {
	client, _, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := o.session(ctx, client, o.Agent, o.ID)
	if err != nil {
		return err
	}
	name := plain.Text(s.Agent) + " " + shownID(s.ID)
	stake := fmt.Sprintf("%s is on %s (%s); if it goes on, it may land elsewhere", name, s.Server, o.state(&s))
	if err := o.confirm(ctx, o.Yes, []string{stake}, "Forget it?"); err != nil {
		return err
	}
	if err := client.Forget(ctx, s.Agent, s.ID); err != nil {
		return err
	}
	return o.say("forgot %s", name)
}
