package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentop/router/control"
)

// serverTestOptions is `agentop server test`.
type serverTestOptions struct {
	*App
	Server string
	Agents []string
	JSON   bool
}

func newServerTest(a *App, run func(*serverTestOptions, context.Context) error) *cobra.Command {
	o := &serverTestOptions{App: a}
	c := &cobra.Command{
		Use:   "test NAME",
		Short: "Ask a server what it can do: up, key, models, formats, context, speed",
		Long: `Ask a server what it can do: up, key, models, formats, context, speed. For the
last, one request is sent that generates a single token; all other questions
generate nothing. The exit code is 1 when the server does not answer or refuses
the key.`,
		Args: exactArgs("NAME"),
		RunE: runner(o, run, func(o *serverTestOptions, args []string) { o.Server = args[0] }),

		ValidArgsFunction: completeServers(a),
	}
	c.Flags().StringSliceVar(&o.Agents, "agent", nil, "the agents whose models are looked for (default: all that were seen)")
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *serverTestOptions) run(ctx context.Context) error {
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := client.TestServer(ctx, o.Server, o.Agents)
	if errors.Is(err, control.ErrNotRunning) && o.Examine != nil {
		found, err = o.examineOffline(ctx, dir, o.Server, Questions{Agents: o.Agents, Speed: true})
	}
	if err != nil {
		return err
	}
	if err := o.tell(found); err != nil {
		return err
	}
	if !found.Up || found.KeyOK != nil && !*found.KeyOK {
		return errSilent
	}
	return nil
}

// firstToken says how long the first token took, and of what.
func firstToken(p control.Preflight) string {
	if p.FirstMS == 0 || p.Tried == "" {
		return millis(p.FirstMS)
	}
	return millis(p.FirstMS) + " (" + p.Tried + ")"
}

func (o *serverTestOptions) tell(p control.Preflight) error {
	if o.JSON {
		return o.json(p)
	}
	key := "not known"
	if p.KeyOK != nil {
		key = map[bool]string{true: "accepted", false: "refused"}[*p.KeyOK]
	}
	context := ""
	if p.Context > 0 {
		context = fmt.Sprintf("%d tokens", p.Context)
	}
	if err := o.facts(
		"server", p.Server,
		"up", map[bool]string{true: "yes", false: "no"}[p.Up],
		"key", key,
		"models", strings.Join(p.Models, ", "),
		"formats", strings.Join(p.Formats, ", "),
		"context", context,
		"first token", firstToken(p),
	); err != nil {
		return err
	}
	for _, w := range preflightWarnings(p) {
		o.warn(w)
	}
	return nil
}
