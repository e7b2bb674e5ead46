package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/router/control"
)

// newSessions is `agentop sessions`, by itself the list.
func newSessions(a *App) *cobra.Command {
	o := &sessionsListOptions{App: a}
	c := &cobra.Command{
		Use:     "sessions",
		Aliases: []string{"session"},
		Short:   "List conversations, show why one is where it is, move or forget one",
		Args:    noArgs,
		RunE:    runner(o, (*sessionsListOptions).run, nil),
	}
	o.flags(c)
	c.AddCommand(
		newSessionsList(a, (*sessionsListOptions).run),
		newSessionsShow(a, (*sessionsShowOptions).run),
		newSessionsForget(a, (*sessionsForgetOptions).run),
		newSessionsMove(a, (*sessionsMoveOptions).run),
	)
	return c
}

// sessionsListOptions is `agentop sessions list`.
type sessionsListOptions struct {
	*App
	All    bool
	Agent  string
	Server string
	JSON   bool
}

func newSessionsList(a *App, run func(*sessionsListOptions, context.Context) error) *cobra.Command {
	o := &sessionsListOptions{App: a}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the running conversations, newest turn first",
		Long: `List the running conversations, newest turn first. Running means: a main turn
within the last 24 hours, or a stream now.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	o.flags(c)
	return c
}

func (o *sessionsListOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.All, "all", false, "also those that are not running")
	f.StringVar(&o.Agent, "agent", "", "only this agent's")
	f.StringVar(&o.Server, "server", "", "only those on this server (a name, pool/member or own)")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
}

func (o *sessionsListOptions) run(ctx context.Context) error {
	client, _, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	all, err := client.Sessions(ctx)
	if err != nil {
		return err
	}
	shown, older := o.choose(all)
	if o.JSON {
		return o.json(list(shown))
	}
	finishes := finishing(ctx, client)
	t := &table{header: []string{"AGENT", "SESSION", "SERVER", "STATE", "TURNS", "CONTEXT", "CACHED", "MODEL", "TITLE"}}
	for _, s := range shown {
		state := o.state(&s)
		if s.Streams == 0 && finishes[control.Streaming{Agent: s.Agent, ID: s.ID}] {
			state = "finishing"
		}
		t.add(s.Agent, shownID(s.ID), s.Server, state, number(s.Turns), count(s.Context), cacheShare(&s), model(&s), s.Title)
	}
	if len(shown) > 0 || !o.OutTerminal {
		if err := t.print(o.App); err != nil {
			return err
		}
	} else if err := o.say("no running conversations"); err != nil {
		return err
	}
	if older > 0 && o.OutTerminal {
		return o.say("%s not running: --all shows them", plural(older, "conversation"))
	}
	return nil
}

// finishing are the conversations that a worker answers that was replaced.
func finishing(ctx context.Context, client *control.Client) map[control.Streaming]bool {
	set := map[control.Streaming]bool{}
	status, _ := client.Status(ctx) // without it none is marked
	for _, d := range status.Draining {
		for _, s := range d.Sessions {
			set[s] = true
		}
	}
	return set
}

// choose gives the sessions to list and how many were left out for not
// running.
func (o *sessionsListOptions) choose(all []control.Session) (shown []control.Session, older int) {
	for _, s := range all {
		switch {
		case o.Agent != "" && s.Agent != o.Agent:
		case o.Server != "" && s.Server != o.Server && !strings.HasPrefix(s.Server, o.Server+"/"):
		case !o.All && !s.Running:
			older++
		default:
			shown = append(shown, s)
		}
	}
	return shown, older
}

// state says what a conversation is doing: streaming, or idle for how long.
func (a *App) state(s *control.Session) string {
	switch {
	case s.Streams > 0:
		return "streaming"
	case s.LastTurn.IsZero():
		return "idle"
	}
	return "idle " + a.since(s.LastTurn)
}

// cacheShare is the part of the context that was read from cache.
func cacheShare(s *control.Session) string {
	if s.Context == 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", 100*s.Cached/s.Context)
}

// model is the name that was sent, with the one asked for if it differs.
func model(s *control.Session) string {
	if s.ModelSent == "" || s.ModelSent == s.ModelAsked {
		return s.ModelAsked
	}
	return s.ModelAsked + " as " + s.ModelSent
}

// shownID is an id as it is printed and typed: the control character in front
// of an id that agentop made up is left out.
func shownID(id string) string { return plain.Text(strings.TrimPrefix(id, "\x01")) }

// find gives the one conversation whose id begins with prefix; a whole id
// wins over longer ones.
func findSession(all []control.Session, agent, prefix string) (control.Session, error) {
	var found []control.Session
	whole := 0
	for _, s := range all {
		if agent != "" && s.Agent != agent {
			continue
		}
		shown := shownID(s.ID)
		switch {
		case s.ID == prefix || shown == prefix:
			found = append([]control.Session{s}, found...)
			whole++
		case strings.HasPrefix(shown, prefix) || strings.HasPrefix(s.ID, prefix):
			found = append(found, s)
		}
	}
	if len(found) == 1 || whole == 1 {
		return found[0], nil
	}
	if len(found) == 0 {
		return control.Session{}, hint(fmt.Errorf("no conversation's id begins with %q", prefix),
			"`agentop sessions list --all` lists them")
	}
	names := make([]string, 0, 5)
	for _, s := range found[:min(len(found), cap(names))] {
		names = append(names, s.Agent+" "+shownID(s.ID))
	}
	err := fmt.Errorf("%d conversations' ids begin with %q: %s", len(found), prefix, short(names, 4))
	if whole > 1 {
		return control.Session{}, hint(err, "name the agent with --agent")
	}
	return control.Session{}, hint(err, "give more of the id, or --agent")
}

// session finds the conversation that a command line names.
func (a *App) session(ctx context.Context, client *control.Client, agent, prefix string) (control.Session, error) {
	if prefix == "" {
		return control.Session{}, usageError{errors.New("the session id is empty")}
	}
	all, err := client.Sessions(ctx)
	if err != nil {
		return control.Session{}, err
	}
	return findSession(all, agent, prefix)
}
