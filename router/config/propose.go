package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	class  string // a line of its own only where the family is served under other names
	agents []string
}{
	{"claude-*haiku*", "claude-", true, "haiku", []string{"claude-code", "opencode"}},
	{"claude-*sonnet*", "claude-", false, "sonnet", []string{"claude-code", "opencode"}},
	{"claude-*", "claude-", false, "", []string{"claude-code", "opencode"}},
	{"gpt-*codex*", "gpt-", false, "codex", []string{"codex", "opencode"}},
	{"gpt-*", "gpt-", false, "", []string{"codex", "opencode"}},
}

// Propose gives the rename lines that let agents work with a server that
// serves models, in the order in which they must stand. agents limits them to
// what those agents ask for; none means all. It proposes nothing for a family
// of names that the server serves itself (claude-*, gpt-*), and nothing for an
// empty list. Where it serves the family under names of its own
// (anthropic/claude-opus-5.5), the lines lead to those. The same list in
// another order gives the same lines.
func Propose(models []string, agents ...string) []Proposal {
	usable := usableModels(models)
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
		switch kin := relatives(usable, rule.family); {
		case len(kin) > 0:
			if name = newest(kin, rule.class); name == "" {
				continue
			}
			why = "the newest of that kind under its own names, as far as names tell"
		case rule.small:
			name, why = small, "the smallest of its models, as far as names tell"
		case rule.class != "":
			continue
		}
		if len(usable) == 1 {
			why = "its only model"
		}
		list = append(list, Proposal{Rename{rule.glob, name}, fmt.Sprintf("%s is not served there; %s is %s", rule.glob, name, why)})
	}
	return withoutShadowed(list)
}

// Nearest gives the served model that is most like one that an agent asks for
// and the server does not have: the same under another way of writing, else
// the newest of its class, else of its family. It is "" where no model is of
// the family, or the server has the name itself.
func Nearest(models []string, asked string) string {
	family, _, found := strings.Cut(asked, "-")
	if !found || slices.Contains(models, asked) {
		return ""
	}
	family += "-"
	var kin []string
	for _, m := range usableModels(models) {
		if inFamily(m, family) || inFamily(familyName(m, family), family) {
			kin = append(kin, m)
		}
	}
	for _, m := range kin {
		if sameWriting(familyName(m, family), asked) {
			return m
		}
	}
	for _, rule := range proposalRules {
		if rule.family == family && rule.class != "" && strings.Contains(asked, rule.class) {
			if name := newest(kin, rule.class); name != "" {
				return name
			}
		}
	}
	return newest(kin, "")
}

// usableModels are the models that hold a conversation and whose names can
// stand in config.yaml, sorted.
func usableModels(models []string) []string {
	list := slices.DeleteFunc(slices.Clone(models), func(m string) bool { return checkTarget(m) != nil || notForChat(m) })
	slices.Sort(list)
	return slices.Compact(list)
}

// inFamily says whether a model's name is of a family of names. The open
// models gpt-oss are not what Codex asks for as gpt-*.
func inFamily(model, family string) bool {
	return strings.HasPrefix(model, family) && !strings.HasPrefix(model, "gpt-oss")
}

// familyName is a model's name from its family's on, without what a gateway
// has put in front: a vendor ("anthropic/"), a region ("us.anthropic."). ""
// where the family is not in it.
func familyName(model, family string) string {
	at := strings.LastIndex(model, family)
	if at < 0 || at > 0 && strings.IndexByte("/.:@", model[at-1]) < 0 {
		return ""
	}
	return model[at:]
}

// relatives are the models of a family that have something in front of its
// name.
func relatives(sorted []string, family string) []string {
	var kin []string
	for _, m := range sorted {
		if name := familyName(m, family); name != m && inFamily(name, family) {
			kin = append(kin, m)
		}
	}
	return kin
}

// newest is the newest of a class, or of the large ones where class is "".
func newest(kin []string, class string) string {
	want := func(m string) bool { return strings.Contains(m, class) }
	if class == "" {
		want = func(m string) bool { return strings.Contains(m, "opus") }
		if !slices.ContainsFunc(kin, want) {
			want = func(m string) bool { return smallMarks(m) == 0 }
		}
		if !slices.ContainsFunc(kin, want) {
			want = func(string) bool { return true }
		}
	}
	list := slices.DeleteFunc(slices.Clone(kin), func(m string) bool { return !want(m) })
	if len(list) == 0 {
		return ""
	}
	large, _ := pick(list)
	return large
}

var releaseDate = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-20[0-9]{6}$`) })

// sameWriting says whether two names differ by a release's date or by dots for
// dashes alone.
func sameWriting(a, b string) bool {
	plain := func(name string) string {
		return releaseDate().ReplaceAllString(strings.ReplaceAll(name, ".", "-"), "")
	}
	return plain(a) == plain(b)
}

// withoutShadowed drops a special line that says what a later, more general
// one says too.
func withoutShadowed(list []Proposal) []Proposal {
	return slices.DeleteFunc(slices.Clone(list), func(p Proposal) bool {
		return slices.ContainsFunc(list, func(other Proposal) bool {
			return other.Glob != p.Glob && other.Name == p.Name && Match(other.Glob, strings.ReplaceAll(p.Glob, "*", ""))
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

var smallWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|[^a-z])(haiku|mini|nano|air|flash|flashx|lite|small|tiny|fast|micro|turbo|instant)([^a-z]|$)`)
})

func smallMarks(name string) int {
	if smallWords().MatchString(name) {
		return 1
	}
	return 0
}

var parameterCount = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^0-9a-z.])([0-9]+(?:\.[0-9]+)?)b(?:[^a-z]|$)`)
})

// parameters reads the billions out of names such as qwen3-coder-30b-a3b. A
// name without them says nothing and counts as large.
func parameters(name string) float64 {
	most := 0.0
	for _, found := range parameterCount().FindAllStringSubmatch(name, -1) {
		if n, err := strconv.ParseFloat(found[1], 64); err == nil {
			most = max(most, n)
		}
	}
	if most == 0 {
		return 1e9
	}
	return most
}

var numbers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+`) })

// version gives a name's numbers in order: glm-4.6 is before glm-5.
func version(name string) []int {
	var list []int
	for _, digits := range numbers().FindAllString(name[strings.LastIndexByte(name, '/')+1:], 4) {
		n, err := strconv.Atoi(digits)
		if err == nil && n < 10_000 { // dates are no versions
			list = append(list, n)
		}
	}
	return list
}

func compareVersions(a, b []int) int { return slices.Compare(a, b) }

var otherUses = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(embed|rerank|whisper|tts|image|dall|moderation|guard|bge-|clip|speech|audio|ocr)`)
})

// notForChat finds models that hold no conversation.
func notForChat(name string) bool { return otherUses().MatchString(name) }
