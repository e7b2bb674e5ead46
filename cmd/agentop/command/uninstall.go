package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"agentop/agents/setup"
	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
	"agentop/router/credential"
)

// uninstallOptions is `agentop uninstall`.
type uninstallOptions struct {
	*App
	Purge bool
	Yes   bool
}

func newUninstall(a *App, run func(*uninstallOptions, context.Context) error) *cobra.Command {
	o := &uninstallOptions{App: a}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Take agentop out: agents, login service and, with --purge, its files",
		Long: `Take agentop out again. First each agent's settings are put back, then the login
service goes. With --purge also agentop's own files: configuration, keys, pins
and logs. What others have put into its folder stays, and is named. It works
whether a proxy runs or not, and may be run again.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.Purge, "purge", false, "remove agentop's own files too")
	c.Flags().BoolVar(&o.Yes, "yes", false, "do not ask")
	return c
}

func (o *uninstallOptions) run(ctx context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	if err := o.confirm(ctx, o.Yes, o.stake(ctx, dir), "Take agentop out?"); err != nil {
		return err
	}
	s, bad := o.agentSetup(dir)
	if bad != nil {
		o.warn(bad.Error())
	}
	left, err := o.agents(s)
	if err != nil {
		return err
	}
	if err := o.removeService(ctx, dir); err != nil {
		return err
	}
	if !o.Purge {
		return o.rest(dir)
	}
	if pid := holder(dir).PID; pid > 0 {
		return hint(fmt.Errorf("the files in %s stay, because a proxy still serves it (process %d)", dir, pid),
			fmt.Sprintf("end it with `kill %d`, which lets running streams finish; then `agentop uninstall --purge` again", pid))
	}
	return o.purge(ctx, dir, left)
}

// stake says what would be lost.
func (o *uninstallOptions) stake(ctx context.Context, dir home.Home) []string {
	lines := []string{"The agents' settings are put back and the login service is removed."}
	if view, err := o.overview(ctx); err == nil && view.running() && view.Status.Running > 0 {
		lines = append(lines, fmt.Sprintf("%s %s at agentop; agents that were started before go on asking it, and get no answer once it is gone.",
			plural(view.Status.Running, "running conversation"), isAre(view.Status.Running)))
	}
	if o.Purge {
		lines = append(lines, fmt.Sprintf("Configuration, keys, pins and logs in %s are removed for good.", dir))
	}
	return lines
}

// agents puts every agent's settings back. A file that does not parse is no
// obstacle: the agent does not read it either. It says whether records must
// stay for such a file.
func (o *uninstallOptions) agents(s *setup.Setup) (left bool, err error) {
	for _, agent := range setup.Agents {
		err := o.disableAgent(s, agent, false)
		var bad *setup.SyntaxError
		switch {
		case errors.As(err, &bad):
			o.warn(fmt.Sprintf("%s is left as it is: %v", agent, err))
			left = true
		case err != nil:
			return left, fmt.Errorf("the login service and the files stay, because %s could not be undone: %w", agent, err)
		}
	}
	return left, nil
}

func (o *uninstallOptions) removeService(ctx context.Context, dir home.Home) error {
	service := o.service(dir)
	if service == nil {
		return nil
	}
	changed, err := service.Uninstall(ctx)
	for _, line := range changed {
		if err := o.say("%s", plain.Text(line)); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("remove the login service: %w", err)
	}
	return nil
}

// rest says what is still there.
func (o *uninstallOptions) rest(dir home.Home) error {
	if _, err := os.Stat(dir.String()); err == nil {
		if err := o.say("%s stays; `agentop uninstall --purge` removes it", plain.Text(dir.String())); err != nil {
			return err
		}
	}
	return o.programStays()
}

func (o *uninstallOptions) programStays() error {
	program, err := os.Executable()
	if err != nil {
		return nil // there is no name to tell
	}
	return o.say("the program itself stays: rm %s", plain.Text(program))
}

// ownNames are the names of all that agentop makes in its home.
var ownNames = []string{"config.yaml", "config.yaml.lock", "keys.json", "keys.json.lock", "pins.json", "pins.json.lock",
	"pins.json.corrupt-*", "pins.json.tmp-*", "servers.json", "servers.json.lock", "agentop.sock", "proxy.lock", "log", "agents", ".*.tmp-*", ".*tmp*"}

// purge removes agentop's own files, and nothing else that is in its folder.
func (o *uninstallOptions) purge(ctx context.Context, dir home.Home, keepRecords bool) error {
	o.dropKeychain(ctx, dir)
	for _, pattern := range ownNames {
		names, _ := filepath.Glob(filepath.Join(globSafe(dir.String()), pattern))
		for _, name := range names {
			if keepRecords && name == dir.AgentsDir() {
				o.warn(name + " stays: it holds what an agent's settings were")
				continue
			}
			if err := os.RemoveAll(name); err != nil {
				return fmt.Errorf("remove agentop's files: %w", err)
			}
		}
	}
	if err := removeIfEmpty(dir.String()); err != nil {
		o.warn(err.Error())
	} else if err := o.say("removed %s", plain.Text(dir.String())); err != nil {
		return err
	}
	return o.programStays()
}

// dropKeychain removes the keys that are kept outside of the home.
func (o *uninstallOptions) dropKeychain(ctx context.Context, dir home.Home) {
	c, err := readConfig(dir)
	if err != nil {
		return // no names to ask for
	}
	keys := credential.NewResolver(dir.Keys())
	for i := range c.Servers {
		if s := &c.Servers[i]; s.Key.Kind == config.KeyKeychain {
			if err := keys.Remove(ctx, s.Name, s.Key.Kind); err != nil {
				o.warn(err.Error())
			}
		}
	}
}

func globSafe(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// removeIfEmpty removes a folder, or names what is in it.
func removeIfEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return os.Remove(dir)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return fmt.Errorf("%s stays, because it holds what agentop did not make: %s", dir, short(names, 8))
}
