package command

import (
	"context"
	"errors"

	"agentop/cmd/agentop/supervise"
	"agentop/router/control"
)

// The values of overview.Proxy.
const (
	proxyRunning = "running"
	proxyStopped = "not running"
)

// overview is the state of the proxy, or of its configuration when it does not
// run. It is what `status --json` prints.
type overview struct {
	Proxy  string         `json:"proxy"`  // running or not running
	Binary string         `json:"binary"` // version of this command; Status.Version is the proxy's
	Status control.Status `json:"status"`
	// Down is set when a supervisor has the home, but no worker that serves.
	Down *down `json:"down,omitempty"`
}

// down is a proxy that answers every request with why it cannot serve.
type down struct {
	PID   int    `json:"pid"`
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

func (o *overview) running() bool { return o.Proxy == proxyRunning }

// overview asks the proxy, and reads config.yaml when none answers. A
// configuration that is not valid is part of the answer, not an error.
func (a *App) overview(ctx context.Context) (*overview, error) {
	client, dir, err := a.dial()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err == nil {
		return &overview{Proxy: proxyRunning, Binary: a.Build.Version, Status: status}, nil
	}
	if !errors.Is(err, control.ErrNotRunning) {
		return nil, err
	}
	c, bad := readConfig(dir)
	view := &overview{Proxy: proxyStopped, Binary: a.Build.Version, Status: statusOf(dir, c, bad)}
	if holder, held := supervise.Find(dir); held {
		view.Down = &down{PID: holder.PID, Error: holder.Trouble, Hint: holder.Cure}
	}
	return view, nil
}
