package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/router/control"
)

// sessionsMoveOptions is `agentop sessions move`.
type sessionsMoveOptions struct {
	*App
	ID     string
	Server string
	Agent  string
	Yes    bool
	JSON   bool
}

func newSessionsMove(a *App, run func(*sessionsMoveOptions, context.Context) error) *cobra.Command {
	o := &sessionsMoveOptions{App: a}
	c := &cobra.Command{
		Use:   "move ID SERVER",
		Short: "Move one conversation to another server, which costs its cache",
		Long: `Move one conversation to another server, or to own. This is the only way in
which a conversation moves. What it costs is said first: the tokens to be read
again without cache, and what the other server will refuse or lacks.`,
		Args: exactArgs("ID", "SERVER"),
		RunE: runner(o, run, func(o *sessionsMoveOptions, args []string) { o.ID, o.Server = args[0], args[1] }),

		ValidArgsFunction: completeSessions(a, true),
	}
	c.Flags().StringVar(&o.Agent, "agent", "", "the agent, where two have such an id")
	c.Flags().BoolVar(&o.Yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *sessionsMoveOptions) run(ctx context.Context) error {
	client, _, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := o.session(ctx, client, o.Agent, o.ID)
	if err != nil {
		return err
	}
	if s.Server == o.Server || strings.HasPrefix(s.Server, o.Server+"/") { // of a pool it is a member
		if o.JSON {
			return o.json(s)
		}
		return o.say("%s %s is on %s already; nothing was moved", plain.Text(s.Agent), shownID(s.ID), plain.Text(o.Server))
	}
	price, err := client.MovePrice(ctx, s.Agent, s.ID, o.Server)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Move %s %s from %s to %s?", s.Agent, shownID(s.ID), price.From, price.To)
	if err := o.confirm(ctx, o.Yes, priceLines(price), question); err != nil {
		return err
	}
	moved, err := client.Move(ctx, s.Agent, s.ID, o.Server)
	if err != nil {
		return err
	}
	if o.JSON {
		return o.json(moved)
	}
	return o.say("%s %s is on %s from its next turn on", plain.Text(s.Agent), shownID(s.ID), plain.Text(moved.Server))
}

// priceLines says what a move costs, one line each.
func priceLines(p control.MovePrice) []string {
	lines := []string{fmt.Sprintf("%d tokens are read again without cache", p.Tokens)}
	if p.Tokens == 0 {
		lines[0] = "its whole context is read again without cache; how long it is is not known"
	}
	if p.Signed {
		lines = append(lines, fmt.Sprintf("it holds signed thinking or encrypted reasoning, which %s will refuse", p.To))
	}
	if p.ContextMax > 0 {
		verdict := "it fits"
		if p.Tokens > p.ContextMax {
			verdict = "it does not fit"
		}
		lines = append(lines, fmt.Sprintf("%s takes %d tokens: %s", p.To, p.ContextMax, verdict))
	}
	if p.MissingModel != "" {
		lines = append(lines, fmt.Sprintf("%s does not serve %s", p.To, p.MissingModel))
	}
	return append(lines, p.Warnings...)
}
