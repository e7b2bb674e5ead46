package command

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"agentop/agents/setup"
	"agentop/cmd/agentop/home"
	"agentop/tui/view"
)

// Setups implements tui.Pointer.
func (s *screenSource) Setups(context.Context) ([]view.Setup, error) {
	a := s.quiet(nil, nil)
	known, err := a.agentSetup(s.home)
	if known == nil {
		return nil, err
	}
	list := make([]view.Setup, 0, len(setup.Agents))
	for _, name := range setup.Agents {
		st := known.Status(name)
		v := view.Setup{Agent: name, Pointed: st.State == setup.StateOn || st.State == setup.StatePartly, Detail: string(st.State)}
		if st.File != "" && st.Exists {
			v.Detail += ", " + st.File
		}
		if st.Error != "" {
			v.Detail += ": " + st.Error
		}
		list = append(list, v)
	}
	return list, nil
}

// Plan implements tui.Pointer.
func (s *screenSource) Plan(ctx context.Context, agent string, on bool) ([]string, error) {
	if !on {
		return s.command(ctx, "agent", "disable", agent, "--dry-run")
	}
	return s.command(ctx, "agent", "enable", agent, "--dry-run")
}

// Point implements tui.Pointer. The user has seen the plan and said yes.
func (s *screenSource) Point(ctx context.Context, agent string, on bool) ([]string, error) {
	if !on {
		return s.command(ctx, "agent", "disable", agent)
	}
	return s.command(ctx, "agent", "enable", agent, "--yes")
}

// command runs a command as a shell would, without a terminal to ask on, and
// returns what it said. The screen thus does what the command line does, with
// the same checks.
func (s *screenSource) command(ctx context.Context, args ...string) ([]string, error) {
	var out, errs bytes.Buffer
	code := s.quiet(&out, &errs).execute(ctx, args)
	said := strings.TrimSpace(errs.String())
	if code != ExitOK {
		first, rest, _ := strings.Cut(said, "\n")
		err := errors.New(strings.TrimPrefix(first, "agentop: "))
		if h, found := strings.CutPrefix(strings.TrimSpace(rest), "agentop: hint: "); found {
			return nil, hint(err, h)
		}
		return nil, err
	}
	text := strings.TrimSpace(out.String())
	if said != "" {
		text += "\n" + said
	}
	return strings.Split(strings.TrimSpace(text), "\n"), nil
}

// quiet is this process's App without its terminal, for the screen's home.
func (s *screenSource) quiet(out, errs *bytes.Buffer) *App {
	a := newApp(s.build)
	a.In, a.Out, a.Err = strings.NewReader(""), out, errs
	a.InTerminal, a.OutTerminal, a.Width = false, false, 0
	outer := a.Getenv
	a.Getenv = func(name string) string {
		if name == home.EnvName {
			return s.home.String()
		}
		return outer(name)
	}
	return a
}
