package command

import (
	"context"

	"github.com/spf13/cobra"

	"agentop/router/control"
)

// newAgent is `agentop agent`, by itself the list.
func newAgent(a *App) *cobra.Command {
	o := &agentListOptions{App: a}
	c := &cobra.Command{
		Use:   "agent",
		Short: "Show where each coding agent's new conversations go; enable and disable agents",
		Args:  noArgs,
		RunE:  runner(o, (*agentListOptions).run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	c.AddCommand(
		newAgentList(a, (*agentListOptions).run),
		newAgentEnable(a, (*agentEnableOptions).run),
		newAgentDisable(a, (*agentDisableOptions).run),
		newAgentStatus(a, (*agentStatusOptions).run),
	)
	return c
}

// agentListOptions is `agentop agent list`.
type agentListOptions struct {
	*App
	JSON bool
}

func newAgentList(a *App, run func(*agentListOptions, context.Context) error) *cobra.Command {
	o := &agentListOptions{App: a}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the agents, their server and their own upstream",
		Args:  noArgs,
		RunE:  runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *agentListOptions) run(ctx context.Context) error {
	view, err := o.listed(ctx)
	if err != nil {
		return err
	}
	if o.JSON {
		return o.json(list(view.Status.Agents))
	}
	return agentTable(view.Status.Agents).print(o.App)
}

// listed is the overview for a list: where no proxy runs and the configuration
// is not valid there is nothing to list.
func (a *App) listed(ctx context.Context) (*overview, error) {
	view, err := a.overview(ctx)
	if err != nil || view.running() || view.Status.ConfigError == "" {
		return view, err
	}
	dir, err := a.home()
	if err != nil {
		return nil, err
	}
	_, err = readConfig(dir)
	return view, err
}

// agentTable lists agents. An agent that is not routed has "own" as its
// server.
func agentTable(agents []control.AgentStatus) *table {
	t := &table{kind: "agent", header: []string{"AGENT", "SERVER", "RUNNING", "VERSION", "OWN UPSTREAM"}}
	for _, a := range agents {
		server := a.Server
		if server == "" {
			server = "own"
		}
		t.add(a.Agent, server, number(a.Running), a.Version, a.Upstream)
	}
	return t
}
