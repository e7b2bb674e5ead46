package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/worker"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
)

// serverAddOptions is `agentop server add`. There is no option that holds a
// key: arguments can be read by every account on the machine.
type serverAddOptions struct {
	*App
	Name      string
	URL       string
	KeyStdin  bool
	KeyEnv    string
	NoKey     bool
	KeyClient bool
	Keychain  *bool // nil: where the key of a server that is there is kept, else keys.json
	Yes       bool
	JSON      bool
}

func newServerAdd(a *App, run func(*serverAddOptions, context.Context) error) *cobra.Command {
	o := &serverAddOptions{App: a}
	c := &cobra.Command{
		Use:   "add NAME URL",
		Short: "Add a server, or change one's URL and key",
		Long: `Add a server, or change the URL and key of the one that has this name. The key
is asked for at a prompt that does not echo, and kept in keys.json, which only
you can read, or with --keychain in the system's keychain. It is never taken
from an argument, since others could see it in the list of processes.

The server is then asked what it can do. Where it lacks the model names that
agents ask for, the rename lines that help are shown, and written if you say so.`,
		Example: `  agentop server add glm https://glm.example.com
  agentop server add glm https://glm.example.com --key-stdin < key.txt
  agentop server add gpu http://gpu1:8000 --no-key`,
		Args: exactArgs("NAME", "URL"),
		RunE: runner(o, run, func(o *serverAddOptions, args []string) { o.Name, o.URL = args[0], args[1] }),
	}
	keychain := false
	c.PreRun = func(c *cobra.Command, _ []string) {
		if c.Flags().Changed("keychain") {
			o.Keychain = &keychain
		}
	}
	f := c.Flags()
	f.BoolVar(&o.KeyStdin, "key-stdin", false, "read the key from standard input, which must not be a terminal")
	f.StringVar(&o.KeyEnv, "key-env", "", "take the key from this environment variable of the proxy")
	f.BoolVar(&o.NoKey, "no-key", false, "the server wants no key")
	f.BoolVar(&o.KeyClient, "key-client", false, "pass the agent's own credential on to the server")
	f.BoolVar(&keychain, "keychain", false, "keep the key in the system's keychain; =false: in keys.json again")
	f.BoolVar(&o.Yes, "yes", false, "answer yes: change a server in use, write the rename lines that are missing")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *serverAddOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	view, err := o.listed(ctx)
	if err != nil {
		return err
	}
	if err := o.confirmChange(ctx, view); err != nil {
		return err
	}
	spec := control.ServerSpec{Name: o.Name, URL: o.URL}
	if spec.Key, spec.Secret, err = o.key(ctx, findServer(&view.Status, o.Name)); err != nil {
		return err
	}
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	to := addTo{o: o, client: client, dir: dir, running: view.running()}
	change, err := to.add(ctx, spec, findServer(&view.Status, o.Name) != nil)
	if err != nil {
		return err
	}
	found := to.ask(ctx)
	if err := o.tell(change, found); err != nil || found == nil {
		return err
	}
	return o.rename(ctx, to, spec, found)
}

// check refuses what cannot be right before anything is asked or read.
func (o *serverAddOptions) check() error {
	if err := config.CheckName(o.Name); err != nil {
		return usageError{err}
	}
	url, err := config.CheckURL(o.URL)
	if err != nil {
		return usageError{err}
	}
	o.URL = url
	given := 0
	for _, is := range []bool{o.KeyStdin, o.KeyEnv != "", o.NoKey, o.KeyClient} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return hint(usagef("more than one place for the key is given"),
			"use one of --key-stdin, --key-env NAME, --no-key and --key-client")
	case o.Keychain != nil && (o.KeyEnv != "" || o.NoKey || o.KeyClient):
		return hint(usagef("--keychain is for a key that is typed"), "leave it out, or let the key be asked for")
	case o.KeyStdin && o.InTerminal:
		return hint(usagef("--key-stdin would show the key, since standard input is a terminal"),
			"leave it out: the prompt does not echo")
	case given == 0 && !o.InTerminal:
		return hint(usagef("there is no terminal to ask for the key on"),
			"use --key-stdin, --key-env NAME, --no-key or --key-client")
	}
	return nil
}

// confirmChange asks before a server that is there goes to another address.
func (o *serverAddOptions) confirmChange(ctx context.Context, view *overview) error {
	old := findServer(&view.Status, o.Name)
	if old == nil || old.URL == o.URL {
		return nil
	}
	before := old.URL
	if len(old.Members) > 0 {
		before = "a pool"
	}
	nobody := view.running() && old.Running == 0
	return o.confirm(ctx, o.Yes || nobody, []string{fmt.Sprintf("%s is %s; %s", o.Name, before, concerns(view, old))},
		fmt.Sprintf("Send them to %s from their next turn on?", o.URL))
}

