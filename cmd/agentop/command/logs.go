package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/home"
	"agentop/router/control"
	"agentop/router/reqlog"
)

// maxLogLines is the most that one `agentop logs` looks back.
const maxLogLines = 10_000

// logsOptions is `agentop logs`.
type logsOptions struct {
	*App
	Follow  bool
	Lines   int
	Agent   string
	Session string
	Server  string
	JSON    bool

	table *table
}

func newLogs(a *App, run func(*logsOptions, context.Context) error) *cobra.Command {
	o := &logsOptions{App: a, table: &table{header: []string{
		"TIME", "AGENT", "SESSION", "TURN", "SERVER", "STATUS", "FIRST", "TOTAL", "IN", "OUT", "MODEL", "ERROR",
	}}}
	c := &cobra.Command{
		Use:   "logs",
		Short: "Show the last requests, and with -f those to come",
		Long: `Show the last requests, and with -f those to come. --json prints one object a
line. Without a running proxy the log's files are read; what the proxy itself
has to say is in log/proxy.log.`,
		Args: noArgs,
		RunE: runner(o, run, nil),
	}
	f := c.Flags()
	f.BoolVarP(&o.Follow, "follow", "f", false, "go on until interrupted")
	f.IntVarP(&o.Lines, "lines", "n", 50, "how many of the last requests to look at")
	f.StringVar(&o.Agent, "agent", "", "only this agent's")
	f.StringVar(&o.Session, "session", "", "only conversations whose id begins so")
	f.StringVar(&o.Server, "server", "", "only those that went to this server (a name, pool/member or own)")
	f.BoolVar(&o.JSON, "json", false, "print JSON, one object a line")
	return c
}

func (o *logsOptions) run(ctx context.Context) error {
	if o.Lines < 0 || o.Lines > maxLogLines {
		return usagef("--lines is %d, not a number from 0 to %d", o.Lines, maxLogLines)
	}
	client, dir, err := o.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	if o.Follow {
		return o.follow(ctx, client)
	}
	requests, err := client.Requests(ctx, o.Lines)
	if errors.Is(err, control.ErrNotRunning) {
		requests, err = readRequests(ctx, dir, o.Lines)
	}
	if err != nil {
		return err
	}
	return o.print(requests)
}

// follow prints the last requests and then each that ends. It subscribes
// first, so that none is missed between the two; one that is told twice is
// printed once.
func (o *logsOptions) follow(ctx context.Context, client *control.Client) error {
	stream, err := client.Subscribe(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	last, err := client.Requests(ctx, o.Lines)
	if err != nil {
		return err
	}
	if err := o.print(last); err != nil {
		return err
	}
	printed := make(map[string]bool, len(last))
	for _, r := range last {
		printed[r.ID] = true
	}
	for {
		e, err := stream.Next()
		switch {
		case ctx.Err() != nil:
			return nil // interrupted: that is how following ends
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return hint(errors.New("the proxy has ended"), "`agentop logs` reads what it wrote")
		case err != nil:
			return fmt.Errorf("read the event stream: %w", err)
		case e.Kind != control.EventRequest || e.Request == nil:
			continue
		}
		if printed[e.Request.ID] {
			delete(printed, e.Request.ID)
			continue
		}
		if err := o.print([]control.Request{*e.Request}); err != nil {
			return err
		}
	}
}

// print writes the requests that the filters let through.
func (o *logsOptions) print(requests []control.Request) error {
	for _, r := range requests {
		switch {
		case o.Agent != "" && r.Agent != o.Agent,
			o.Server != "" && r.Server != o.Server && !strings.HasPrefix(r.Server, o.Server+"/"),
			o.Session != "" && !strings.HasPrefix(r.Session, o.Session) && !strings.HasPrefix(shownID(r.Session), o.Session):
			continue
		case o.JSON:
			if err := o.encode(r, ""); err != nil {
				return err
			}
			continue
		}
		turn := r.Turn
		if r.Side != "" && r.Side != "main" {
			turn += " " + r.Side
		}
		o.table.add(stamp(r.Time), r.Agent, shownID(r.Session), turn, r.Server, nonZero(r.Status),
			millis(r.FirstMS), millis(r.TotalMS), count(r.Input), count(r.Output), r.Model, r.Error)
	}
	if len(o.table.rows) == 0 {
		return nil
	}
	return o.table.print(o.App)
}

// readRequests reads the log's files when no proxy runs.
func readRequests(ctx context.Context, dir home.Home, lines int) ([]control.Request, error) {
	if lines == 0 {
		return nil, nil
	}
	found, err := reqlog.Tail(ctx, dir.LogDir(), lines, reqlog.Filter{Kind: reqlog.KindTurn})
	if err != nil {
		return nil, fmt.Errorf("read the request log: %w", err)
	}
	requests := make([]control.Request, len(found))
	for i, l := range found {
		requests[i] = control.Request{
			Time: l.Time, ID: l.ID, Agent: l.Agent, Session: l.Session, Turn: l.Turn, Side: l.Side, Pin: l.Pin,
			Server: l.Server, Method: l.Method, Path: l.Path, Model: l.ModelSent, Status: l.Status,
			Input: l.Input, Output: l.Output, FirstMS: l.FirstMS, TotalMS: l.TotalMS, Error: l.Error,
		}
		if requests[i].Model == "" {
			requests[i].Model = l.ModelAsked
		}
	}
	return requests, nil
}
