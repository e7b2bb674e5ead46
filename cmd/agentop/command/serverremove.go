package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
)

// serverRemoveOptions is `agentop server remove`.
type serverRemoveOptions struct {
	*App
	Name string
	Yes  bool
	JSON bool
}

func newServerRemove(a *App, run func(*serverRemoveOptions, context.Context) error) *cobra.Command {
	o := &serverRemoveOptions{App: a}
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server and its stored key",
		Long: `Remove a server and its stored key. Its running conversations are not moved:
they are refused until a server of this name is added again. How many that
concerns is said first.`,
		Args: exactArgs("NAME"),
		RunE: runner(o, run, func(o *serverRemoveOptions, args []string) { o.Name = args[0] }),

		ValidArgsFunction: completeServers(a),
	}
	c.Flags().BoolVar(&o.Yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *serverRemoveOptions) run(ctx context.Context) error {
	view, err := o.listed(ctx)
	if err != nil {
		return err
	}
	server := findServer(&view.Status, o.Name)
	if server == nil {
		return unknownServer(&view.Status, o.Name)
	}
	users := agentsOf(&view.Status, o.Name)
	if err := o.confirm(ctx, o.Yes, o.stake(view, server, users), "Remove "+o.Name+"?"); err != nil {
		return err
	}
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	change := control.ServerChange{Name: o.Name, Changed: true, Agents: users}
	if view.running() {
		change, err = client.RemoveServer(ctx, o.Name)
	} else {
		err = removeOffline(ctx, dir, o.Name)
	}
	if err != nil {
		return err
	}
	for _, w := range change.Warnings {
		o.warn(w)
	}
	if o.JSON {
		return o.json(change)
	}
	return o.say("removed %s", plain.Text(o.Name))
}

// stake says what removing the server means.
func (o *serverRemoveOptions) stake(view *overview, s *control.Server, users []string) []string {
	lines := []string{fmt.Sprintf("%s: %s", o.Name, concerns(view, s))}
	if !view.running() || s.Running > 0 {
		lines = append(lines, "what runs there is refused until a server of that name is added again")
	}
	if len(users) > 0 {
		lines = append(lines, fmt.Sprintf("new conversations of %s go to the agent's own upstream", strings.Join(users, " and ")))
	}
	return lines
}

// agentsOf lists the agents whose new conversations go to a server.
func agentsOf(s *control.Status, server string) []string {
	var names []string
	for _, a := range s.Agents {
		if a.Server == server {
			names = append(names, a.Agent)
		}
	}
	return names
}

// removeOffline edits config.yaml and keys.json when no proxy runs. The key
// goes last: without its server it does nothing.
func removeOffline(ctx context.Context, dir home.Home, name string) error {
	c, err := readConfig(dir)
	if err != nil {
		return err
	}
	server, found := c.Server(name)
	if !found {
		return fmt.Errorf("server %q: %w", name, config.ErrNoServer)
	}
	if err := editConfig(dir, func(data []byte) ([]byte, error) { return config.RemoveServer(data, name) }); err != nil {
		return err
	}
	return credential.NewResolver(dir.Keys()).Drop(ctx, server.Name, server.Key.Kind)
}
