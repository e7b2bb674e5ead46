package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/router/control"
)

// List shows the demo as plain text, anew whenever something has changed and
// at most once a second, until ctx is done. It is the screen where no
// terminal UI can be shown.
func List(ctx context.Context, dir home.Home, out io.Writer) error {
	api := client(dir)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := ""
	for {
		status, err := api.Status(ctx)
		if err == nil {
			var sessions []control.Session
			if sessions, err = api.Sessions(ctx); err == nil {
				if text := page(status, sessions); text != last {
					fmt.Fprintln(out, text)
					last = text
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// page is one state of the demo as text.
func page(status control.Status, sessions []control.Session) string {
	var b strings.Builder
	for _, a := range status.Agents {
		fmt.Fprintf(&b, "new %-12s -> %s\n", a.Agent, a.Server)
	}
	for _, s := range status.Servers {
		fmt.Fprintf(&b, "%-6s %-8s %2d running %2d streaming\n", s.Name, s.Health.State, s.Running, s.Streams)
	}
	for _, s := range sessions {
		state := "idle"
		if s.Streams > 0 {
			state = "streaming"
		}
		fmt.Fprintf(&b, "  %-12s %-6s turn %2d  %-9s  %s\n", s.Agent, s.Server, s.Turns, state, s.Title)
	}
	return b.String()
}
