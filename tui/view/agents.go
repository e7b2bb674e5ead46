package view

import (
	"strings"
	"time"
)

// agentsPane lists the agents: where each one's new conversations go, whether
// it is pointed here and when it was seen last.
func (s *Screen) agentsPane(w, h int, now time.Time) []string {
	t := s.Theme
	lines := []string{t.rule(w, "Agents", "", true)}
	name := 5
	for i := range s.Status.Agents {
		name = max(name, shortWidth(s.Status.Agents[i].Agent))
	}
	name = min(name, max(w/4, 8))
	for i := range s.Status.Agents {
		lines = append(lines, s.agentBlock(i, name, w, now)...)
	}
	if len(s.Status.Agents) == 0 {
		lines = append(lines, t.line(w).gap(2).put(faint, "no agent is known").String())
	}
	f := s.facts(w)
	f.gap()
	if len(s.Setups) == 0 {
		f.text(faint, "Point an agent here with `agentop agent enable AGENT`; `agentop agent disable AGENT` undoes it exactly.")
	}
	f.text(faint, "A request without an agent's name in its path is recognised by its headers; formats that agentop cannot read follow a session header if there is one, else they go to the agent's own upstream.")
	// What the cursor is on must be in sight; the notes may fall off.
	start := 1
	for i := range min(s.Agent, len(s.Status.Agents)) {
		start += len(s.agentBlock(i, name, w, now))
	}
	if s.Agent < len(s.Status.Agents) {
		if over := start + len(s.agentBlock(s.Agent, name, w, now)) - h; over > 0 {
			lines = append(lines[:1], lines[1+over:]...)
		}
	}
	return fillTo(append(lines, f.lines...), w, h)
}

// agentBlock is one agent on two lines.
func (s *Screen) agentBlock(i, name, w int, now time.Time) []string {
	t := s.Theme
	a := &s.Status.Agents[i]
	l := t.line(w)
	mark := "  "
	if i == s.Agent {
		l.over, mark = selected, t.glyph.cursor+" "
	}
	place, look := s.destination(a)
	l.put(accent, mark).col(strong, a.Agent, name).gap(1).put(faint, "new ones "+t.glyph.arrow).gap(1).put(look, place)
	if !a.Since.IsZero() {
		l.put(faint, " since "+clock(a.Since, now))
	}
	if rest := plural(a.Running, "running conversation"); w-l.used > len(rest)+3 {
		l.put(faint, ", "+rest)
	}
	lines := []string{l.String()}
	var facts []string
	for _, setup := range s.Setups {
		if setup.Agent == a.Agent {
			facts = append(facts, pointedWords(setup))
		}
	}
	if a.LastSeen.IsZero() {
		facts = append(facts, "not seen yet")
	} else {
		facts = append(facts, "seen "+ago(a.LastSeen, now)+" ago"+bracketed(a.Version))
	}
	facts = append(facts, "own upstream: "+dash(a.Upstream))
	for _, part := range wrap(t.clean(strings.Join(facts, ", ")), max(w-name-4, 8)) {
		lines = append(lines, t.line(w).gap(name+3).put(faint, part).String())
	}
	return lines
}

func pointedWords(s Setup) string {
	text := "not pointed here"
	if s.Pointed {
		text = "pointed here"
	}
	if s.Detail != "" {
		text += " (" + s.Detail + ")"
	}
	return text
}
