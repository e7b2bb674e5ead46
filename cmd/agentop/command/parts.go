package command

import (
	"context"

	"agentop/cmd/agentop/demo"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/worker"
	"agentop/router/config"
	"agentop/router/control"
)

// examine joins the commands to the questions that the proxy asks of servers.
func examine(version string) func(context.Context, home.Home, *config.Server, Questions) control.Preflight {
	return func(ctx context.Context, dir home.Home, s *config.Server, q Questions) control.Preflight {
		return worker.Examine(ctx, s, worker.Examination{Home: dir, Version: version, Agents: q.Agents, Speed: q.Speed})
	}
}

// runDemo joins the command to the demonstration.
func runDemo(ctx context.Context, o DemoOptions) error {
	show := func(ctx context.Context, dir home.Home) error { return demo.List(ctx, dir, o.Stdout) }
	if o.Terminal {
		show = func(ctx context.Context, dir home.Home) error {
			return runScreen(ctx, Build{Version: o.Version}, dir, demoHello)
		}
	}
	return demo.Run(ctx, demo.Options{Version: o.Version, Out: o.Stdout, Show: show})
}

// demoHello is what the demo's screen begins with.
const demoHello = "A demo with scripted conversations: s switches an agent, w shows how a real claude joins in."
