package preflight

import (
	"fmt"
	"slices"
	"strings"

	"agentop/agents"
	"agentop/agents/outline"
	"agentop/router/config"
)

// usual are the model names that each agent asks for unless it is told
// otherwise (seen with Claude Code 2.1.332 and Codex 0.171.0). OpenCode asks
// for what its user picked of a provider's list.
var usual = map[agents.Agent][]string{
	agents.ClaudeCode: {"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"},
	agents.Codex:      {"gpt-5-codex", "gpt-5"},
}

// Usual gives the names that an agent asks for unless it is told otherwise.
func Usual(agent string) []string { return slices.Clone(usual[agents.Agent(agent)]) }

// formatOf is the format that an agent speaks, where it speaks one only.
var formatOf = map[agents.Agent]outline.Format{
	agents.ClaudeCode: outline.Messages,
	agents.Codex:      outline.Responses,
}

// Asked is a name that an agent asks for.
type Asked struct {
	Agent string
	Model string
	// Seen says that it was asked for here, and is not only usual.
	Seen bool
}

// Name is what becomes of a name on a server.
type Name struct {
	Asked
	Sent   string // what is sent for it
	Served bool   // it is in the server's list, as far as there is one
}

// Names is what a server makes of the names that agents ask for.
type Names struct {
	All     []Name
	Missing []string        // names asked for that the server does not serve, sorted
	Rename  []config.Rename // lines that would help
	Trouble []string        // one line each
}

// Check compares the names that agents ask for with what the server serves,
// and proposes rename lines for those that it lacks. Without a list of models
// nothing is missing.
func Check(s *config.Server, a *Answer, asked []Asked) Names {
	var out Names
	var needy []string // agents whose names are missing
	broken := map[string]bool{}
	for _, q := range asked {
		sent, renamed := s.SendModel(q.Model)
		n := Name{Asked: q, Sent: sent, Served: !a.Listed || a.AnyName || a.Serves(sent)}
		out.All = append(out.All, n)
		switch {
		case n.Served, !q.Seen && !renamed && a.family(q.Model):
			// A server that serves the family knows better which of its
			// names are current.
		case renamed:
			if !broken[sent] {
				broken[sent] = true
				out.Trouble = append(out.Trouble, fmt.Sprintf("%s: its rename line for %s sends %s, which it does not serve; correct it in config.yaml", s.Name, q.Model, sent))
			}
		default:
			out.Missing = append(out.Missing, q.Model)
			needy = append(needy, q.Agent)
		}
	}
	slices.Sort(out.Missing)
	out.Missing = slices.Compact(out.Missing)
	if len(out.Missing) > 0 {
		out.Rename = propose(a, needy, out.Missing)
	}
	out.Trouble = append(out.Trouble, unspoken(s, a, asked)...)
	return out
}

// propose gives the lines of config.Propose that would catch a missing name,
// and where none does, one for the name alone.
func propose(a *Answer, needy, missing []string) []config.Rename {
	served := a.names()
	var special, lines []config.Rename
	proposals := config.Propose(served, known(needy)...)
	for _, name := range missing {
		if !slices.ContainsFunc(proposals, func(p config.Proposal) bool { return config.Match(p.Glob, name) }) {
			if near := config.Nearest(served, name); near != "" {
				special = append(special, config.Rename{Glob: name, Name: near})
			}
		}
	}
	for _, p := range proposals {
		if slices.ContainsFunc(missing, func(name string) bool { return config.Match(p.Glob, name) }) || helps(p, proposals, missing) {
			lines = append(lines, p.Rename)
		}
	}
	return slices.Concat(special, lines)
}

// Help is the rename line that would help where a server refused a name; false
// where none is known.
func Help(a *Answer, name string) (config.Rename, bool) {
	served := a.names()
	for _, p := range config.Propose(served) {
		if config.Match(p.Glob, name) {
			return p.Rename, true
		}
	}
	near := config.Nearest(served, name)
	return config.Rename{Glob: name, Name: near}, near != ""
}

func (a *Answer) names() []string {
	list := make([]string, len(a.Models))
	for i, m := range a.Models {
		list[i] = m.Name
	}
	return list
}

// helps keeps the line for the small models beside the general one: without
// it, the agent's background work would go to the large model.
func helps(p config.Proposal, all []config.Proposal, missing []string) bool {
	for _, other := range all {
		if other.Glob != p.Glob && config.Match(other.Glob, strings.ReplaceAll(p.Glob, "*", "")) {
			return slices.ContainsFunc(missing, func(name string) bool { return config.Match(other.Glob, name) })
		}
	}
	return false
}

// known turns agents into those that config.Propose knows; none if one of
// them may ask for anything.
func known(list []string) []string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	for _, agent := range list {
		if _, ok := usual[agents.Agent(agent)]; !ok && agents.Agent(agent) != agents.OpenCode {
			return nil
		}
	}
	return list
}

// unspoken says which agents could not talk to the server at all.
func unspoken(s *config.Server, a *Answer, asked []Asked) []string {
	if !a.FormatsTold {
		return nil
	}
	var list, told []string
	for _, q := range asked {
		f, ok := formatOf[agents.Agent(q.Agent)]
		if !ok || a.Speaks(f) || slices.Contains(told, q.Agent) {
			continue
		}
		told = append(told, q.Agent)
		list = append(list, fmt.Sprintf("%s: it does not speak %s, the format of %s; a gateway in front of it can translate (docs/servers.md)", s.Name, Word(f), q.Agent))
	}
	return list
}

// Serves says whether the server's list has the name.
func (a *Answer) Serves(name string) bool {
	for _, m := range a.Models {
		if sameModel(m.Name, name) || strings.Contains(m.Name, "*") && config.Match(m.Name, name) {
			return true
		}
	}
	return false
}

// family says whether the server serves names of the kind of name: claude-*
// where that is asked for.
func (a *Answer) family(name string) bool {
	kind, _, found := strings.Cut(name, "-")
	if !found {
		return false
	}
	for _, m := range a.Models {
		if strings.HasPrefix(m.Name, kind+"-") && !strings.HasPrefix(m.Name, "gpt-oss") {
			return true
		}
	}
	return false
}

// sameModel says whether a listed name answers to another: Ollama leaves
// ":latest" out, Anthropic the date of a release.
func sameModel(listed, name string) bool {
	if listed == name || listed == name+":latest" || name == listed+":latest" {
		return true
	}
	date, found := strings.CutPrefix(listed, name+"-")
	return found && len(date) == 8 && strings.Trim(date, "0123456789") == ""
}
