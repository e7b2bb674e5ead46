package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentop/agents/setup"
	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/importer"
	"agentop/router/config"
	"agentop/router/control"
)

// setupOptions is `agentop setup`.
type setupOptions struct {
	*App
	Yes       bool
	Agents    []string
	NoAccount []string
	NoService bool
	NoScreen  bool
	Server    serverAddOptions // one server to add; Name "" = ask, or none with Yes

	input *bufio.Reader
}

func newSetup(a *App, run func(*setupOptions, context.Context) error) *cobra.Command {
	o := &setupOptions{App: a, Server: serverAddOptions{App: a}}
	c := &cobra.Command{
		Use:   "setup",
		Short: "Set agentop up: a server, the login service, the agents",
		Long: `Set agentop up: add a server and its key, install the login service, enable the
agents. Each step says what it changes and how it is undone, and asks first.
Run again, it changes nothing that is right.`,
		Example: `  agentop setup
  agentop setup --yes --agent claude-code --server glm --url https://glm.example.com --key-stdin < key.txt`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	f := c.Flags()
	f.BoolVar(&o.Yes, "yes", false, "do not ask: install the service and enable the agents that are installed")
	f.StringSliceVar(&o.Agents, "agent", nil, "enable this agent, and no other")
	f.StringSliceVar(&o.NoAccount, "no-account", nil, "this agent has no account at its own upstream")
	f.BoolVar(&o.NoService, "no-service", false, "leave the login service alone")
	f.BoolVar(&o.NoScreen, "no-screen", false, "do not open the terminal UI at the end")
	f.StringVar(&o.Server.Name, "server", "", "add a server of this name")
	f.StringVar(&o.Server.URL, "url", "", "its address")
	f.BoolVar(&o.Server.KeyStdin, "key-stdin", false, "read its key from standard input, which must not be a terminal")
	f.StringVar(&o.Server.KeyEnv, "key-env", "", "take its key from this environment variable of the proxy")
	f.BoolVar(&o.Server.NoKey, "no-key", false, "it wants no key")
	f.BoolVar(&o.Server.KeyClient, "key-client", false, "pass the agent's own credential on to it")
	return c
}

func (o *setupOptions) run(ctx context.Context) error {
	if (o.Server.Name == "") != (o.Server.URL == "") {
		return usagef("--server and --url belong together")
	}
	if !o.Yes && !o.InTerminal {
		return hint(fmt.Errorf("%w: there is no terminal to ask on", errDeclined), "--yes answers yes")
	}
	if o.Yes && o.Server.Name != "" {
		if err := o.Server.check(); err != nil {
			return err
		}
	}
	dir, err := o.home()
	if err != nil {
		return err
	}
	if _, err := readConfig(dir); err != nil {
		return hint(err, "correct it, then run setup again")
	}
	o.input = bufio.NewReader(o.In)
	app := *o.App
	app.In = o.input // so that what asks below goes on where this has read to
	o.App, o.Server.App = &app, &app
	steps := []func(context.Context, home.Home) error{o.stepHome, o.stepServer, o.stepService, o.stepAgents}
	for _, step := range steps {
		if err := step(ctx, dir); err != nil {
			return err
		}
	}
	return o.finish(ctx, dir)
}

// step prints what comes next.
func (o *setupOptions) step(title string) error { return o.say("\n%s", plain.Text(title)) }

// ask asks a yes-or-no question; --yes answers it.
func (o *setupOptions) ask(ctx context.Context, question string) (bool, error) {
	if o.Yes {
		return true, nil
	}
	answer, err := o.line(ctx, question+" [y/N] ")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}

// line asks for one line; the end of input is an empty one.
func (o *setupOptions) line(ctx context.Context, prompt string) (string, error) {
	_, _ = fmt.Fprint(o.Err, plain.Text(prompt))
	return await(ctx, func() (string, error) {
		line, err := o.input.ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return strings.TrimSpace(line), err
	})
}

func (o *setupOptions) stepHome(_ context.Context, dir home.Home) error {
	if err := dir.Create(); err != nil {
		return err
	}
	return o.say("agentop keeps its configuration, keys, pins and logs in %s, closed to others.\n  undo: agentop uninstall --purge", plain.Text(dir.String()))
}

// stepServer asks for one server, unless there is one.
func (o *setupOptions) stepServer(ctx context.Context, dir home.Home) error {
	c, err := readConfig(dir)
	if err != nil {
		return err
	}
	if err := o.step("1. A server"); err != nil {
		return err
	}
	if o.Server.Name == "" && len(c.Servers) > 0 {
		return o.say("%s configured already: %s", plural(len(c.Servers), "server"), plain.Text(serverNames(c)))
	}
	if old, there := c.Server(o.Server.Name); there && old.URL == o.Server.URL {
		return o.say("%s is configured already", plain.Text(old.Name))
	}
	if err := o.sayImports(c); err != nil {
		return err
	}
	if o.Server.Name == "" {
		if err := o.askServer(ctx); err != nil || o.Server.Name == "" {
			return err
		}
	}
	o.Server.Yes = o.Yes
	if err := o.Server.run(ctx); err != nil {
		return err
	}
	return o.say("  it is in %s, its key apart from it\n  undo: agentop server remove %s", plain.Text(dir.Config()), plain.Text(o.Server.Name))
}

func serverNames(c *config.Config) string {
	names := make([]string, len(c.Servers))
	for i := range c.Servers {
		names[i] = c.Servers[i].Name
	}
	return strings.Join(names, ", ")
}

// sayImports names the servers that other tools have.
func (o *setupOptions) sayImports(c *config.Config) error {
	var taken []string
	for i := range c.Servers {
		taken = append(taken, c.Servers[i].Name)
	}
	for _, tool := range importer.Tools {
		found, err := importer.Read(tool, o.userHome(), "", taken)
		if err != nil || len(found.Servers) == 0 {
			continue // the tool is not there
		}
		names := make([]string, len(found.Servers))
		for i, s := range found.Servers {
			names[i] = s.Name
		}
		if err := o.say("%s has %s: %s\n  agentop server import --from %s takes them over", tool, plural(len(names), "server"), plain.Text(short(names, 6)), tool); err != nil {
			return err
		}
	}
	return nil
}

// askServer asks for a name and an address; an empty name means none.
func (o *setupOptions) askServer(ctx context.Context) error {
	if o.Yes {
		return o.say("no server is added: agentop server add NAME URL")
	}
	for {
		name, err := o.line(ctx, "Name of a server to send conversations to (nothing for none yet): ")
		if err != nil || name == "" {
			return err
		}
		address, err := o.line(ctx, "Its address, such as https://glm.example.com: ")
		if err != nil || address == "" {
			return err
		}
		o.Server.Name, o.Server.URL = name, address
		err = o.Server.check()
		if err == nil {
			return nil
		}
		o.Server.Name = ""
		_, _ = fmt.Fprintf(o.Err, "%s\n", plain.Lines(err.Error()))
	}
}

// stepService installs the login service, unless it is.
func (o *setupOptions) stepService(ctx context.Context, dir home.Home) error {
	if err := o.step("2. The login service"); err != nil {
		return err
	}
	service := o.service(dir)
	if o.NoService || service == nil {
		return o.say("no login service is installed: run `agentop proxy` whenever agents are to use it")
	}
	state, err := service.Status(ctx)
	switch {
	case err != nil:
		return err
	case !state.Supported:
		return o.say("this system has no login service that agentop can use: run `agentop proxy`")
	case state.Installed && state.Running && state.Trouble == "":
		return o.say("it is installed already, and runs")
	}
	yes, err := o.ask(ctx, "Install a service that runs the proxy from login on, as you and without root?")
	if err != nil || !yes {
		return errors.Join(err, o.say("not installed; later: agentop service install"))
	}
	changed, err := service.Install(ctx)
	for _, line := range changed {
		if err := o.say("  %s", plain.Text(line)); err != nil {
			return err
		}
	}
	if err != nil {
		o.warn(fmt.Sprintf("the login service is not installed: %v", err))
		return o.say("  later: agentop service install")
	}
	o.awaitProxy(ctx)
	return o.say("  undo: agentop service uninstall")
}

// awaitProxy gives a proxy that was started a moment to answer.
func (o *setupOptions) awaitProxy(ctx context.Context) {
	for range 50 {
		if view, err := o.overview(ctx); err == nil && view.running() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond): // between polls of another process
		}
	}
}

