package command

import (
	"context"

	"github.com/spf13/cobra"
)

// proxyOptions is `agentop proxy`.
type proxyOptions struct{ *App }

func newProxy(a *App) *cobra.Command {
	o := &proxyOptions{App: a}
	return &cobra.Command{
		Use:   "proxy",
		Short: "Run the proxy in the foreground",
		Long: `Run the proxy in the foreground. An interrupt lets running streams finish; a
second one ends it at once.`,
		Args: noArgs,
		RunE: runner(o, (*proxyOptions).run, nil),
	}
}

func (o *proxyOptions) run(ctx context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	return o.Proxy(ctx, ProxyOptions{Home: dir, Version: o.Build.Version, Stderr: o.Err})
}
