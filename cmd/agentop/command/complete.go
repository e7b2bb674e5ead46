package command

import (
	"github.com/spf13/cobra"
)

// completeServers completes the first argument with the servers' names.
func completeServers(a *App) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.serverNames(c), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *App) serverNames(c *cobra.Command) []string {
	view, err := a.overview(c.Context())
	if err != nil {
		return nil // a shell has no place for the reason
	}
	var names []string
	for _, s := range view.Status.Servers {
		names = append(names, s.Name)
	}
	return names
}

// completeAgents completes with the agents' names.
func completeAgents(a *App) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		names := knownAgents
		if view, err := a.overview(c.Context()); err == nil && len(view.Status.Agents) > 0 {
			names = nil
			for _, agent := range view.Status.Agents {
				names = append(names, agent.Agent)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSessions completes the first argument with session ids and, where
// the command takes one, the second with servers' names.
func completeSessions(a *App, withServer bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return a.sessionIDs(c), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && withServer:
			return append(a.serverNames(c), "own"), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *App) sessionIDs(c *cobra.Command) []string {
	client, _, err := a.dial()
	if err != nil {
		return nil
	}
	defer client.Close()
	sessions, err := client.Sessions(c.Context())
	if err != nil {
		return nil
	}
	var ids []string
	for _, s := range sessions {
		if s.Running {
			ids = append(ids, shownID(s.ID))
		}
	}
	return ids
}
