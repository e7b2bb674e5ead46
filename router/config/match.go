package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SendModel gives the model name to send to this server where asked is what
// the agent asked for: the Name of the first Rename whose glob matches, or
// asked itself.
func (s *Server) SendModel(asked string) (name string, renamed bool) {
	for _, r := range s.Rename {
		if Match(r.Glob, asked) {
			return r.Name, true
		}
	}
	return asked, false
}

// Match says whether glob describes the whole of name. `*` stands for any
// run of characters, slashes and none at all included, `?` for exactly one;
// every other character stands for itself, upper and lower case apart. The
// time it takes is bounded by len(glob)*len(name).
func Match(glob, name string) bool {
	g, n := 0, 0
	star, from := -1, 0 // the last * seen, and where in name it stops
	for n < len(name) {
		_, size := utf8.DecodeRuneInString(name[n:])
		switch {
		case g < len(glob) && glob[g] == '*':
			star, from = g, n
			g++
		case g < len(glob) && glob[g] == '?':
			g, n = g+1, n+size
		case g < len(glob) && glob[g] == name[n]:
			g, n = g+1, n+1
		case star >= 0:
			_, size := utf8.DecodeRuneInString(name[from:])
			from += size
			g, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(glob[g:], "*") == ""
}

func checkGlob(glob string) *problem {
	if bad := checkModel("the pattern", glob); bad != nil {
		return bad
	}
	if open := strings.IndexByte(glob, '{'); open >= 0 && strings.Contains(glob[open:], ",") && strings.Contains(glob[open:], "}") {
		return &problem{fmt.Sprintf("the pattern %q has alternatives in braces", glob), "write one line for each"}
	}
	if open := strings.IndexByte(glob, '['); open >= 0 {
		if class, _, found := strings.Cut(glob[open+1:], "]"); found && strings.ContainsAny(class, "-^!") {
			return &problem{fmt.Sprintf("the pattern %q has a class in brackets", glob), "only * and ? are special; write one line for each"}
		}
	}
	if strings.Contains(glob, `\`) {
		return &problem{fmt.Sprintf("the pattern %q has a backslash", glob), "only * and ? are special, and neither can be escaped"}
	}
	return nil
}

func checkTarget(name string) *problem {
	if strings.ContainsAny(name, "*?") {
		return &problem{fmt.Sprintf("the model name %q is a pattern", clip(name)), "write the one name that is to be sent"}
	}
	return checkModel("the model name", name)
}

func checkModel(what, text string) *problem {
	switch {
	case text == "":
		return &problem{what + " is empty", `write a rename line as "claude-*": name`}
	case len(text) > maxModel:
		return &problem{fmt.Sprintf("%s %q is too long", what, clip(text)), fmt.Sprintf("write at most %d bytes", maxModel)}
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return &problem{fmt.Sprintf("%s %q has a control character in it", what, clip(text)), "remove it"}
	case strings.TrimSpace(text) != text:
		return &problem{fmt.Sprintf("%s %q has spaces around it", what, text), fmt.Sprintf("write %q", strings.TrimSpace(text))}
	}
	return nil
}