// concerns says how many running conversations a change of a server touches.
func concerns(view *overview, s *control.Server) string {
	if !view.running() {
		return "how many running conversations are on it is not known, because no agentop proxy is running"
	}
	return plural(s.Running, "running conversation") + " " + isAre(s.Running) + " on it"
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// key gives where the key comes from, and the key if it is to be stored. old
// is the server of that name, nil if there is none.
func (o *serverAddOptions) key(ctx context.Context, old *control.Server) (source, secret string, err error) {
	switch {
	case o.NoKey:
		return string(config.KeyNone), "", nil
	case o.KeyClient:
		return string(config.KeyClient), "", nil
	case o.KeyEnv != "":
		return "env:" + o.KeyEnv, "", nil
	case o.KeyStdin:
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(o.In, maxKey+2)); err != nil {
			return "", "", fmt.Errorf("read the key: %w", err)
		}
		secret = string(b)
	default:
		secret, err = o.ReadSecret(ctx, fmt.Sprintf("Key for %s (not shown): ", plain.Text(o.Name)))
		if err != nil {
			return "", "", err
		}
	}
	secret, err = cleanKey(secret)
	return string(o.keptIn(old)), secret, err
}

// keptIn is where a typed key is kept: as the flag says, else where the key
// before it is.
func (o *serverAddOptions) keptIn(old *control.Server) config.KeyKind {
	keychain := old != nil && old.Key == string(config.KeyKeychain)
	if o.Keychain != nil {
		keychain = *o.Keychain
	}
	if keychain {
		return config.KeyKeychain
	}
	return config.KeyStored
}

// addOffline writes config.yaml and keys.json when no proxy runs. The key is
// stored first: a server without its key would refuse conversations, a key
// without its server does nothing. A key of the former source is forgotten.
func addOffline(ctx context.Context, dir home.Home, spec control.ServerSpec, there bool) (control.ServerChange, error) {
	change := control.ServerChange{Name: spec.Name, Changed: there}
	server, err := worker.ServerOf(spec)
	if err != nil {
		return change, err
	}
	if err := dir.Create(); err != nil {
		return change, err
	}
	keys := credential.NewResolver(dir.Keys())
	if spec.Secret != "" {
		if err := keys.Store(ctx, spec.Name, server.Key.Kind, credential.NewSecret(spec.Secret)); err != nil {
			return change, err
		}
	}
	var before *config.Server
	err = editConfig(dir, func(data []byte) ([]byte, error) {
		c, err := config.Parse(dir.Config(), data)
		if err != nil {
			return nil, err
		}
		before, _ = c.Server(spec.Name)
		return config.AddServer(data, server.Over(before))
	})
	if err != nil || before == nil || before.Key.Kind == server.Key.Kind {
		return change, err
	}
	return change, keys.Remove(ctx, spec.Name, before.Key.Kind)
}

// tell says what was done, what the server answered, and what comes next.
func (o *serverAddOptions) tell(change control.ServerChange, found *control.Preflight) error {
	for _, w := range change.Warnings {
		o.warn(w)
	}
	if found != nil {
		asked := *found
		if o.Yes || o.InTerminal { // then the lines are written, or asked about
			asked.Rename, asked.Missing = nil, nil
		}
		for _, w := range preflightWarnings(asked) {
			o.warn(w)
		}
	}
	if o.JSON {
		return o.json(change)
	}
	done := "added"
	if change.Changed {
		done = "changed"
	}
	if err := o.say("%s %s", done, plain.Text(change.Name)); err != nil {
		return err
	}
	if found != nil && len(found.Models) > 0 {
		if err := o.say("it serves %s", plain.Text(short(found.Models, 8))); err != nil {
			return err
		}
	}
	if len(change.Agents) > 0 || !o.OutTerminal {
		return nil
	}
	return o.say("send an agent's new conversations there: agentop server use %s --agent %s", plain.Text(change.Name), knownAgents[0])
}

// short lists at most n names and counts the others.
func short(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// preflightWarnings is all that is wrong with a server, one line each.
func preflightWarnings(p control.Preflight) []string {
	lines := slices.Clone(p.Warnings)
	switch {
	case !p.Up && len(lines) == 0:
		lines = append(lines, p.Server+" does not answer")
	case p.KeyOK != nil && !*p.KeyOK && len(lines) == 0:
		lines = append(lines, p.Server+" refuses the key")
	}
	if len(p.Missing) > 0 {
		lines = append(lines, notServed(p))
	}
	if len(p.Rename) > 0 {
		lines = append(lines, fmt.Sprintf("this line under %s in config.yaml would help: rename: %s", p.Server, renameText(p.Rename)))
	}
	return lines
}

func notServed(p control.Preflight) string {
	which := "which is asked for"
	if len(p.Missing) > 1 {
		which = "which are asked for"
	}
	return fmt.Sprintf("%s does not serve %s, %s", p.Server, strings.Join(p.Missing, ", "), which)
}

// renameText is a rename list as config.yaml writes it on one line.
func renameText(lines []control.Rename) string {
	parts := make([]string, len(lines))
	for i, r := range lines {
		parts[i] = fmt.Sprintf("%q: %s", r.Glob, r.Name)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
