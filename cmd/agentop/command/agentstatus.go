package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"agentop/agents/setup"
	"agentop/cmd/agentop/command/plain"
	"agentop/router/control"
)

// agentStatusOptions is `agentop agent status`.
type agentStatusOptions struct {
	*App
	Agent string
	JSON  bool
	Probe bool
}

func newAgentStatus(a *App, run func(*agentStatusOptions, context.Context) error) *cobra.Command {
	o := &agentStatusOptions{App: a}
	c := &cobra.Command{
		Use:   "status [AGENT]",
		Short: "Show what each agent's settings say, and when it was last seen",
		Long: `Show what each agent's settings say, who overrides them, and when the agent's
own requests last arrived. --probe runs the agent's program once, with one short
prompt that its server answers and may charge for.`,
		Args: atMostOne,
		RunE: runner(o, run, func(o *agentStatusOptions, args []string) {
			if len(args) > 0 {
				o.Agent = args[0]
			}
		}),

		ValidArgsFunction: completeSetup(a),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	c.Flags().BoolVar(&o.Probe, "probe", false, "run each agent's program once, with one short prompt")
	return c
}

func atMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageHint(c, "%s takes one agent, got also %q", c.CommandPath(), args[1])
	}
	return nil
}

// agentReport is one agent as `agent status --json` prints it.
type agentReport struct {
	setup.Status
	Installed string    `json:"installed"` // path of its program; "" = not on PATH
	Version   string    `json:"version"`   // as its program says
	Server    string    `json:"server"`    // "" = own upstream
	Upstream  string    `json:"upstream"`
	LastSeen  time.Time `json:"last_seen,omitzero"`
	SeenAs    string    `json:"seen_as,omitempty"` // version in its last request
	Seen      bool      `json:"seen"`              // a request has arrived since it was enabled
	Older     int       `json:"older"`             // running processes that began before it was enabled
	Probe     string    `json:"probe,omitempty"`   // what a probe found
}

func (o *agentStatusOptions) run(ctx context.Context) error {
	names := setup.Agents
	if o.Agent != "" {
		names = []string{o.Agent}
	}
	reports, err := o.reports(ctx, names)
	if err != nil {
		return err
	}
	if o.Probe {
		if err := o.probe(ctx, reports); err != nil {
			return err
		}
	}
	if o.JSON {
		return o.json(reports)
	}
	return o.tell(reports)
}