// stepAgents enables the agents that are installed, or those that were named.
func (o *setupOptions) stepAgents(ctx context.Context, dir home.Home) error {
	if err := o.step("3. The agents"); err != nil {
		return err
	}
	names := o.Agents
	if len(names) == 0 {
		for _, agent := range setup.Agents {
			if o.programOf(agent) != "" {
				names = append(names, agent)
			}
		}
	}
	if len(names) == 0 {
		return o.say("none is installed; later: agentop agent enable AGENT")
	}
	s, err := o.agentSetup(dir)
	if err != nil {
		return err
	}
	for _, agent := range names {
		if s.Status(agent).State == setup.StateOn {
			if err := o.say("%s is enabled already", plain.Text(agent)); err != nil {
				return err
			}
			if err := o.use(ctx, dir, agent); err != nil {
				return err
			}
			continue
		}
		if err := o.enableAgent(ctx, dir, s, agent); err != nil {
			return err
		}
	}
	return nil
}

// enableAgent enables one agent, unless it is. That it cannot be enabled is
// told, and ends nothing.
func (o *setupOptions) enableAgent(ctx context.Context, dir home.Home, s *setup.Setup, agent string) error {
	if view, err := o.overview(ctx); err == nil && !view.running() {
		if err := o.use(ctx, dir, agent); err != nil {
			return err
		}
		return o.say("%s is not enabled, because no proxy is running and it would get no answers; once one runs: agentop agent enable %s", plain.Text(agent), plain.Text(agent))
	}
	yes, err := o.ask(ctx, fmt.Sprintf("Point %s at agentop, in its own settings?", agent))
	if err != nil {
		return err
	}
	if !yes {
		return o.say("%s is not enabled; later: agentop agent enable %s", plain.Text(agent), plain.Text(agent))
	}
	if err := o.account(ctx, dir, s, agent); err != nil {
		return err
	}
	if err := o.use(ctx, dir, agent); err != nil { // first, since what is written depends on it
		return err
	}
	enable := &agentEnableOptions{App: o.App, Agent: agent, Yes: o.Yes}
	if err := enable.run(ctx); err != nil && !errors.Is(err, errSilent) {
		if errors.Is(err, context.Canceled) {
			return err
		}
		o.warn(fmt.Sprintf("%s is not enabled: %v", agent, err))
	}
	return nil
}

