package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"agentop/agents/setup"
	"agentop/cmd/agentop/home"
	"agentop/router/config"
)

// agentSetup edits the agents' settings files for the proxy that config.yaml
// describes. A configuration that is not valid is returned as an error beside
// a setup with the default address: enough to undo.
func (a *App) agentSetup(dir home.Home) (*setup.Setup, error) {
	c, err := readConfig(dir)
	if err != nil {
		c = config.Default()
	}
	work, _ := os.Getwd() // without it project settings are not looked at
	return &setup.Setup{
		Dir:   dir.AgentsDir(),
		World: setup.World{Getenv: a.Getenv, Home: a.userHome(), Work: work},
		Proxy: setup.Proxy{Listen: c.Listen, Token: c.Token},
		By:    a.Build.Version,
		Now:   a.Now,
	}, err
}

// userHome is the user's home directory.
func (a *App) userHome() string {
	if dir := a.Getenv("HOME"); dir != "" {
		return dir
	}
	dir, _ := os.UserHomeDir() // then the agents' files are not found, which is said
	return dir
}

// routeHeader is on every response that has gone through agentop.
const routeHeader = "X-Agentop-Route"

// leadsBack says whether an address on this machine is agentop's, or another
// router's that goes on to agentop: as an own upstream it would be a circle.
func leadsBack(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, path := range []string{"", "/v1/models"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, strings.TrimRight(address, "/")+path, nil)
		if err != nil {
			return false
		}
		client := http.Client{
			Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		res, err := client.Do(req)
		if err != nil {
			continue // nobody there: no circle
		}
		_ = res.Body.Close()
		if res.Header.Get(routeHeader) != "" {
			return true
		}
	}
	return false
}

// checkUpstreams refuses what cannot be an own upstream, and asks about other
// routers on this machine.
func (a *App) checkUpstreams(ctx context.Context, p *setup.Plan, yes bool) error {
	for _, u := range p.Upstreams {
		if _, err := config.CheckURL(u.Address); err != nil {
			return hint(fmt.Errorf("the base URL in %s cannot be taken over as %s's own upstream: %w", u.From, p.Agent, err),
				"correct it there, and enable again")
		}
		if !u.Router {
			continue
		}
		if leadsBack(ctx, u.Address) {
			return hint(fmt.Errorf("%s in %s leads back to agentop: it cannot be %s's own upstream", u.Address, u.From, p.Agent),
				"point that router elsewhere, or take the address out")
		}
		stake := fmt.Sprintf("%s is set in %s: another router on this machine. It becomes %s's own upstream: what is not sent to a server of yours goes there.", u.Address, u.From, p.Agent)
		if err := a.confirm(ctx, yes, []string{stake}, "Keep it so?"); err != nil {
			return err
		}
	}
	return nil
}

// adopt writes the addresses that an agent used before into config.yaml, ahead
// of the edit that takes their place.
func (a *App) adopt(dir home.Home, p *setup.Plan) error {
	if len(p.Upstreams) == 0 {
		return nil
	}
	c, err := readConfig(dir)
	if err != nil {
		return err
	}
	if c.Agents[p.Agent].UpstreamNone {
		a.warn(fmt.Sprintf("config.yaml says `upstream: none` for %s, so the address that it used is not taken over", p.Agent))
		return nil
	}
	upstreams := p.Upstreams
	if one := c.Agents[p.Agent].Upstream[""]; one != "" && upstreams[0].Provider != "" {
		a.warn(fmt.Sprintf("config.yaml has one upstream for all providers of %s; it is written for each of them", p.Agent))
		upstreams = forEach(p, one)
	}
	return editConfig(dir, func(data []byte) ([]byte, error) {
		for _, u := range upstreams {
			next, err := config.SetUpstream(data, p.Agent, u.Provider, u.Address)
			if err != nil {
				return nil, fmt.Errorf("take over %s's own upstream: %w", p.Agent, err)
			}
			data = next
		}
		return data, nil
	})
}

// forEach takes apart the one upstream that config.yaml has for all providers
// of an agent: those that had an address of their own keep that.
func forEach(p *setup.Plan, one string) []setup.Upstream {
	all := []setup.Upstream{{}} // clears the one
	for _, id := range p.Moved {
		if !slices.ContainsFunc(p.Upstreams, func(u setup.Upstream) bool { return u.Provider == id }) {
			all = append(all, setup.Upstream{Provider: id, Address: one})
		}
	}
	return append(all, p.Upstreams...)
}

// byHand says how an agent is pointed at agentop that agentop cannot edit.
func (a *App) byHand(s *setup.Setup, agent string) error {
	for _, line := range s.ByHand(agent) {
		if err := a.say("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// wrapSetup adds what to do to the errors of agents/setup.
func wrapSetup(agent string, err error) error {
	var bad *setup.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return hint(err, "correct the file: the agent does not read it either")
	case errors.Is(err, setup.ErrLocked):
		return hint(err, "wait for the other command, or look for it with `ps`")
	case errors.Is(err, setup.ErrNewerRecord):
		return hint(err, "`agentop agent disable "+agent+"` works with any version; then enable again")
	case errors.Is(err, setup.ErrStronger):
		return hint(err, "whoever manages that file must point it at agentop")
	}
	return err
}