// reports asks files, programs and the proxy.
func (a *App) reports(ctx context.Context, names []string) ([]agentReport, error) {
	view, err := a.overview(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := a.home()
	if err != nil {
		return nil, err
	}
	s, bad := a.agentSetup(dir)
	if bad != nil {
		a.warn(bad.Error())
	}
	reports := make([]agentReport, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		reports[i] = agentReport{Status: s.Status(name), Installed: a.programOf(name)}
		r := &reports[i]
		r.Keys, r.Over, r.Notes, r.Trouble = list(r.Keys), list(r.Over), list(r.Notes), list(r.Trouble)
		r.take(&view.Status)
		if r.Installed != "" {
			all.Go(func() { r.Version = a.versionOf(ctx, r.Installed) })
		}
	}
	all.Wait()
	for i := range reports {
		r := &reports[i]
		if r.Agent == "claude-code" {
			r.Notes = append(r.Notes, s.Losses(r.Version)...)
		}
		if r.State == setup.StateOff {
			continue
		}
		r.Older = a.olderThan(r.Agent, r.Enabled)
		if text := a.stillElsewhere(r.Agent, r.Enabled); text != "" {
			r.Notes = append(r.Notes, text)
		}
	}
	return reports, nil
}

// take adds what the proxy knows of the agent.
func (r *agentReport) take(s *control.Status) {
	for _, known := range s.Agents {
		if known.Agent == r.Agent {
			r.Server, r.Upstream, r.LastSeen, r.SeenAs = known.Server, known.Upstream, known.LastSeen, known.Version
		}
	}
	r.Seen = !r.LastSeen.IsZero() && !r.LastSeen.Before(r.Enabled)
}

// arrived says in words whether the agent's own requests arrive.
func (a *App) arrived(r *agentReport) string {
	switch {
	case r.State == setup.StateOn && !r.Seen, r.State == setup.StatePartly && !r.Seen:
		return "not seen yet"
	case r.LastSeen.IsZero():
		return ""
	}
	return a.since(r.LastSeen) + " ago"
}

func (o *agentStatusOptions) tell(reports []agentReport) error {
	t := &table{kind: "agent", header: []string{"AGENT", "SETTINGS", "SEEN", "VERSION", "INSTALLED", "FILE"}}
	for i := range reports {
		r := &reports[i]
		installed := r.Version
		if r.Installed == "" {
			installed = "no"
		}
		t.add(r.Agent, string(r.State), o.arrived(r), r.SeenAs, installed, r.File)
	}
	if err := t.print(o.App); err != nil {
		return err
	}
	for i := range reports {
		if err := o.tellOne(&reports[i]); err != nil {
			return err
		}
	}
	return nil
}

// tellOne prints what there is to know of one agent beyond its row.
func (o *agentStatusOptions) tellOne(r *agentReport) error {
	var lines []string
	add := func(kind, format string, args ...any) {
		lines = append(lines, r.Agent+": "+kind+": "+fmt.Sprintf(format, args...))
	}
	for _, k := range r.Keys {
		add("set", "%s = %s", k.Path, k.Value)
	}
	if r.Upstream != "" && r.State != setup.StateUnknown {
		add("own upstream", "%s", r.Upstream)
	}
	for _, over := range r.Over {
		add("stronger", "%s", over.String())
	}
	for _, t := range r.Trouble {
		add("trouble", "%s; fix: %s", t.Text, t.Fix)
	}
	if r.State != setup.StateOff {
		for _, n := range r.Notes {
			add("note", "%s", n)
		}
	}
	if r.Probe != "" {
		add("probe", "%s", r.Probe)
	}
	for _, l := range lines {
		if err := o.say("%s", plain.Text(l)); err != nil {
			return err
		}
	}
	if r.State != setup.StateUnknown {
		return nil
	}
	dir, err := o.home()
	if err != nil {
		return err
	}
	s, _ := o.agentSetup(dir) // told above
	return o.byHand(s, r.Agent)
}

const (
	probeLimit  = 2 * time.Minute
	probePrompt = "Answer with the one word OK and use no tool."
)

// probeArgs run an agent once, with one turn and without a terminal.
var probeArgs = map[string][]string{
	"claude-code": {"-p", probePrompt},
	"codex":       {"exec", "--skip-git-repo-check", probePrompt},
	"opencode":    {"run", probePrompt},
}

// probe runs each enabled agent once and looks whether that arrived.
func (o *agentStatusOptions) probe(ctx context.Context, reports []agentReport) error {
	client, _, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	for i := range reports {
		r := &reports[i]
		switch {
		case r.Installed == "":
			r.Probe = "not installed"
			continue
		case r.State != setup.StateOn && r.State != setup.StatePartly:
			r.Probe = "not enabled, so not run"
			continue
		}
		begun := time.Now()
		runErr := runProbe(ctx, r.Installed, probeArgs[r.Agent])
		status, err := client.Status(ctx)
		if err != nil {
			return err
		}
		r.take(&status)
		switch arrived := !r.LastSeen.Before(begun.Truncate(time.Second)); {
		case arrived && runErr == nil:
			r.Probe = fmt.Sprintf("its request arrived and was answered within %s", time.Since(begun).Round(time.Second))
		case arrived:
			r.Probe = fmt.Sprintf("its request arrived, but it ended with %v: `agentop logs` says why", runErr)
		default:
			r.Probe = fmt.Sprintf("no request arrived (it ended with %v)", errText(runErr))
		}
	}
	return nil
}

func errText(err error) string {
	if err == nil {
		return "success"
	}
	return err.Error()
}

// runProbe runs a program in an empty folder, so that no project's settings
// decide.
func runProbe(ctx context.Context, program string, args []string) error {
	dir, err := os.MkdirTemp("", "agentop-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	return cmd.Run()
}
