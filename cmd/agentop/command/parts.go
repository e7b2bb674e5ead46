package command

import (
	"context"
	"fmt"

	"agentop/cmd/agentop/demo"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/worker"
)

// runProxy joins the command to the worker that serves.
func runProxy(ctx context.Context, o ProxyOptions) error {
	return worker.Run(ctx, worker.Options{
		Home: o.Home, Version: o.Version, Stderr: o.Stderr,
		Ready: func(addresses []string) {
			_, _ = fmt.Fprintf(o.Stderr, "agentop serves on %s\n", addresses)
		},
	})
}

// runDemo joins the command to the demonstration.
func runDemo(ctx context.Context, o DemoOptions) error {
	show := func(ctx context.Context, dir home.Home) error { return demo.List(ctx, dir, o.Stdout) }
	if o.Terminal {
		show = func(ctx context.Context, dir home.Home) error { return runScreen(ctx, dir, demoHello) }
	}
	return demo.Run(ctx, demo.Options{Version: o.Version, Out: o.Stdout, Show: show})
}

// demoHello is what the demo's screen begins with.
const demoHello = "This is a demo: two built-in servers, a few scripted conversations. s switches an agent, ? lists the keys; w shows the line with which a real claude joins in."
