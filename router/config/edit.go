package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The edits change a configuration's text and nothing in it but what they are
// asked for: comments, order and layout of every other line stay. Each is a
// pure function, safe for concurrent use. Each result has been parsed again,
// and compared with what was wanted, before it is returned; data that does
// not parse is refused with Parse's errors, and a layout that cannot be
// followed with ErrLayout. Doing an edit again gives the same bytes. data is
// never changed, but may be returned.

// usualName is the configuration's, which errors of the edits mention.
const usualName = "config.yaml"

// CheckServer says whether s can stand in a configuration, and gives it in the
// form in which Parse would. The errors have no positions.
func CheckServer(s Server) (Server, error) {
	entry := pair{s.Name, value{pairs: serverPairs(s), block: true}}
	parsed, err := Parse("", []byte("servers:\n"+entry.lines(2, 2, "\n")))
	if err != nil {
		return Server{}, withoutPositions(err)
	}
	return parsed.Servers[0], nil
}

func withoutPositions(err error) error {
	var list Errors
	if !errors.As(err, &list) {
		return err
	}
	for _, e := range list {
		e.Line, e.Column = 0, 0
	}
	return list
}

// AddServer writes a server at the end of the servers, or in the place of the
// one that has its name: only the fields that differ are touched then.
func AddServer(data []byte, s Server) ([]byte, error) {
	s, err := CheckServer(s)
	if err != nil {
		return nil, err
	}
	return edit(data, func(want *Config, out []byte) ([]byte, error) {
		old, found := want.Server(s.Name)
		if !found {
			want.Servers = append(want.Servers, s)
			return set(out, value{pairs: serverPairs(s), block: true}, "servers", s.Name)
		}
		before := *old
		*old = s
		return changeServer(out, before, s)
	})
}

// RemoveServer takes a server out, and out of the choice of every agent that
// has it. A server that is not there is no error.
func RemoveServer(data []byte, name string) ([]byte, error) {
	return edit(data, func(want *Config, out []byte) ([]byte, error) {
		if _, found := want.Server(name); !found {
			return out, nil
		}
		var err error
		for _, agent := range want.AgentsOf(name) {
			if out, err = choose(want, out, agent, ""); err != nil {
				return nil, err
			}
		}
		want.Servers = slices.DeleteFunc(want.Servers, func(s Server) bool { return s.Name == name })
		if len(want.Servers) == 0 {
			want.Servers = nil
		}
		return remove(out, "servers", name)
	})
}

// UseServer routes an agent's new conversations to a server.
func UseServer(data []byte, agent, server string) ([]byte, error) {
	if err := CheckAgent(agent); err != nil {
		return nil, err
	}
	return edit(data, func(want *Config, out []byte) ([]byte, error) {
		if _, found := want.Server(server); !found {
			return nil, noServer(server)
		}
		return choose(want, out, agent, server)
	})
}

// ResetServer ends an agent's routing: its new conversations go to its own
// upstream.
func ResetServer(data []byte, agent string) ([]byte, error) {
	return edit(data, func(want *Config, out []byte) ([]byte, error) {
		if want.Agents[agent].Server == "" {
			return out, nil
		}
		return choose(want, out, agent, "")
	})
}

// SetUpstream writes an agent's own upstream: a URL, "none", or "" to go back
// to the usual one. provider is OpenCode's provider path segment where the
// agent has one upstream for each; "" means the one for all, and with
// upstream "" or "none" all of them.
func SetUpstream(data []byte, agent, provider, upstream string) ([]byte, error) {
	if err := CheckAgent(agent); err != nil {
		return nil, err
	}
	if upstream != "" && upstream != "none" {
		clean, err := CheckURL(upstream)
		if err != nil {
			return nil, err
		}
		upstream = clean
	}
	return edit(data, func(want *Config, out []byte) ([]byte, error) {
		choice, known := want.Agents[agent]
		changed, err := withUpstream(choice, provider, upstream)
		if err != nil {
			return nil, err
		}
		if !known && changed.Upstream == nil && !changed.UpstreamNone {
			return out, nil
		}
		want.Agents[agent] = changed
		return writeUpstream(out, agent, choice, changed)
	})
}

