package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Proposal is a rename line that a server probably needs, with the reason.
type Proposal struct {
	Rename
	Why string // one line, for the person who is asked
}

// proposalRules are the names that agents ask for unless they are told
// otherwise: by which glob, for which agents, and whether a small model will
// do. More special globs come first, since the first match wins.
var proposalRules = []struct {
	glob   string
	family string // a server that serves such names needs no line
	small  bool
	agents []string
}{
	{"claude-*haiku*", "claude-", true, []string{"claude-code", "opencode"}},
	{"claude-*", "claude-", false, []string{"claude-code", "opencode"}},
	{"gpt-*", "gpt-", false, []string{"codex", "opencode"}},
}

// Propose gives the rename lines that let agents work with a server that
// serves models, in the order in which they must stand. agents limits them to
// what those agents ask for; none means all. It proposes nothing for a family
// of names that the server serves itself (claude-*, gpt-*), and nothing for an
// empty list. The same list in another order gives the same lines.
func Propose(models []string, agents ...string) []Proposal {
	usable := slices.DeleteFunc(slices.Clone(models), func(m string) bool { return checkTarget(m) != nil || notForChat(m) })
	slices.Sort(usable)
	usable = slices.Compact(usable)
	if len(usable) == 0 {
		return nil
	}
	large, small := pick(usable)
	var list []Proposal
	for _, rule := range proposalRules {
		if len(agents) > 0 && !slices.ContainsFunc(rule.agents, func(a string) bool { return slices.Contains(agents, a) }) {
			continue
		}
		if slices.ContainsFunc(models, func(m string) bool { return inFamily(m, rule.family) }) {
			continue
		}
		name, why := large, "the largest of its models, as far as names tell"
		if rule.small {
			name, why = small, "the smallest of its models, as far as names tell"
		}
		if len(usable) == 1 {
			why = "its only model"
		}
		list = append(list, Proposal{Rename{rule.glob, name}, fmt.Sprintf("%s is not served there; %s is %s", rule.glob, name, why)})
	}
	return withoutShadowed(list)
}

// inFamily says whether a model's name is of a family of names. The open
// models gpt-oss are not what Codex asks for as gpt-*.
func inFamily(model, family string) bool {
	return strings.HasPrefix(model, family) && !strings.HasPrefix(model, "gpt-oss")
}

// withoutShadowed drops a special line that says what a later, more general
// one says too.
func withoutShadowed(list []Proposal) []Proposal {
	return slices.DeleteFunc(list, func(p Proposal) bool {
		return p.Glob == "claude-*haiku*" && slices.ContainsFunc(list, func(other Proposal) bool {
			return other.Glob == "claude-*" && other.Name == p.Name
		})
	})
}

// pick chooses by what the names say: first the marks of small models, then
// the count of parameters, then the version, then the alphabet.
func pick(sorted []string) (large, small string) {
	order := slices.Clone(sorted)
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(smallMarks(b), smallMarks(a)),
			cmp.Compare(parameters(a), parameters(b)),
			compareVersions(version(a), version(b)),
			cmp.Compare(len(b), len(a)), // "glm-5" before "glm-5-preview" as the larger
			cmp.Compare(b, a),
		)
	})
	large, small = order[len(order)-1], order[0]
	// Of equally small ones the newest is wanted.
	for _, m := range order[1:] {
		if smallMarks(m) != smallMarks(small) || parameters(m) != parameters(small) {
			break
		}
		if smallMarks(m) > 0 {
			small = m
		}
	}
	return large, small
}

var smallWords = regexp.MustCompile(`(?i)(^|[^a-z])(haiku|mini|nano|air|flash|flashx|lite|small|tiny|fast|micro|turbo|instant)([^a-z]|$)`)

func smallMarks(name string) int {
	if smallWords.MatchString(name) {
		return 1
	}
	return 0
}

var parameterCount = regexp.MustCompile(`(?i)(?:^|[^0-9a-z.])([0-9]+(?:\.[0-9]+)?)b(?:[^a-z]|$)`)

// parameters reads the billions out of names such as qwen3-coder-30b-a3b. A
// name without them says nothing and counts as large.
func parameters(name string) float64 {
	most := 0.0
	for _, found := range parameterCount.FindAllStringSubmatch(name, -1) {
		if n, err := strconv.ParseFloat(found[1], 64); err == nil {
			most = max(most, n)
		}
	}
	if most == 0 {
		return 1e9
	}
	return most
}

var numbers = regexp.MustCompile(`[0-9]+`)

// version gives a name's numbers in order: glm-4.6 is before glm-5.
func version(name string) []int {
	var list []int
	for _, digits := range numbers.FindAllString(name[strings.LastIndexByte(name, '/')+1:], 4) {
		n, err := strconv.Atoi(digits)
		if err == nil && n < 10_000 { // dates are no versions
			list = append(list, n)
		}
	}
	return list
}

func compareVersions(a, b []int) int { return slices.Compare(a, b) }

var otherUses = regexp.MustCompile(`(?i)(embed|rerank|whisper|tts|image|dall|moderation|guard|bge-|clip|speech|audio|ocr)`)

// notForChat finds models that hold no conversation.
func notForChat(name string) bool { return otherUses.MatchString(name) }
