package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentop/router/config"
	"agentop/router/control"
)

// serverLimit bounds how long all servers together may take.
const serverLimit = 10 * time.Second

// checkServers looks whether each server's key is there and whether it
// answers, all at once.
func (d *Doctor) checkServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	answers := make([][]Finding, len(d.Config.Servers))
	var all sync.WaitGroup
	for i := range d.Config.Servers {
		all.Go(func() { answers[i] = d.server(ctx, &d.Config.Servers[i]) })
	}
	all.Wait()
	for _, found := range answers {
		d.found = append(d.found, found...)
	}
	if len(answers) == 0 {
		d.note("servers", "no server is configured: every conversation goes to its agent's own upstream", "agentop server add NAME URL")
	}
}

// server looks at one server.
func (d *Doctor) server(ctx context.Context, s *config.Server) []Finding {
	check := "server " + s.Name
	test := "agentop server test " + s.Name
	if d.Key != nil {
		if err := d.Key(ctx, s); err != nil {
			return []Finding{{Check: check, Level: Wrong, Text: err.Error(), Fix: keyFix(s)}}
		}
	}
	if d.Ask == nil {
		return []Finding{dial(ctx, s, check, test)}
	}
	p := d.Ask(ctx, s)
	found := answered(check, test, s, &p)
	if p.Up {
		found = append(found, d.models(check, test, s, &p)...)
	}
	return found
}

// models tells of the names that the server refused, and of those that agents
// which are set to it ask for and it does not serve, with the rename line that
// would help.
func (d *Doctor) models(check, test string, s *config.Server, p *control.Preflight) []Finding {
	var found []Finding
	for _, running := range d.status.Servers {
		for _, w := range running.Warnings {
			if running.Name == s.Name {
				found = append(found, Finding{Check: check, Level: Note, Text: w, Fix: test})
			}
		}
	}
	if len(found) > 0 {
		return found // a refused name is missing too
	}
	var missing []string
	lines := map[string]string{}
	for _, n := range p.Names {
		if d.Config.Agents[n.Agent].Server != s.Name || !slices.Contains(p.Missing, n.Asked) {
			continue
		}
		missing = append(missing, n.Asked)
		for _, line := range p.Rename {
			if config.Match(line.Glob, n.Asked) {
				lines[line.Glob] = line.Name
				break
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fix := test
	if len(lines) > 0 {
		var parts []string
		for _, line := range p.Rename { // in their order: the first match wins
			if lines[line.Glob] != "" {
				parts = append(parts, fmt.Sprintf("%q: %s", line.Glob, line.Name))
			}
		}
		fix = fmt.Sprintf("write under %s in config.yaml: rename: {%s}", s.Name, strings.Join(parts, ", "))
	}
	text := "these names are asked for and not served: " + strings.Join(missing, ", ")
	return []Finding{{Check: check, Level: Note, Text: text, Fix: fix}}
}

// keyFix is the command that gives a server its key.
func keyFix(s *config.Server) string {
	switch s.Key.Kind {
	case config.KeyEnv:
		return "export " + s.Key.Env + "=... where the proxy starts, then agentop service restart"
	case config.KeyCommand:
		return "run the command of its key by hand: agentop config path names the file"
	}
	return "agentop server add " + s.Name + " " + s.URL
}

// answered makes findings of what a server said. A line's own mention of the
// server is left out: each finding names it.
func answered(check, test string, s *config.Server, p *control.Preflight) []Finding {
	var lines []string
	for _, w := range p.Warnings {
		lines = append(lines, strings.TrimPrefix(w, s.Name+": "))
	}
	refused := p.KeyOK != nil && !*p.KeyOK
	if !p.Up {
		return []Finding{{Check: check, Level: Wrong, Text: cmp.Or(strings.Join(lines, "; "), "it does not answer"), Fix: test}}
	}
	var found []Finding
	if refused && len(lines) == 0 {
		lines = []string{"it refuses the key"}
	}
	for i, line := range lines {
		f := Finding{Check: check, Level: Note, Text: line, Fix: test}
		if refused && i == 0 { // the one to mend first
			f.Level, f.Fix = Wrong, keyFix(s)
		}
		found = append(found, f)
	}
	if len(found) == 0 {
		found = append(found, Finding{Check: check, Level: OK, Text: "it answers"})
	}
	return found
}

// dial only looks whether somebody is there.
func dial(ctx context.Context, s *config.Server, check, test string) Finding {
	addresses := []string{s.URL}
	for _, m := range s.Pool {
		addresses = append(addresses, m.URL)
	}
	for _, address := range addresses {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
		if err != nil {
			return Finding{Check: check, Level: Wrong, Text: fmt.Sprintf("%s cannot be reached: %v", address, err), Fix: test}
		}
		_ = conn.Close() // only whether somebody is there
	}
	return Finding{Check: check, Level: OK, Text: "it can be reached"}
}