// account writes `upstream: none` for people without an account at the
// agent's own upstream.
func (o *setupOptions) account(ctx context.Context, dir home.Home, s *setup.Setup, agent string) error {
	none := slices.Contains(o.NoAccount, agent)
	if !none && !o.Yes && !s.HasLogin(agent) {
		answer, err := o.line(ctx, fmt.Sprintf("No login of %s is here. Have you an account at its vendor? [Y/n] ", agent))
		if err != nil {
			return err
		}
		none = strings.HasPrefix(strings.ToLower(answer), "n")
	}
	if !none {
		return nil
	}
	err := editConfig(dir, func(data []byte) ([]byte, error) { return config.SetUpstream(data, agent, "", "none") })
	if err != nil {
		return err
	}
	return o.say("%s has no own upstream: what no server is chosen for is refused\n  undo: take `upstream: none` out of %s", plain.Text(agent), plain.Text(dir.Config()))
}

// use sends an agent's new conversations to the server that was added, unless
// they go to one.
func (o *setupOptions) use(ctx context.Context, dir home.Home, agent string) error {
	if o.Server.Name == "" {
		return nil
	}
	c, err := readConfig(dir)
	if err != nil || c.Agents[agent].Server != "" {
		return err
	}
	yes, err := o.ask(ctx, fmt.Sprintf("Send new conversations of %s to %s? Running ones stay where they are.", agent, o.Server.Name))
	if err != nil || !yes {
		return err
	}
	choice := &serverUseOptions{App: o.App, Server: o.Server.Name, Agent: agent}
	if err := choice.run(ctx); err != nil {
		return err
	}
	return o.say("  undo: agentop server reset --agent %s", plain.Text(agent))
}

// finish opens the terminal UI, or says how all stands.
func (o *setupOptions) finish(ctx context.Context, dir home.Home) error {
	view, err := o.overview(ctx)
	if err != nil && !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	if o.Screen != nil && !o.NoScreen && !o.Yes && o.InTerminal && o.OutTerminal && view != nil && view.running() {
		return o.Screen(ctx, dir)
	}
	return o.say("\nDone. `agentop` shows what goes where, `agentop doctor` whether all is well.")
}
