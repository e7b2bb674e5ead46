package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
	"agentop/router/control"
)

// preflightWait bounds how long a switch waits for what the server answers.
const preflightWait = 1500 * time.Millisecond

// The sentences that a switch is told with. The exceptions to "stay" are said
// whenever they hold.
const (
	notCounted      = "how many running ones stay is not known, because no agentop proxy is running"
	memoryOnly      = "pins are in memory only, so running conversations stay only until the proxy ends: %s"
	noOwnUpstream   = "%s has no own upstream (upstream: none): a conversation that began before agentop saw it goes to %s too"
	noOwnAfterReset = "%s has no own upstream (upstream: none): new conversations are refused until a server is chosen"
)

// serverUseOptions is `agentop server use`.
type serverUseOptions struct {
	*App
	Server string
	Agent  string
	JSON   bool
}

func newServerUse(a *App, run func(*serverUseOptions, context.Context) error) *cobra.Command {
	o := &serverUseOptions{App: a}
	c := &cobra.Command{
		Use:   "use NAME --agent AGENT",
		Short: "Send an agent's new conversations to a server",
		Long: `Send an agent's new conversations to a server. Running conversations stay
where they are. The server is asked first what it can do for the agent; what it
lacks is a warning and does not stop the switch.`,
		Args: exactArgs("NAME"),
		RunE: runner(o, run, func(o *serverUseOptions, args []string) { o.Server = args[0] }),

		ValidArgsFunction: completeServers(a),
	}
	agentFlag(c, a, &o.Agent)
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

// agentFlag adds the flag that names the agent, which must be given.
func agentFlag(c *cobra.Command, a *App, agent *string) {
	c.Flags().StringVar(agent, "agent", "", "the agent: "+strings.Join(knownAgents, ", ")+" or another")
	_ = c.RegisterFlagCompletionFunc("agent", completeAgents(a)) // fails only for a flag that is not there
}

// needAgent refuses a command line without a usable --agent.
func needAgent(agent string) error {
	if agent == "" {
		return hint(usagef("--agent is missing"), "name one: --agent "+strings.Join(knownAgents, ", --agent "))
	}
	if err := config.CheckAgent(agent); err != nil {
		return usageError{err}
	}
	return nil
}

func (o *serverUseOptions) run(ctx context.Context) error {
	if err := needAgent(o.Agent); err != nil {
		return err
	}
	view, err := o.listed(ctx)
	if err != nil {
		return err
	}
	if o.Server == "own" {
		return hint(usagef("own is no server"), "`agentop server reset --agent "+o.Agent+"` sends new conversations to the agent's own upstream")
	}
	if findServer(&view.Status, o.Server) == nil {
		return unknownServer(&view.Status, o.Server)
	}
	if !hasAgent(&view.Status, o.Agent) {
		o.warn(fmt.Sprintf("agentop does not know %s: it is an agent only if its base URL ends in /%s", o.Agent, o.Agent))
	}
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	var change control.Switch
	o.preflight(ctx, view.running(), client, dir)
	if view.running() {
		change, err = client.Use(ctx, o.Agent, o.Server)
	} else {
		change = control.Switch{Agent: o.Agent, Server: o.Server, Before: serverOfAgent(&view.Status, o.Agent)}
		err = editConfig(dir, func(data []byte) ([]byte, error) { return config.UseServer(data, o.Agent, o.Server) })
	}
	if err != nil {
		return err
	}
	return o.tellSwitch(view, change, o.JSON)
}

// preflight tells what the server lacks, before the switch.
func (o *serverUseOptions) preflight(ctx context.Context, running bool, client *control.Client, dir home.Home) {
	if !running && o.Examine == nil {
		return
	}
	short, cancel := context.WithTimeout(ctx, preflightWait)
	defer cancel()
	var found control.Preflight
	var err error
	if running {
		found, err = client.Preflight(short, o.Server, []string{o.Agent})
	} else {
		found, err = o.examineOffline(short, dir, o.Server, Questions{Agents: []string{o.Agent}})
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		o.warn(fmt.Sprintf("%s has not answered within %s", o.Server, preflightWait))
	case err != nil:
		o.warn(fmt.Sprintf("%s could not be asked: %v", o.Server, err))
	default:
		for _, w := range preflightWarnings(found) {
			o.warn(w)
		}
	}
}

func serverOfAgent(s *control.Status, agent string) string {
	for _, a := range s.Agents {
		if a.Agent == agent {
			return a.Server
		}
	}
	return ""
}

func hasAgent(s *control.Status, agent string) bool {
	return slices.Contains(knownAgents, agent) ||
		slices.ContainsFunc(s.Agents, func(a control.AgentStatus) bool { return a.Agent == agent })
}

// tellSwitch says where new conversations go and which running ones stay.
func (a *App) tellSwitch(view *overview, change control.Switch, asJSON bool) error {
	for _, line := range exceptions(view, change) {
		a.warn(line)
	}
	if asJSON {
		return a.json(change)
	}
	stay := notCounted
	if view.running() {
		stay = staySentence(change.Stay)
	}
	server := change.Server
	if server == "" {
		server = "own"
	}
	return a.say("new %s conversations -> %s; %s", plain.Text(change.Agent), plain.Text(server), plain.Text(stay))
}

// exceptions lists what the sentence about staying does not cover.
func exceptions(view *overview, change control.Switch) []string {
	var lines []string
	if store := view.Status.Store; store.Error != "" || store.ReadOnly != "" {
		lines = append(lines, fmt.Sprintf(memoryOnly, cmp.Or(store.ReadOnly, store.Error)))
	}
	for _, agent := range view.Status.Agents {
		if agent.Agent != change.Agent || agent.Upstream != "none" {
			continue
		}
		if change.Server == "" {
			lines = append(lines, fmt.Sprintf(noOwnAfterReset, change.Agent))
		} else {
			lines = append(lines, fmt.Sprintf(noOwnUpstream, change.Agent, change.Server))
		}
	}
	return lines
}

// staySentence counts the running conversations that a switch leaves where
// they are: "3 running ones stay (2 on own, 1 on lab)", most first.
func staySentence(stay map[string]int) string {
	total := 0
	names := slices.SortedFunc(maps.Keys(stay), func(a, b string) int {
		if stay[a] != stay[b] {
			return stay[b] - stay[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		if n := stay[name]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d on %s", n, name))
		}
	}
	switch total {
	case 0:
		return "no conversation of it is running"
	case 1:
		return fmt.Sprintf("1 running one stays (%s)", strings.TrimPrefix(parts[0], "1 "))
	}
	return fmt.Sprintf("%d running ones stay (%s)", total, strings.Join(parts, ", "))
}
