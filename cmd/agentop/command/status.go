package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/router/control"
)

// statusOptions is `agentop status`.
type statusOptions struct {
	*App
	JSON bool
}

func newStatus(a *App, run func(*statusOptions, context.Context) error) *cobra.Command {
	o := &statusOptions{App: a}
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the proxy, its agents and servers, and what is wrong",
		Long: `Show the proxy, its agents and servers, and what is wrong.

The first line says whether the proxy is running. Without one the agents and
servers of config.yaml are shown, and the exit code is 0 all the same: scripts
read "proxy" of --json, or the first line.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *statusOptions) run(ctx context.Context) error {
	view, err := o.overview(ctx)
	if err != nil {
		return err
	}
	s := &view.Status
	if o.JSON {
		s.Agents, s.Servers = list(s.Agents), list(s.Servers)
		return o.json(view)
	}
	lines := append([]string{o.headline(view)}, troubles(view)...)
	if err := o.say("%s", strings.Join(lines, "\n")); err != nil {
		return err
	}
	if err := o.section(agentTable(s.Agents)); err != nil {
		return err
	}
	return o.section(serverTable(s.Servers))
}

// section prints a list under an empty line, in a pipe without one.
func (o *statusOptions) section(t *table) error {
	if len(t.rows) == 0 {
		return nil
	}
	if o.OutTerminal {
		if err := o.say(""); err != nil {
			return err
		}
	} else {
		for i, row := range t.rows {
			t.rows[i] = append([]string{t.kind}, row...) // tells agents from servers
		}
	}
	return t.print(o.App)
}

// headline says in one line whether the proxy runs, where, and how busy it is.
func (o *statusOptions) headline(view *overview) string {
	s := &view.Status
	if view.Down != nil {
		return fmt.Sprintf("agentop cannot serve now (process %d)", view.Down.PID)
	}
	if !view.running() {
		return fmt.Sprintf("agentop is not running (nobody answers on %s)", plain.Text(s.Home+"/"+control.SocketName))
	}
	return fmt.Sprintf("agentop %s is running on %s: %s, %s in flight (process %d, up %s)",
		plain.Text(s.Version), plain.Text(strings.Join(s.Listen, " and ")),
		plural(s.Running, "running conversation"), plural(s.Streams, "request"), s.PID, o.since(s.Started))
}

// troubles lists what is wrong, worst first, each with its kind in front.
func troubles(view *overview) []string {
	var lines []string
	add := func(kind, text string) {
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, kind+": "+plain.Text(line))
		}
	}
	s := &view.Status
	if view.Down != nil {
		add("error", cmp.Or(view.Down.Error, "its worker is not ready yet"))
		if view.Down.Hint != "" {
			add("error", view.Down.Hint)
		}
	}
	if s.ConfigError != "" {
		add("config error", s.ConfigError)
		if view.running() {
			add("config error", "the last good configuration stays in force until this is corrected")
		}
	}
	if s.Store.ReadOnly != "" {
		add("store error", "pins are not saved: "+s.Store.ReadOnly)
	}
	if s.Store.Error != "" {
		add("store error", fmt.Sprintf("pins are in memory only, %s not saved: %s", plural(s.Store.Unsaved, "write"), s.Store.Error))
	}
	if s.Log.Error != "" {
		add("log error", s.Log.Error)
	}
	if view.running() && s.Version != view.Binary {
		add("warning", fmt.Sprintf("the running proxy is %s, this command is %s: `agentop service restart` hands over", s.Version, view.Binary))
	}
	for _, w := range s.Warnings {
		add("warning", w)
	}
	for i := range s.Servers {
		for _, w := range s.Servers[i].Warnings {
			add("warning", w)
		}
	}
	for _, d := range s.Draining {
		add("draining", fmt.Sprintf("the process before this one (%d, version %s) finishes %s", d.PID, d.Version, plural(d.Streams, "request")))
	}
	return lines
}
