package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentop/agents/setup"
	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
)

// agentEnableOptions is `agentop agent enable`.
type agentEnableOptions struct {
	*App
	Agent      string
	DryRun     bool
	Yes        bool
	ToolSearch bool
	Haiku      string
	Providers  []string

	toolSearchSet bool
}

func newAgentEnable(a *App, run func(*agentEnableOptions, context.Context) error) *cobra.Command {
	o := &agentEnableOptions{App: a}
	c := &cobra.Command{
		Use:   "enable AGENT",
		Short: "Point an agent at agentop, in its own settings file",
		Long: `Point an agent at agentop, in its own settings file. Only the keys that are
needed are changed, and what they held is recorded: agentop agent disable puts
it back. An address that the agent used before becomes its own upstream. Its
credential stays where it is.`,
		Args:              exactArgs("AGENT"),
		ValidArgsFunction: completeSetup(a),
	}
	f := c.Flags()
	f.BoolVar(&o.DryRun, "dry-run", false, "show the change and make none")
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	f.BoolVar(&o.ToolSearch, "tool-search", false, "Claude Code: keep tool search on (by default, where its conversations go to Anthropic)")
	f.StringVar(&o.Haiku, "haiku", "", "Claude Code: use this model for titles and the like")
	f.StringSliceVar(&o.Providers, "provider", nil, "OpenCode: move this provider too, though no file names it")
	c.RunE = runner(o, run, func(o *agentEnableOptions, args []string) {
		o.Agent, o.toolSearchSet = args[0], f.Changed("tool-search")
	})
	return c
}

// completeSetup completes the first argument with the agents whose settings
// agentop can edit.
func completeSetup(*App) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return setup.Agents, cobra.ShellCompDirectiveNoFileComp
	}
}

func (o *agentEnableOptions) run(ctx context.Context) error {
	if err := config.CheckAgent(o.Agent); err != nil {
		return usageError{err}
	}
	dir, err := o.home()
	if err != nil {
		return err
	}
	s, err := o.agentSetup(dir)
	if err != nil {
		return err
	}
	p, err := s.Plan(o.Agent, o.choices(dir))
	if errors.Is(err, setup.ErrUnknownAgent) {
		if err := o.byHand(s, o.Agent); err != nil {
			return err
		}
		return hint(err, "set the line above that fits, in the agent's own settings")
	}
	if err != nil {
		return wrapSetup(o.Agent, err)
	}
	if err := o.checkUpstreams(ctx, p, o.Yes || o.DryRun); err != nil {
		return err
	}
	if o.DryRun {
		return o.tellPlan(p)
	}
	if !p.Changes() {
		o.tellWarnings(p)
		return o.say("%s is enabled already in %s", o.Agent, plain.Text(p.File))
	}
	if err := o.needProxy(ctx); err != nil {
		return err
	}
	return o.apply(dir, s, p)
}

// choices is what the command line and config.yaml say about the edit.
func (o *agentEnableOptions) choices(dir home.Home) setup.Choices {
	c := setup.Choices{Haiku: o.Haiku, Providers: o.Providers}
	if o.toolSearchSet {
		c.ToolSearch = &o.ToolSearch
	}
	if cfg, err := readConfig(dir); err == nil {
		c.Routed = cfg.Agents[o.Agent].Server != ""
		c.NoUpstream = cfg.Agents[o.Agent].UpstreamNone
	}
	return c
}

// needProxy asks before an agent is pointed at an address where nobody
// answers.
func (o *agentEnableOptions) needProxy(ctx context.Context) error {
	view, err := o.overview(ctx)
	if err != nil || view.running() {
		return nil // a proxy that answers badly is there all the same
	}
	return o.confirm(ctx, o.Yes, []string{
		"no agentop proxy is running: until one is (`agentop service install`, or `agentop proxy`), " + o.Agent + " gets no answers",
	}, "Enable it all the same?")
}

// apply adopts and edits, and says what was done and how it is undone.
func (o *agentEnableOptions) apply(dir home.Home, s *setup.Setup, p *setup.Plan) error {
	if err := dir.Create(); err != nil {
		return err
	}
	if err := o.adopt(dir, p); err != nil {
		return err
	}
	done, err := s.Enable(p)
	if err != nil {
		return wrapSetup(o.Agent, err)
	}
	o.tellWarnings(done)
	if err := o.say("enabled %s in %s: %s", o.Agent, plain.Text(pathOf(done)), plain.Text(strings.Join(done.Moved, ", "))); err != nil {
		return err
	}
	if err := o.tellRest(done); err != nil {
		return err
	}
	if err := o.say("%s", sessionsAfterEnable[o.Agent]); err != nil {
		return err
	}
	return o.say("undo: agentop agent disable %s", o.Agent)
}

// sessionsAfterEnable says when running sessions take the change.
var sessionsAfterEnable = map[string]string{
	"claude-code": "running sessions take it within a few seconds",
	"codex":       "open threads take it at /new or when resumed",
	"opencode":    "restart OpenCode: it reads its settings once",
}

// pathOf is a settings file, with what its symbolic links lead to.
func pathOf(p *setup.Plan) string {
	if p.Target == p.File {
		return p.File
	}
	return p.File + " (" + p.Target + ")"
}

// tellPlan shows what would change.
func (o *agentEnableOptions) tellPlan(p *setup.Plan) error {
	o.tellWarnings(p)
	if !p.Changes() {
		return o.say("%s is enabled already in %s", o.Agent, plain.Text(p.File))
	}
	if err := o.write(plain.Lines(p.Diff())); err != nil {
		return err
	}
	return o.tellRest(p)
}

func (o *agentEnableOptions) tellWarnings(p *setup.Plan) {
	for _, w := range p.Warnings {
		o.warn(w)
	}
}

// tellRest says what the edit entails.
func (o *agentEnableOptions) tellRest(p *setup.Plan) error {
	var lines []string
	for _, u := range p.Upstreams {
		name := "own upstream"
		if u.Provider != "" {
			name += " of " + u.Provider
		}
		lines = append(lines, fmt.Sprintf("%s: %s (was in %s; goes into config.yaml)", name, u.Address, u.From))
	}
	for _, l := range p.Left {
		lines = append(lines, "left as it is: "+l)
	}
	for _, n := range p.Notes {
		lines = append(lines, "note: "+n)
	}
	for _, l := range lines {
		if err := o.say("%s", plain.Text(l)); err != nil {
			return err
		}
	}
	return nil
}
