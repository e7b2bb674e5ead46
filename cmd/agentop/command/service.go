package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/doctor"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/service"
	"agentop/cmd/agentop/supervise"
	"agentop/router/config"
)

// newService is `agentop service`, by itself its status.
func newService(a *App) *cobra.Command {
	o := &serviceStatusOptions{App: a}
	c := &cobra.Command{
		Use:   "service",
		Short: "Run the proxy from login on, restart it without cutting anything",
		Args:  noArgs,
		RunE:  runner(o, (*serviceStatusOptions).run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	c.AddCommand(
		newServiceInstall(a, (*serviceInstallOptions).run),
		newServiceUninstall(a, (*serviceUninstallOptions).run),
		newServiceStart(a, (*serviceStartOptions).run),
		newServiceStop(a, (*serviceStopOptions).run),
		newServiceRestart(a, (*serviceRestartOptions).run),
		newServiceStatus(a, (*serviceStatusOptions).run),
	)
	return c
}

// manager gives the service manager of this system.
func (a *App) manager(dir home.Home) (service.Manager, error) {
	system := a.System
	if system.Run == nil {
		system = service.Here(runtime.GOOS)
	}
	return service.New(system, dir)
}

// spec is what the service of a home runs, with what a person should know of
// it.
func (a *App) spec(dir home.Home) (service.Spec, []string, error) {
	s := service.Spec{Binary: supervise.StablePath(), Home: dir}
	c, err := readConfig(dir)
	if err != nil {
		return s, nil, hint(err, "a service needs a valid configuration: `agentop config check`")
	}
	if s.Addresses, err = bothFamilies(c.Listen); err != nil {
		return s, nil, err
	}
	var notes []string
	s.Env, notes = capture(a.Getenv)
	for i := range c.Servers {
		if k := c.Servers[i].Key; k.Kind == config.KeyEnv {
			notes = append(notes, fmt.Sprintf("server %s takes its key from $%s, which the service does not have: no secret goes into its file; `agentop server add %s %s` asks for the key and keeps it",
				c.Servers[i].Name, k.Env, c.Servers[i].Name, c.Servers[i].URL))
		}
	}
	if strings.HasPrefix(s.Binary, os.TempDir()+string(os.PathSeparator)) {
		notes = append(notes, s.Binary+" is in a directory for temporary files: install agentop somewhere that lasts, then install the service from there")
	}
	return s, notes, nil
}

// bothFamilies is address and the same port of the other loopback family,
// where this machine has it.
func bothFamilies(address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		return nil, hint(fmt.Errorf("listen is %q: a service needs a fixed port", address), "set `listen` in config.yaml")
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	list := []string{net.JoinHostPort(host, port)}
	other := "127.0.0.1"
	if strings.Contains(net.ParseIP(host).String(), ".") {
		other = "::1"
	}
	if l, err := net.Listen("tcp", net.JoinHostPort(other, "0")); err == nil {
		_ = l.Close() // it was only tried
		list = append(list, net.JoinHostPort(other, port))
	}
	return list, nil
}

// captured are the variables of the installing shell that the service gets:
// service managers give a minimal PATH and no proxies.
var captured = []string{"PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"}

// capture takes the variables that are set. A password in one stays out.
func capture(getenv func(string) string) (vars []service.Variable, notes []string) {
	for _, name := range captured {
		value := getenv(name)
		if value == "" {
			continue
		}
		if name != "PATH" && strings.Contains(value, "@") {
			notes = append(notes, name+" holds a password and does not go into the service's file: the service does not use that proxy")
			continue
		}
		vars = append(vars, service.Variable{Name: name, Value: value})
		if name != "PATH" {
			notes = append(notes, fmt.Sprintf("the service uses %s=%s, as this shell does", name, value))
		}
	}
	return vars, notes
}

// awaitFree waits until no supervisor has the home, as long as ctx and the
// limit allow, and says whether it is so.
func awaitFree(ctx context.Context, dir home.Home, limit time.Duration) bool {
	end := time.Now().Add(limit)
	for {
		if _, held := supervise.Find(dir); !held {
			return true
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// explain adds what to do to an error of the service manager.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, service.ErrNotInstalled):
		return hint(err, "`agentop service install` installs it; without it, `agentop proxy` runs in the foreground")
	case errors.Is(err, service.ErrForeign):
		return hint(err, "move that file away if it is of no use to you, then try again")
	}
	return err
}

// loginService is the service as setup, doctor and uninstall want it.
type loginService struct {
	app *App
	dir home.Home
}

func newLoginService(a *App) func(home.Home) LoginService {
	return func(dir home.Home) LoginService { return loginService{a, dir} }
}

// Status implements LoginService.
func (l loginService) Status(ctx context.Context) (doctor.Service, error) {
	m, err := l.app.manager(l.dir)
	if err != nil {
		return doctor.Service{}, nil
	}
	s, err := m.Status(ctx)
	if err != nil {
		return doctor.Service{}, err
	}
	d := doctor.Service{Supported: m.Usable(ctx) == nil, Installed: s.Installed, Running: s.Active}
	if len(s.Problems) > 0 {
		d.Trouble, d.Fix = strings.Join(s.Problems, "; "), "agentop service install"
	}
	return d, nil
}

// Install implements LoginService.
func (l loginService) Install(ctx context.Context) ([]string, error) {
	o := serviceInstallOptions{App: l.app}
	change, err := o.install(ctx, l.dir)
	return append(change.Done, change.Notes...), err
}

// Uninstall implements LoginService.
func (l loginService) Uninstall(ctx context.Context) ([]string, error) {
	m, err := l.app.manager(l.dir)
	if err != nil {
		return nil, nil
	}
	change, err := m.Uninstall(ctx)
	if err == nil && len(change.Done) > 0 {
		awaitFree(ctx, l.dir, stopPatience)
	}
	return append(change.Done, change.Notes...), err
}

// stopPatience is how long a command waits for a proxy without streams to end.
const stopPatience = 5 * time.Second

// lines prints what an operation did and what there is to know.
func (a *App) lines(c service.Change) error {
	for _, line := range c.Done {
		if err := a.say("%s", plain.Text(line)); err != nil {
			return err
		}
	}
	for _, line := range c.Notes {
		_, _ = fmt.Fprintf(a.Err, "%s\n", plain.Text(line))
	}
	return nil
}
