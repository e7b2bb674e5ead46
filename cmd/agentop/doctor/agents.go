package doctor

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentop/agents/setup"
)

// checkAgents looks at each agent's settings, and at whether its requests
// arrive.
func (d *Doctor) checkAgents(ctx context.Context) {
	if d.Setup == nil {
		return
	}
	for _, agent := range setup.Agents {
		d.agent(ctx, agent)
	}
}

func (d *Doctor) agent(ctx context.Context, agent string) {
	s := d.Setup.Status(agent)
	check := "agent " + agent
	on := s.State == setup.StateOn || s.State == setup.StatePartly
	for _, t := range s.Trouble {
		if s.State == setup.StateBroken || on || s.State == setup.StateStale {
			d.wrong(check, t.Text, t.Fix)
		}
	}
	d.deadAddresses(check, &s)
	if on && agent == "claude-code" && d.ProgramVersion != nil {
		for _, lost := range d.Setup.Losses(d.ProgramVersion(ctx, agent)) {
			what, fix, _ := strings.Cut(lost, ": ")
			d.note(check, what, fix)
		}
	}
	if on && d.Elsewhere != nil {
		if text := d.Elsewhere(agent, s.Enabled); text != "" {
			d.note(check, text, "restart them")
		}
	}
	switch {
	case on && !d.up:
		d.wrong(check, "it is pointed at agentop, and no proxy serves: it gets no answers", d.serveCommand()+", or agentop agent disable "+agent)
	case on && !d.seen(agent, s.Enabled):
		d.note(check, "it is enabled, and no request of it has arrived yet", "agentop agent status "+agent+" --probe")
	case on:
		d.ok(check, "it is enabled, and its requests arrive")
	case s.State == setup.StateOff && d.Program != nil && d.Program(agent) != "":
		d.note(check, "it is installed, and not enabled", "agentop agent enable "+agent)
	}
}

// seen says whether a request of the agent has arrived since it was enabled.
func (d *Doctor) seen(agent string, since time.Time) bool {
	for _, a := range d.status.Agents {
		if a.Agent == agent {
			return !a.LastSeen.IsZero() && !a.LastSeen.Before(since)
		}
	}
	return false
}

// deadAddresses finds settings that point at a router on this machine that is
// gone.
func (d *Doctor) deadAddresses(check string, s *setup.Status) {
	for _, k := range s.Keys {
		if k.Ours {
			continue
		}
		if address, local := localAddress(k.Value); local && !listens(address) {
			d.wrong(check, fmt.Sprintf("%s in %s is %s, where nobody answers", k.Path, s.File, k.Value), "start that program, or agentop agent enable "+s.Agent)
		}
	}
}

// localAddress is the host and port of a URL on this machine.
func localAddress(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Port() == "" {
		return "", false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Host, u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func listens(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close() // only whether somebody is there
	return true
}

// checkEnvironment looks at this shell: base URLs that are exported, and
// proxies on the way to servers.
func (d *Doctor) checkEnvironment() {
	wrong := false
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"} {
		value := d.Getenv(name)
		if value == "" || d.Setup != nil && d.Setup.Proxy.Here(value) {
			continue
		}
		address, local := localAddress(value)
		switch {
		case local && !listens(address):
			wrong = true
			d.wrong("environment", name+" is exported as an address on this machine where nobody answers", "unset "+name+", and take it out of your shell's profile")
		default:
			d.note("environment", name+" is exported: an agent without a base URL in its settings goes there and not to agentop", "unset "+name)
		}
	}
	d.checkHTTPProxy()
	for _, agent := range d.upstreams() {
		if address, local := localAddress(agent.address); local {
			if listens(address) {
				d.note("environment", fmt.Sprintf("%s's own upstream is another router on this machine: %s", agent.name, agent.address), "agentop agent status "+agent.name)
				continue
			}
			wrong = true
			d.wrong("environment", fmt.Sprintf("%s's own upstream %s is on this machine, and nobody answers there", agent.name, agent.address), "start it, or correct `upstream` in "+d.Home.Config())
		}
	}
	if !wrong {
		d.ok("environment", "no exported address leads nowhere")
	}
}

type named struct{ name, address string }

// upstreams are the own upstreams that config.yaml names.
func (d *Doctor) upstreams() []named {
	var list []named
	for agent, choice := range d.Config.Agents {
		for _, address := range choice.Upstream {
			list = append(list, named{agent, address})
		}
	}
	slices.SortFunc(list, func(a, b named) int { return strings.Compare(a.name+a.address, b.name+b.address) })
	return list
}

// checkHTTPProxy looks whether a proxy variable catches loopback addresses.
func (d *Doctor) checkHTTPProxy() {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if d.Getenv(name) == "" {
			continue
		}
		list := d.Getenv("no_proxy")
		if list == "" {
			list = d.Getenv("NO_PROXY")
		}
		if full := setup.WithLoopback(list); full != list {
			d.note("environment", name+" is set and NO_PROXY lacks this machine's own addresses: a program may send agentop's requests there, credential included", "export NO_PROXY="+full+" no_proxy="+full)
		} else {
			d.note("environment", name+" is set: a proxy started from this shell reaches servers through it, the login service may not", "agentop server test NAME")
		}
		return
	}
}
