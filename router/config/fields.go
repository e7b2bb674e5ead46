package config

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// Field is what config.yaml may hold in one place. The table of fields is the
// one source of the checks, of their messages and of the reference.
type Field struct {
	Path    string // with NAME, AGENT and [] where a name or an index stands: "servers.NAME.url"
	Type    string // in words: "URL", "on or off"
	Default string // as it would be written; "" = there is none
	Example string // as it would be written
	Doc     string // one or two sentences
}

// Fields lists every field of config.yaml in the order in which a reference
// would show them.
func Fields() []Field {
	var all []Field
	for _, f := range topFields {
		all = append(all, f.Field)
		switch f.Path {
		case "servers":
			for _, s := range serverFields {
				all = append(all, s.Field)
				if s.Path == "servers.NAME.pool" {
					all = append(all, pathsOf(memberFields)...)
				}
			}
		case "agents":
			all = append(all, pathsOf(agentFields)...)
		}
	}
	return slices.Clip(all)
}

func pathsOf[T any](fields []field[T]) []Field {
	list := make([]Field, len(fields))
	for i, f := range fields {
		list[i] = f.Field
	}
	return list
}

// field joins what a field is with how it is read into a T. set is called
// with the value's node, never with an empty value.
type field[T any] struct {
	Field
	set func(p *parser, n *yaml.Node, to *T)
}

var topFields = []field[Config]{
	{Field{"listen", "host:port on this machine", DefaultListen, "127.0.0.1:4780",
		"Where the proxy listens. Only loopback addresses are allowed; both 127.0.0.1 and [::1] are bound."},
		func(p *parser, n *yaml.Node, c *Config) { setWith(p, n, &c.Listen, checkListen) }},
	{Field{"servers", "names with their servers", "", "{glm: {url: https://glm.example.com, key: stored}}",
		"The inference servers. A server's name is its identity: conversations are pinned to it."},
		(*parser).servers},
	{Field{"agents", "names with their choices", "", "{claude-code: {server: glm}}",
		"What is chosen for each coding agent: claude-code, codex, opencode, qwen-code, or any other name used as the first path segment."},
		(*parser).agents},
	{Field{"max_body", "size", "256 MB", "512 MB",
		"The largest request body that is taken. A larger one is answered 413."},
		func(p *parser, n *yaml.Node, c *Config) { setWith(p, n, &c.MaxBody, checkSize) }},
	{Field{"titles", "on or off", "on", "off",
		"Whether conversations are shown with their titles, which hold words of the user's."},
		func(p *parser, n *yaml.Node, c *Config) { setWith(p, n, &c.Titles, checkBool) }},
	{Field{"token", "secret path segment", "", "a-long-random-text",
		"A secret first path segment that every request must have, for systems that cannot tell which user connects."},
		func(p *parser, n *yaml.Node, c *Config) { setWith(p, n, &c.Token, checkToken) }},
}

var serverFields = []field[Server]{
	{Field{"servers.NAME.url", "URL", "", "https://glm.example.com",
		"The server's address. A path prefix is allowed; user information, a query and a fragment are not."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.URL, checkURL) }},
	{Field{"servers.NAME.key", "key source", "none", "stored",
		"Where its key comes from: stored (keys.json), env:NAME, keychain, command:[program, argument], client (the agent's own credential is passed on) or none. Never the key itself."},
		func(p *parser, n *yaml.Node, s *Server) { p.keySource(n, &s.Key) }},
	{Field{"servers.NAME.rename", "patterns with names", "", `{"claude-*haiku*": glm-air, "claude-*": glm-5}`,
		"Model names to send instead of those asked for. * stands for any text, ? for one character; the first match wins."},
		func(p *parser, n *yaml.Node, s *Server) { p.rename(n, s) }},
	{Field{"servers.NAME.v1", "keep or strip", "keep", "strip",
		"strip: this server's paths have no /v1."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.StripV1, checkV1) }},
	{Field{"servers.NAME.keep_billing_block", "on or off", "off", "on",
		"Whether Claude Code's billing block, which changes with every request, is left in the system prompt."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.KeepBillingBlock, checkBool) }},
	{Field{"servers.NAME.session_header", "header name", "", "x-dynamo-session-id",
		"A header that tells a router behind this address which conversation a request belongs to."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.SessionHeader, checkHeader) }},
	{Field{"servers.NAME.pool", "list of members", "", "[{url: http://gpu1:8000, capacity: 16}, {url: http://gpu2:8000}]",
		"Several machines that serve the same models, in the place of url."},
		func(p *parser, n *yaml.Node, s *Server) { p.pool(n, s) }},
	{Field{"servers.NAME.headroom", "number from 1", "2", "3",
		"A conversation changes to another member only if that has this many times the room."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.Headroom, checkHeadroom) }},
	{Field{"servers.NAME.ca_file", "file", "", "~/certificates/lab.pem",
		"Certificates, in PEM, that are trusted for this server besides the system's."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.CAFile, checkFile) }},
	{Field{"servers.NAME.insecure_skip_verify", "on or off", "off", "on",
		"Whether any certificate is taken. Whoever is on the way can then read everything, the key too."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.InsecureSkipVerify, checkBool) }},
	{Field{"servers.NAME.first_byte_timeout", "duration", "off", "90s",
		"How long the server may take to begin its answer."},
		func(p *parser, n *yaml.Node, s *Server) { setWith(p, n, &s.FirstByteTimeout, checkDuration) }},
}

var memberFields = []field[Member]{
	{Field{"servers.NAME.pool[].url", "URL", "", "http://gpu1:8000", "The machine's address."},
		func(p *parser, n *yaml.Node, m *Member) { setWith(p, n, &m.URL, checkURL) }},
	{Field{"servers.NAME.pool[].capacity", "whole number", "0", "16",
		"How many requests it serves at once; 0 when that is not known."},
		func(p *parser, n *yaml.Node, m *Member) { setWith(p, n, &m.Capacity, checkCapacity) }},
	{Field{"servers.NAME.pool[].cost", "number over 0", "1", "2", "The cheapest member with room is preferred."},
		func(p *parser, n *yaml.Node, m *Member) { setWith(p, n, &m.Cost, checkCost) }},
}

var agentFields = []field[choice]{
	{Field{"agents.AGENT.server", "a server's name", `""`, "glm",
		"Where its new conversations go; \"\" when it is not routed. Running conversations stay where they are."},
		func(p *parser, n *yaml.Node, c *choice) {
			if text, ok := p.text(n); ok {
				c.Server, c.node = text, n
			}
		}},
	{Field{"agents.AGENT.upstream", "URL, none, or URLs by provider", "", "{anthropic: https://gw.example.com}",
		"Where the agent would go without agentop. Left out: its usual place. none: there is no such place, so everything goes to the chosen server."},
		func(p *parser, n *yaml.Node, c *choice) { p.upstream(n, c) }},
}
