package command

import (
	"context"
	"errors"
	"fmt"

	"agentop/cmd/agentop/command/plain"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
	"agentop/router/control"
)

// addTo is where a server is added: to a running proxy, or to the files.
type addTo struct {
	o       *serverAddOptions
	client  *control.Client
	dir     home.Home
	running bool
}

func (t addTo) add(ctx context.Context, spec control.ServerSpec, there bool) (control.ServerChange, error) {
	if t.running {
		return t.client.AddServer(ctx, spec)
	}
	return addOffline(ctx, t.dir, spec, there)
}

// ask asks the server what it can do; nil when it could not be asked.
func (t addTo) ask(ctx context.Context) *control.Preflight {
	if t.running {
		found, err := t.client.Preflight(ctx, t.o.Name, nil)
		if err != nil {
			t.o.warn(fmt.Sprintf("%s could not be asked: %v", t.o.Name, err))
			return nil
		}
		return &found
	}
	c, err := readConfig(t.dir)
	if err != nil || t.o.Examine == nil {
		return nil
	}
	server, ok := c.Server(t.o.Name)
	if !ok {
		return nil
	}
	found := t.o.Examine(ctx, t.dir, server, Questions{})
	return &found
}

// rename offers the lines without which agents ask for models that the server
// does not have, and shows what becomes of each name. A no is no failure: the
// server is added.
func (o *serverAddOptions) rename(ctx context.Context, to addTo, spec control.ServerSpec, found *control.Preflight) error {
	if len(found.Rename) == 0 {
		if o.JSON || len(found.Models) == 0 { // nothing is known of its names
			return nil
		}
		return o.sayNames(found.Names, nil)
	}
	if !o.Yes && !o.InTerminal {
		return nil // tell has shown the line
	}
	stake := []string{notServed(*found),
		"rename: " + renameText(found.Rename)}
	for _, n := range found.Names {
		stake = append(stake, nameLine(n, found.Rename))
	}
	err := o.confirm(ctx, o.Yes, stake, "Write this rename line?")
	if errors.Is(err, errDeclined) {
		return o.say("no rename line was written; what agents ask for is sent as it is")
	}
	if err != nil {
		return err
	}
	spec.Secret, spec.Rename = "", found.Rename
	if _, err := to.add(ctx, spec, true); err != nil {
		return err
	}
	if o.JSON {
		return nil
	}
	return o.say("wrote the rename line of %s", plain.Text(found.Server))
}

// sayNames shows what becomes of the names that agents ask for.
func (o *serverAddOptions) sayNames(names []control.Name, lines []control.Rename) error {
	for _, n := range names {
		if err := o.say("%s", plain.Text(nameLine(n, lines))); err != nil {
			return err
		}
	}
	return nil
}

// nameLine says what is sent for one name, with lines after those that are
// there.
func nameLine(n control.Name, lines []control.Rename) string {
	sent := n.Sent
	if sent == n.Asked {
		for _, line := range lines {
			if config.Match(line.Glob, n.Asked) {
				sent = line.Name
				break
			}
		}
	}
	if sent == n.Asked {
		return fmt.Sprintf("%s: %s is sent as it is", n.Agent, n.Asked)
	}
	return fmt.Sprintf("%s: %s -> %s", n.Agent, n.Asked, sent)
}
