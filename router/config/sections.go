package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

func (p *parser) servers(n *yaml.Node, c *Config) {
	for _, entry := range p.entries(n, "servers") {
		key, value := entry[0], entry[1]
		if bad := checkName("server", key.Value, reservedServers); bad != nil {
			p.fail(key, bad)
		}
		s := Server{Name: key.Value, Key: KeySource{Kind: KeyNone}}
		what := fmt.Sprintf("server %q", clip(key.Value))
		before := len(p.errs)
		found := decode(p, value, what, serverFields, &s)
		switch {
		case len(p.errs) > before: // one cause, one message
		case found["url"] == nil && found["pool"] == nil:
			p.fail(key, &problem{what + " has no url", "write `url: https://host` under it, or a pool"})
		case found["url"] != nil && found["pool"] != nil:
			p.fail(found["pool"], &problem{what + " has both url and pool", "keep one of them; a pool's members have urls of their own"})
		case found["headroom"] != nil && found["pool"] == nil:
			p.fail(found["headroom"], &problem{what + " has headroom but no pool", "remove it, or write the members as a pool"})
		}
		if s.Pool != nil && s.Headroom == 0 {
			s.Headroom = DefaultHeadroom
		}
		c.Servers = append(c.Servers, s)
	}
}

func (p *parser) pool(n *yaml.Node, s *Server) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fail(n, &problem{"a pool must be a list of members", "write it as [{url: http://gpu1:8000, capacity: 16}, {url: http://gpu2:8000}]"})
		return
	}
	for _, item := range n.Content {
		m := Member{Cost: DefaultCost}
		before := len(p.errs)
		found := decode(p, item, "a member of a pool", memberFields, &m)
		if found["url"] == nil && len(p.errs) == before {
			p.fail(item, &problem{"this member has no url", "write it as {url: http://gpu1:8000, capacity: 16}"})
		}
		same := func(other Member) bool { return other.URL == m.URL }
		if m.URL != "" && slices.ContainsFunc(s.Pool, same) {
			p.fail(item, &problem{fmt.Sprintf("%s is in this pool twice", m.URL), "remove one and give the other the sum of the capacities"})
		}
		s.Pool = append(s.Pool, m)
	}
	nameMembers(s.Pool)
}

// nameMembers gives each member the shortest of host, host:port and
// host:port with the path that no other member has, so that a name changes
// only with its own address or when a second member comes to the same host.
func nameMembers(pool []Member) {
	forms := []func(u *url.URL) string{
		func(u *url.URL) string { return u.Hostname() },
		func(u *url.URL) string { return u.Host },
		func(u *url.URL) string { return u.Host + strings.ReplaceAll(u.EscapedPath(), "/", ".") },
		func(u *url.URL) string {
			return u.Scheme + "." + u.Host + strings.ReplaceAll(u.EscapedPath(), "/", ".")
		},
	}
	for _, form := range forms {
		uses := map[string]int{}
		names := make([]string, len(pool))
		for i := range pool {
			if u, err := url.Parse(pool[i].URL); err == nil {
				names[i] = form(u)
			}
			uses[names[i]]++
		}
		for i := range pool {
			if pool[i].Name == "" && uses[names[i]] == 1 {
				pool[i].Name = names[i]
			}
		}
	}
}

func (p *parser) rename(n *yaml.Node, s *Server) {
	for _, entry := range p.entries(n, "rename") {
		glob, value := entry[0], entry[1]
		if bad := checkGlob(glob.Value); bad != nil {
			p.fail(glob, bad)
			continue
		}
		if value.Kind != yaml.ScalarNode {
			p.fail(value, &problem{"a model name must be text", `write a rename line as "claude-*": name`})
			continue
		}
		name := value.Value
		if isNull(value) {
			name = ""
		}
		if bad := checkTarget(name); bad != nil {
			p.fail(value, bad)
			continue
		}
		s.Rename = append(s.Rename, Rename{Glob: glob.Value, Name: name})
	}
}

func (p *parser) agents(n *yaml.Node, c *Config) {
	for _, entry := range p.entries(n, "agents") {
		key, value := entry[0], entry[1]
		if bad := checkName("agent", key.Value, reservedAgents); bad != nil {
			p.fail(key, bad)
			continue
		}
		one := choice{agent: key.Value}
		decode(p, value, fmt.Sprintf("agent %q", key.Value), agentFields, &one)
		p.choices = append(p.choices, one)
		c.Agents[key.Value] = one.Choice
	}
}

// splitUpstreams are the agents that have more than one own upstream, with
// the names that theirs can have; nil = any.
var splitUpstreams = map[string][]string{"opencode": nil, "codex": {"openai", "chatgpt"}}

func (p *parser) upstream(n *yaml.Node, c *choice) {
	if n.Kind != yaml.MappingNode {
		text, ok := p.text(n)
		if ok && strings.TrimSpace(text) == "none" {
			c.UpstreamNone = true
			return
		}
		var address string
		if setWith(p, n, &address, checkURL); address != "" {
			c.Upstream = map[string]string{"": address}
		}
		return
	}
	allowed, split := splitUpstreams[c.agent]
	if !split {
		p.fail(n, &problem{fmt.Sprintf("agent %q has one upstream", c.agent), "write `upstream: https://host`"})
		return
	}
	for _, entry := range p.entries(n, "upstream") {
		provider, value := entry[0], entry[1]
		if bad := checkName("provider", provider.Value, nil); bad != nil {
			p.fail(provider, bad)
			continue
		}
		if allowed != nil && !slices.Contains(allowed, provider.Value) {
			p.fail(provider, &problem{fmt.Sprintf("agent %q has no upstream %q", c.agent, provider.Value), "possible here: " + strings.Join(allowed, ", ")})
			continue
		}
		var address string
		if setWith(p, value, &address, checkURL); address != "" {
			if c.Upstream == nil {
				c.Upstream = map[string]string{}
			}
			c.Upstream[provider.Value] = address
		}
	}
}

// check looks at what only the whole configuration can tell.
func (p *parser) check() {
	names := make([]string, len(p.config.Servers))
	for i, s := range p.config.Servers {
		names[i] = s.Name
	}
	for _, one := range p.choices {
		if one.Server == "" || slices.Contains(names, one.Server) {
			continue
		}
		bad := &problem{reason: fmt.Sprintf("agent %q names the server %q, which is not configured", one.agent, clip(one.Server))}
		switch near := nearest(one.Server, names); {
		case near != "":
			bad.instead = fmt.Sprintf("did you mean %q?", near)
		case len(names) > 0:
			bad.instead = "choose one of " + strings.Join(names, ", ") + `, or "" for none`
		default:
			bad.instead = `add it under servers, or write "" for none`
		}
		p.fail(one.node, bad)
	}
}

// Warnings lists what is allowed and still deserves a word, one line each,
// the same at every call.
func (c *Config) Warnings() []string {
	var list []string
	for i := range c.Servers {
		list = append(list, c.Servers[i].warnings()...)
	}
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		choice := c.Agents[agent]
		if choice.UpstreamNone && choice.Server == "" {
			list = append(list, fmt.Sprintf("agent %s has neither a server nor an upstream: choose one with `agentop server use NAME --agent %s`", agent, agent))
		}
	}
	return list
}
