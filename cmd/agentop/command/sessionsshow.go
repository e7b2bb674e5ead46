package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentop/router/control"
	"agentop/tui/view"
)

// sessionsShowOptions is `agentop sessions show`.
type sessionsShowOptions struct {
	*App
	ID    string
	Agent string
	JSON  bool
}

func newSessionsShow(a *App, run func(*sessionsShowOptions, context.Context) error) *cobra.Command {
	o := &sessionsShowOptions{App: a}
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show one conversation, and why it is where it is",
		Long: `Show one conversation, and why it is where it is. The beginning of its id is
enough where no other begins so.`,
		Args: exactArgs("ID"),
		RunE: runner(o, run, func(o *sessionsShowOptions, args []string) { o.ID = args[0] }),

		ValidArgsFunction: completeSessions(a, false),
	}
	c.Flags().StringVar(&o.Agent, "agent", "", "the agent, where two have such an id")
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *sessionsShowOptions) run(ctx context.Context) error {
	client, _, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := o.session(ctx, client, o.Agent, o.ID)
	if err != nil {
		return err
	}
	s, err := client.Session(ctx, found.Agent, found.ID)
	if err != nil {
		return err
	}
	if o.JSON {
		return o.json(s)
	}
	saved := "on disk"
	if !s.Saved {
		saved = "in memory only"
	}
	resume, _ := view.Resume(s.Agent, s.ID, s.Dir) // "" if there is no such command
	return o.facts(
		"agent", s.Agent,
		"session", shownID(s.ID),
		"title", s.Title,
		"directory", s.Dir,
		"server", s.Server,
		"why here", s.Why,
		"pin", s.Pin+", "+saved,
		"state", o.state(&s),
		"opened", stamp(s.Opened),
		"last turn", stamp(s.LastTurn),
		"turns", number(s.Turns),
		"model asked", s.ModelAsked,
		"model sent", s.ModelSent,
		"context", contextText(&s),
		"tokens", tokens(&s),
		"first token", millis(s.FirstMS),
		"whole turn", millis(s.TotalMS),
		"signed thinking", map[bool]string{true: "yes: another server would refuse it"}[s.Signed],
		"last status", nonZero(s.Status),
		"last error", s.Error,
		"resume", resume,
	)
}

// stamp is a time for people and sorting alike, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// contextText is the size of the last input beside the model's limit.
func contextText(s *control.Session) string {
	if s.Context == 0 {
		return ""
	}
	text := fmt.Sprintf("%d tokens", s.Context)
	if s.ContextMax > 0 {
		text += fmt.Sprintf(" of %d (%d%%)", s.ContextMax, 100*s.Context/s.ContextMax)
	}
	return fmt.Sprintf("%s, %s from cache", text, cacheShare(s))
}

// tokens sums up the conversation's turns.
func tokens(s *control.Session) string {
	if s.Input == 0 && s.Output == 0 {
		return ""
	}
	return fmt.Sprintf("%d in, %d of them from cache, %d out", s.Input, s.CacheRead, s.Output)
}

func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return number(n)
}
