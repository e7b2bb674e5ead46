package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentop/router/control"
)

// newServer is `agentop server`, by itself the list.
func newServer(a *App) *cobra.Command {
	o := &serverListOptions{App: a}
	c := &cobra.Command{
		Use:   "server",
		Short: "List, add, choose, test and remove inference servers",
		Args:  noArgs,
		RunE:  runner(o, (*serverListOptions).run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	c.AddCommand(
		newServerList(a, (*serverListOptions).run),
		newServerAdd(a, (*serverAddOptions).run),
		newServerRemove(a, (*serverRemoveOptions).run),
		newServerUse(a, (*serverUseOptions).run),
		newServerReset(a, (*serverResetOptions).run),
		newServerTest(a, (*serverTestOptions).run),
		newServerImport(a, (*serverImportOptions).run),
	)
	return c
}

// serverListOptions is `agentop server list`.
type serverListOptions struct {
	*App
	JSON bool
}

func newServerList(a *App, run func(*serverListOptions, context.Context) error) *cobra.Command {
	o := &serverListOptions{App: a}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the servers with their health and what runs on them",
		Args:  noArgs,
		RunE:  runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *serverListOptions) run(ctx context.Context) error {
	view, err := o.listed(ctx)
	if err != nil {
		return err
	}
	if o.JSON {
		return o.json(list(view.Status.Servers))
	}
	if len(view.Status.Servers) == 0 && o.OutTerminal {
		return o.say("no servers; add one with: agentop server add NAME URL")
	}
	if err := serverTable(view.Status.Servers).print(o.App); err != nil {
		return err
	}
	for _, s := range view.Status.Servers {
		for _, w := range s.Warnings {
			o.warn(w)
		}
	}
	return nil
}

// serverTable lists servers, a pool's members under it as pool/member.
func serverTable(servers []control.Server) *table {
	t := &table{kind: "server", header: []string{"SERVER", "HEALTH", "RUNNING", "STREAMS", "FIRST TOKEN", "KEY", "URL"}}
	for _, s := range servers {
		url := s.URL
		if len(s.Members) > 0 {
			url = fmt.Sprintf("pool of %d", len(s.Members))
		}
		t.add(s.Name, health(s.Health), number(s.Running), number(s.Streams), millis(s.FirstMS), s.Key, url)
		for _, m := range s.Members {
			streams := number(m.Streams)
			if m.Capacity > 0 {
				streams += "/" + number(m.Capacity)
			}
			t.add(s.Name+"/"+m.Name, health(m.Health), "", streams, "", "", m.URL)
		}
	}
	return t
}

func health(h control.Health) string {
	if h.Error == "" {
		return h.State
	}
	return h.State + " (" + h.Error + ")"
}

func number(n int) string { return strconv.Itoa(n) }

// findServer is the server of that name in an overview.
func findServer(s *control.Status, name string) *control.Server {
	for i := range s.Servers {
		if s.Servers[i].Name == name {
			return &s.Servers[i]
		}
	}
	return nil
}

// unknownServer refuses a name that is not configured.
func unknownServer(s *control.Status, name string) error {
	names := make([]string, len(s.Servers))
	for i, server := range s.Servers {
		names[i] = server.Name
	}
	err := fmt.Errorf("there is no server %q", name)
	if len(names) == 0 {
		return hint(err, "add one with `agentop server add NAME URL`")
	}
	return hint(err, "the servers are "+strings.Join(names, ", "))
}
