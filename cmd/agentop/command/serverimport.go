package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/importer"
	"agentop/router/control"
)

// serverImportOptions is `agentop server import`.
type serverImportOptions struct {
	*App
	From string
	File string
	Yes  bool
	JSON bool
}

func newServerImport(a *App, run func(*serverImportOptions, context.Context) error) *cobra.Command {
	o := &serverImportOptions{App: a}
	c := &cobra.Command{
		Use:   "import --from TOOL",
		Short: "Add the servers of a tool that you come from",
		Long: `Add the servers that cc-switch or claude-code-router (ccr) has. Their files are
read only. What would be added is shown first, without the keys, and added if
you say so: keys go to keys.json. No agent is switched.`,
		Example: `  agentop server import --from cc-switch
  agentop server import --from ccr --file ~/old/config.json`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	f := c.Flags()
	f.StringVar(&o.From, "from", "", "the tool: "+strings.Join(importer.Tools, " or "))
	f.StringVar(&o.File, "file", "", "its file, where that is not at its usual place")
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	_ = c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(importer.Tools, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return c
}

// imported is one server as --json shows it.
type imported struct {
	Name   string           `json:"name"`
	From   string           `json:"from"`
	URL    string           `json:"url"`
	Key    string           `json:"key"`
	Rename []control.Rename `json:"rename,omitempty"`
}

func (o *serverImportOptions) run(ctx context.Context) error {
	if !slices.Contains(importer.Tools, o.From) {
		return hint(usagef("--from must name a tool"), "--from "+strings.Join(importer.Tools, ", or --from "))
	}
	view, err := o.listed(ctx)
	if err != nil {
		return err
	}
	home := o.Getenv("HOME")
	if home == "" {
		if home, err = os.UserHomeDir(); err != nil {
			return fmt.Errorf("find the home directory: %w", err)
		}
	}
	found, err := importer.Read(o.From, home, o.File, configuredNames(&view.Status))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.File == "":
		return hint(err, "if "+o.From+" keeps its file elsewhere, name it: --file FILE")
	case err != nil:
		return err
	}
	if rest, below := strings.CutPrefix(found.File, strings.TrimRight(home, "/")+"/"); below {
		found.File = "~/" + rest
	}
	fresh := o.fresh(&view.Status, found)
	if len(fresh) == 0 {
		return o.nothing(found)
	}
	question := fmt.Sprintf("Add %s?", plural(len(fresh), "server"))
	if err := o.confirm(ctx, o.Yes, o.stake(found, fresh), question); err != nil {
		return err
	}
	return o.add(ctx, view, fresh)
}

func configuredNames(s *control.Status) []string {
	names := make([]string, len(s.Servers))
	for i, server := range s.Servers {
		names[i] = server.Name
	}
	return names
}

// fresh leaves out servers whose address is configured already.
func (o *serverImportOptions) fresh(s *control.Status, f importer.Found) []importer.Server {
	var list []importer.Server
	for _, server := range f.Servers {
		i := slices.IndexFunc(s.Servers, func(there control.Server) bool { return there.URL == server.URL })
		if i >= 0 {
			o.warn(fmt.Sprintf("%s is left out: its address is that of %s", server.From, s.Servers[i].Name))
			continue
		}
		list = append(list, server)
	}
	return list
}

func (o *serverImportOptions) nothing(f importer.Found) error {
	for _, s := range f.Skipped {
		o.warn(fmt.Sprintf("%s is left out: %s", s.Name, s.Why))
	}
	if o.JSON {
		return o.json([]imported{})
	}
	return o.say("%s has no server that could be added", plain.Text(f.File))
}

// stake shows what would be added, and what not. A key is named by its place.
func (o *serverImportOptions) stake(f importer.Found, list []importer.Server) []string {
	lines := []string{fmt.Sprintf("from %s:", f.File)}
	for _, s := range list {
		line := fmt.Sprintf("  %s (%s): %s, key %s", s.Name, s.From, s.URL, s.Key)
		if s.StripV1 {
			line += ", v1: strip"
		}
		if len(s.Rename) > 0 {
			line += ", rename " + renameText(specOf(s).Rename)
		}
		lines = append(lines, line)
		for _, note := range s.Notes {
			lines = append(lines, "    "+note)
		}
	}
	for _, s := range f.Skipped {
		lines = append(lines, fmt.Sprintf("  left out: %s: %s", s.Name, s.Why))
	}
	return lines
}

func specOf(s importer.Server) control.ServerSpec {
	spec := control.ServerSpec{Name: s.Name, URL: s.URL, Key: s.Key.String(), StripV1: s.StripV1, Secret: s.Secret.Reveal()}
	for _, r := range s.Rename {
		spec.Rename = append(spec.Rename, control.Rename{Glob: r.Glob, Name: r.Name})
	}
	return spec
}

func (o *serverImportOptions) add(ctx context.Context, view *overview, list []importer.Server) error {
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	var done []imported
	for _, s := range list {
		spec := specOf(s)
		if view.running() {
			_, err = client.AddServer(ctx, spec)
		} else {
			_, err = addOffline(ctx, dir, spec, false)
		}
		if err != nil {
			return fmt.Errorf("add %s: %w", s.Name, err)
		}
		done = append(done, imported{s.Name, s.From, s.URL, s.Key.String(), spec.Rename})
		if !o.JSON {
			if err := o.say("added %s", plain.Text(s.Name)); err != nil {
				return err
			}
		}
	}
	if o.JSON {
		return o.json(done)
	}
	if !o.OutTerminal {
		return nil
	}
	return o.say("ask one what it can do: agentop server test %s", plain.Text(list[0].Name))
}
