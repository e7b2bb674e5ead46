package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/service"
	"agentop/cmd/agentop/supervise"
	"agentop/router/control"
)

// serviceStartOptions is `agentop service start`.
type serviceStartOptions struct{ *App }

func newServiceStart(a *App, run func(*serviceStartOptions, context.Context) error) *cobra.Command {
	o := &serviceStartOptions{App: a}
	return &cobra.Command{Use: "start", Short: "Start the installed service", Args: noArgs, RunE: runner(o, run, nil)}
}

func (o *serviceStartOptions) run(ctx context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	m, err := o.manager(dir)
	if err != nil {
		return err
	}
	if holder, held := supervise.Find(dir); held {
		return o.say("the proxy runs already (process %d)", holder.PID)
	}
	if err := m.Start(ctx); err != nil {
		return explain(err)
	}
	return o.say("started")
}

// serviceStopOptions is `agentop service stop`.
type serviceStopOptions struct {
	*App
	Now bool
}

func newServiceStop(a *App, run func(*serviceStopOptions, context.Context) error) *cobra.Command {
	o := &serviceStopOptions{App: a}
	c := &cobra.Command{
		Use:   "stop",
		Short: "Stop the installed service; running streams finish first",
		Long: `Stop the installed service until its next start or the next login. Nothing new
is accepted from then on; running streams have 30 minutes to finish. Agents that
point at agentop get no connection while it is stopped.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.Now, "now", false, "cut running streams")
	return c
}

func (o *serviceStopOptions) run(ctx context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	m, err := o.manager(dir)
	if err != nil {
		return err
	}
	view, _ := o.overview(ctx) // what is lost if it cannot be asked is a number
	status, err := m.Status(ctx)
	if err != nil {
		return err
	}
	holder, held := supervise.Find(dir)
	if held && holder.PID != status.PID {
		return hint(fmt.Errorf("the running proxy (process %d) is not the service", holder.PID), "end it where it was started")
	}
	if err := m.Stop(ctx); err != nil {
		return explain(err)
	}
	if o.Now && held {
		_ = syscall.Kill(holder.PID, syscall.SIGTERM) // the second one after the manager's
	}
	if awaitFree(ctx, dir, stopPatience) {
		return o.say("stopped")
	}
	streams := 0
	if view != nil {
		streams = view.Status.Streams
	}
	return o.say("it accepts nothing more; %s finish within 30 minutes (`agentop service stop --now` cuts them)", plural(streams, "running request"))
}

// serviceRestartOptions is `agentop service restart`.
type serviceRestartOptions struct{ *App }

func newServiceRestart(a *App, run func(*serviceRestartOptions, context.Context) error) *cobra.Command {
	o := &serviceRestartOptions{App: a}
	return &cobra.Command{
		Use:   "restart",
		Short: "Hand over to a fresh process without closing a connection",
		Long: `Hand over to a fresh process of the program that is installed now. It works on
any running proxy, installed as a service or not. No connection is refused and
no stream is cut: the old process finishes its own within 30 minutes. If the new
one does not become ready within 10 s, the old one stays.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
}

func (o *serviceRestartOptions) run(ctx context.Context) error {
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	before, err := client.Status(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return o.revive(ctx, client, dir)
	}
	if err != nil {
		return err
	}
	if err := client.Restart(ctx); err != nil {
		return err
	}
	return o.tell(ctx, client, &before)
}

// revive restarts what runs without a worker, or starts the service.
func (o *serviceRestartOptions) revive(ctx context.Context, client *control.Client, dir home.Home) error {
	holder, held := supervise.Find(dir)
	if held {
		if err := supervise.Retry(holder); err != nil {
			return err
		}
	} else {
		m, err := o.manager(dir)
		if err != nil {
			return err
		}
		if err := m.Start(ctx); err != nil {
			return explain(err)
		}
	}
	end := time.Now().Add(reviveLimit)
	for time.Now().Before(end) && ctx.Err() == nil {
		if _, err := client.Status(ctx); err == nil {
			return o.tell(ctx, client, nil)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	if holder, held = supervise.Find(dir); held && holder.Trouble != "" {
		return hint(errors.New(holder.Trouble), holder.Cure)
	}
	return hint(errors.New("the proxy does not answer"), "`agentop doctor` looks for the cause")
}

// reviveLimit is how long a new worker has to become ready, and a little more.
const reviveLimit = 12 * time.Second

// tell says who serves now, and what the one before still does.
func (o *serviceRestartOptions) tell(ctx context.Context, client *control.Client, before *control.Status) error {
	s, err := client.Status(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("agentop %s serves on %s (process %d)", plain.Text(s.Version), plain.Text(strings.Join(s.Listen, " and ")), s.PID)
	if before != nil && before.Streams > 0 {
		text += fmt.Sprintf("; the one before it finishes %s", plural(before.Streams, "request"))
	}
	return o.say("%s", text)
}

// serviceStatusOptions is `agentop service status`.
type serviceStatusOptions struct {
	*App
	JSON bool
}

func newServiceStatus(a *App, run func(*serviceStatusOptions, context.Context) error) *cobra.Command {
	o := &serviceStatusOptions{App: a}
	c := &cobra.Command{Use: "status", Short: "Show the login service and who serves", Args: noArgs, RunE: runner(o, run, nil)}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *serviceStatusOptions) run(ctx context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	m, err := o.manager(dir)
	if err != nil {
		return err
	}
	s, err := m.Status(ctx)
	if err != nil {
		return err
	}
	if !s.Installed {
		if err := m.Usable(ctx); err != nil {
			s.Problems = append(s.Problems, err.Error())
		}
	}
	holder, held := supervise.Find(dir)
	if held && s.Installed && s.PID != holder.PID {
		s.Problems = append(s.Problems, fmt.Sprintf("a proxy that is not the service serves this home (process %d): end it, then `agentop service start`", holder.PID))
	}
	if held && holder.Trouble != "" {
		s.Problems = append(s.Problems, strings.TrimSuffix("no worker is ready: "+holder.Trouble+"; "+holder.Cure, "; "))
	}
	if held && holder.Version != o.Build.Version {
		s.Problems = append(s.Problems, fmt.Sprintf("the running proxy is %s, this command is %s: `agentop service restart` hands over if the program was replaced", holder.Version, o.Build.Version))
	}
	view := serviceView{Status: s, Serves: holder.PID}
	if o.JSON {
		return o.json(view)
	}
	return o.print(view)
}

// serviceView is the login service and who has the home, be it that or not.
type serviceView struct {
	service.Status
	Serves int `json:"serves,omitempty"` // process number; 0 = nobody
}

func (o *serviceStatusOptions) print(s serviceView) error {
	linger := ""
	if s.Linger != nil {
		linger = map[bool]string{true: "yes", false: "no: `agentop service install --linger`"}[*s.Linger]
	}
	pid := ""
	if s.PID > 0 {
		pid = number(s.PID)
	}
	facts := []string{
		"manager", s.Manager, "state", s.State, "process", pid, "starts at login", map[bool]string{true: "yes", false: "no"}[s.Enabled],
		"lives after log-out", linger, "program", s.Binary, "addresses", strings.Join(s.Addresses, " "),
	}
	for _, v := range s.Env {
		if v.Name != service.EnvName {
			facts = append(facts, v.Name, v.Value)
		}
	}
	for _, f := range s.Files {
		facts = append(facts, "file", f)
	}
	if s.Installed {
		facts = append(facts, "log", s.Logs)
	}
	if s.Serves > 0 && s.Serves != s.PID {
		facts = append(facts, "proxy", fmt.Sprintf("process %d, which is not the service", s.Serves))
	}
	for _, p := range s.Problems {
		facts = append(facts, "problem", p)
	}
	return o.facts(facts...)
}
