package router

import (
	"strings"
	"unicode/utf8"

	"agentop/agents"
)

// parse reads a record of the form that encode writes, whose strings hold no
// escapes, and is false for every other: that is left to encoding/json, which
// reads what parse takes in the same way. Its strings are parts of value, so
// that thousands of pins, which are in the store's memory anyway, cost no more
// when they are listed.
func (p *pinRecord) parse(value string) bool {
	c := cursor(value)
	if !c.eat('{') {
		return false
	}
	for {
		name, ok := c.quoted()
		if !ok || !c.eat(':') || !p.parseField(name, &c) {
			return false
		}
		if c.eat(',') {
			continue
		}
		return c.eat('}') && c == ""
	}
}

func (p *pinRecord) parseField(name string, c *cursor) bool {
	if name == "names" {
		return p.parseNames(c)
	}
	text, ok := c.quoted()
	if !ok {
		return false
	}
	switch name {
	case "agent":
		p.Agent = agents.Agent(text)
	case "session":
		p.Session = text
	case "server":
		p.Server = text
	case "member":
		p.Member = text
	case "opened":
		return p.Opened.UnmarshalText([]byte(text)) == nil
	case "renewed":
		return p.Renewed.UnmarshalText([]byte(text)) == nil
	case "pin":
		p.Pin = text
	case "why":
		p.Why = text
	case "title":
		p.Title = text
	case "dir":
		p.Dir = text
	default:
		return false
	}
	return true
}

func (p *pinRecord) parseNames(c *cursor) bool {
	if p.Names != nil || !c.eat('{') {
		return false
	}
	p.Names = make(map[string]string, 1)
	for {
		asked, ok := c.quoted()
		if !ok || !c.eat(':') {
			return false
		}
		sent, ok := c.quoted()
		if !ok {
			return false
		}
		p.Names[asked] = sent
		if c.eat(',') {
			continue
		}
		return c.eat('}')
	}
}

// cursor is the rest of a text that is being read.
type cursor string

func (c *cursor) eat(b byte) bool {
	if *c == "" || (*c)[0] != b {
		return false
	}
	*c = (*c)[1:]
	return true
}

// quoted takes a JSON string without escapes.
func (c *cursor) quoted() (string, bool) {
	if !c.eat('"') {
		return "", false
	}
	text, rest, ok := strings.Cut(string(*c), `"`)
	if !ok || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\\' }) {
		return "", false
	}
	*c = cursor(rest)
	return text, true
}
