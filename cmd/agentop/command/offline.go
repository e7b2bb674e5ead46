package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"agentop/agents"
	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/worker"
	"agentop/router/config"
	"agentop/router/control"
)

// knownAgents are those that lists show even when config.yaml does not name
// them.
var knownAgents = agents.Known()

// readConfig reads and checks config.yaml; a missing file is the default
// configuration.
func readConfig(dir home.Home) (*config.Config, error) {
	data, err := os.ReadFile(dir.Config())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return config.Parse(dir.Config(), data)
}

// editConfig changes config.yaml when no proxy runs that would.
func editConfig(dir home.Home, change func([]byte) ([]byte, error)) error {
	if err := dir.Create(); err != nil {
		return err
	}
	return config.Edit(dir.Config(), change)
}

// examineOffline asks a server what it can do when no proxy runs that would.
func (a *App) examineOffline(ctx context.Context, dir home.Home, name string, q Questions) (control.Preflight, error) {
	c, err := readConfig(dir)
	if err != nil {
		return control.Preflight{}, err
	}
	server, ok := c.Server(name)
	if !ok {
		s := statusOf(dir, c, nil)
		return control.Preflight{}, unknownServer(&s, name)
	}
	return a.Examine(ctx, dir, server, q), nil
}

// statusOf tells of a configuration what the proxy would if it ran. What only
// a running proxy knows is left at zero.
func statusOf(dir home.Home, c *config.Config, bad error) control.Status {
	s := control.Status{Home: dir.String(), ConfigFile: dir.Config()}
	if bad != nil {
		s.ConfigError = bad.Error()
	}
	if c == nil {
		return s
	}
	s.Warnings = c.Warnings()
	for _, name := range worker.AgentNames(c) {
		s.Agents = append(s.Agents, worker.DescribeAgent(c, name))
	}
	for i := range c.Servers {
		s.Servers = append(s.Servers, worker.DescribeServer(&c.Servers[i]))
	}
	return s
}