// withUpstream gives the choice that SetUpstream is to lead to.
func withUpstream(c Choice, provider, upstream string) (Choice, error) {
	switch {
	case provider == "" && upstream == "none":
		c.Upstream, c.UpstreamNone = nil, true
	case provider == "" && upstream == "":
		c.Upstream, c.UpstreamNone = nil, false
	case provider == "":
		c.Upstream, c.UpstreamNone = map[string]string{"": upstream}, false
	case upstream == "none":
		return c, &Error{Reason: "none is for all providers of an agent", Instead: "give none without a provider"}
	case c.Upstream[""] != "":
		return c, &Error{Reason: "the agent has one upstream for all its providers", Instead: "remove that first"}
	case upstream == "":
		c.Upstream = maps.Clone(c.Upstream)
		if delete(c.Upstream, provider); len(c.Upstream) == 0 {
			c.Upstream = nil
		}
	default:
		c.Upstream = maps.Clone(c.Upstream)
		if c.Upstream == nil {
			c.Upstream = map[string]string{}
		}
		c.Upstream[provider], c.UpstreamNone = upstream, false
	}
	return c, nil
}

func writeUpstream(out []byte, agent string, before, after Choice) ([]byte, error) {
	switch {
	case before.UpstreamNone == after.UpstreamNone && maps.Equal(before.Upstream, after.Upstream):
		return out, nil
	case after.UpstreamNone:
		return set(out, text("none"), "agents", agent, "upstream")
	case after.Upstream == nil:
		return remove(out, "agents", agent, "upstream")
	case after.Upstream[""] != "":
		return set(out, text(after.Upstream[""]), "agents", agent, "upstream")
	case before.Upstream == nil || before.Upstream[""] != "":
		all := value{pairs: []pair{}}
		for _, provider := range slices.Sorted(maps.Keys(after.Upstream)) {
			all.pairs = append(all.pairs, pair{provider, text(after.Upstream[provider])})
		}
		return set(out, value{pairs: all.pairs}, "agents", agent, "upstream")
	}
	var err error
	for _, provider := range slices.Sorted(maps.Keys(before.Upstream)) {
		if _, kept := after.Upstream[provider]; !kept {
			if out, err = remove(out, "agents", agent, "upstream", provider); err != nil {
				return nil, err
			}
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(after.Upstream)) {
		if before.Upstream[provider] != after.Upstream[provider] {
			if out, err = set(out, text(after.Upstream[provider]), "agents", agent, "upstream", provider); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func choose(want *Config, out []byte, agent, server string) ([]byte, error) {
	c, known := want.Agents[agent]
	if known && c.Server == server {
		return out, nil
	}
	c.Server = server
	want.Agents[agent] = c
	return set(out, text(server), "agents", agent, "server")
}

func noServer(name string) error {
	return fmt.Errorf("server %q: %w; `agentop server list` shows those there are", name, ErrNoServer)
}

// edit runs one edit and proves it. change alters want, a copy of the
// configuration, as the edit is meant, and returns the text that should mean
// the same.
func edit(data []byte, change func(want *Config, out []byte) ([]byte, error)) ([]byte, error) {
	before, err := Parse(usualName, data)
	if err != nil {
		return nil, err
	}
	want := before.clone()
	out, err := change(want, data)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(out, data) && Equal(before, want) {
		return data, nil
	}
	if _, err := newSource(out); err != nil {
		return nil, fmt.Errorf("%w: write the change by hand", ErrLayout)
	}
	got, err := Parse(usualName, out)
	if err != nil {
		return nil, withoutPositions(err)
	}
	if !Equal(got, want) {
		return nil, fmt.Errorf("%w: write the change by hand", ErrLayout)
	}
	return out, nil
}

// serverPairs writes a server's fields, those with the default left out. The
// key source is always written: it is what people look for.
func serverPairs(s Server) []pair {
	var list []pair
	add := func(present bool, name string, v value) {
		if present {
			list = append(list, pair{name, v})
		}
	}
	add(s.URL != "", "url", text(s.URL))
	add(true, "key", keyValue(s.Key))
	add(len(s.Rename) > 0, "rename", value{pairs: renamePairs(s.Rename)})
	add(s.StripV1, "v1", word("strip"))
	add(s.KeepBillingBlock, "keep_billing_block", word("on"))
	add(s.SessionHeader != "", "session_header", text(s.SessionHeader))
	add(len(s.Pool) > 0, "pool", value{list: poolValues(s.Pool)})
	add(len(s.Pool) > 0 && s.Headroom != 0 && s.Headroom != DefaultHeadroom, "headroom", number(s.Headroom))
	add(s.CAFile != "", "ca_file", text(s.CAFile))
	add(s.InsecureSkipVerify, "insecure_skip_verify", word("on"))
	add(s.FirstByteTimeout != 0, "first_byte_timeout", text(s.FirstByteTimeout.String()))
	return list
}

func number(f float64) value { return word(strconv.FormatFloat(f, 'g', -1, 64)) }

func renamePairs(lines []Rename) []pair {
	list := make([]pair, len(lines))
	for i, r := range lines {
		list[i] = pair{r.Glob, text(r.Name)}
	}
	return list
}

func poolValues(pool []Member) []value {
	list := make([]value, len(pool))
	for i, m := range pool {
		pairs := []pair{{"url", text(m.URL)}}
		if m.Capacity != 0 {
			pairs = append(pairs, pair{"capacity", word(strconv.Itoa(m.Capacity))})
		}
		if m.Cost != DefaultCost && m.Cost != 0 {
			pairs = append(pairs, pair{"cost", number(m.Cost)})
		}
		list[i] = value{pairs: pairs}
	}
	return list
}

func keyValue(k KeySource) value {
	if k.Kind != KeyCommand {
		return text(k.String())
	}
	argv := value{list: []value{}}
	for _, arg := range k.Command {
		argv.list = append(argv.list, text(arg))
	}
	if short := "command:" + argv.inline(true); isPlain(short, false) && !strings.ContainsAny(short, `'"`) {
		return text(short)
	}
	return value{pairs: []pair{{"command", argv}}}
}

// changeServer writes what differs between two servers of one name.
func changeServer(out []byte, before, after Server) ([]byte, error) {
	olds, news := serverPairs(before), serverPairs(after)
	var err error
	for _, p := range news {
		i := slices.IndexFunc(olds, func(o pair) bool { return o.key == p.key })
		switch {
		case i >= 0 && olds[i].value.inline(true) == p.value.inline(true):
			continue
		case p.key == "rename":
			out, err = changeRename(out, after.Name, before.Rename, after.Rename)
		default:
			out, err = set(out, p.value, "servers", after.Name, p.key)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, o := range olds {
		if slices.ContainsFunc(news, func(p pair) bool { return o.key == p.key }) {
			continue
		}
		if usual, found := usualWords[o.key]; found {
			out, err = set(out, word(usual), "servers", after.Name, o.key)
		} else {
			out, err = remove(out, "servers", after.Name, o.key)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// usualWords are written where a field goes back to its default, so that its
// line stays, with its comment.
var usualWords = map[string]string{"v1": "keep", "keep_billing_block": "off", "insecure_skip_verify": "off", "first_byte_timeout": "off"}

// changeRename goes line by line where the order of the lines that stay
// allows it, so that their comments stay too.
func changeRename(out []byte, server string, before, after []Rename) ([]byte, error) {
	path := []string{"servers", server, "rename"}
	if len(after) == 0 {
		return remove(out, path...)
	}
	kept := slices.DeleteFunc(globsOf(before), func(g string) bool { return !slices.Contains(globsOf(after), g) })
	same := slices.DeleteFunc(globsOf(after), func(g string) bool { return !slices.Contains(kept, g) })
	if len(kept) == 0 || !slices.Equal(kept, same) {
		return set(out, value{pairs: renamePairs(after)}, path...)
	}
	var err error
	for _, r := range before {
		if !slices.Contains(kept, r.Glob) {
			if out, err = remove(out, append(path, r.Glob)...); err != nil {
				return nil, err
			}
		}
	}
	for i, r := range after {
		if out, err = changeRenameLine(out, path, i, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// changeRenameLine brings the i-th line into place, those before it being in
// place.
func changeRenameLine(out []byte, path []string, i int, r Rename) ([]byte, error) {
	s, err := newSource(out)
	if err != nil {
		return nil, err
	}
	m := s.at(path...)
	if m == nil || m.Kind != yaml.MappingNode {
		return nil, ErrLayout
	}
	at, count := find(m, r.Glob)
	if at < 0 {
		return s.insert(m, min(i, count), pair{r.Glob, text(r.Name)})
	}
	if _, val := entry(m, at); val.Value == r.Name {
		return out, nil
	}
	return s.replace(m, at, text(r.Name))
}

func globsOf(lines []Rename) []string {
	list := make([]string, len(lines))
	for i, r := range lines {
		list[i] = r.Glob
	}
	return list
}
