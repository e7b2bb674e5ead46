package view

import (
	"strings"
	"time"
)

// places is how many rows the servers' pane has: the servers and own.
func (s *Screen) places() int { return len(s.Status.Servers) + 1 }

// rowLook is the look of a pane's row: reversed where keys act on it.
func (s *Screen) rowLook(pane Pane, chosen bool) style {
	if chosen && s.Focus == pane && s.Body == BodyList {
		return selected
	}
	return normal
}

// healthWord is a server's health in one word; of a pool, how many are up.
func healthWord(v *Server) string {
	if len(v.Members) > 0 {
		up := 0
		for i := range v.Members {
			if state := v.Members[i].Health.State; state == "ok" || state == "unknown" {
				up++
			}
		}
		if up < len(v.Members) {
			return itoa(up) + " of " + itoa(len(v.Members)) + " up"
		}
	}
	if v.Health.State == "" || v.Health.State == "unknown" {
		return "not asked"
	}
	return v.Health.State
}

// healthLook is a server's mark and look; a pool that has lost a member is
// failing, even if the others serve.
func (t *Theme) healthLook(v *Server) (string, style) {
	down := 0
	for i := range v.Members {
		if state := v.Members[i].Health.State; state == "down" || state == "failing" {
			down++
		}
	}
	switch {
	case down > 0 && down == len(v.Members):
		return t.healthMark("down")
	case down > 0:
		return t.healthMark("failing")
	}
	return t.healthMark(v.Health.State)
}

// serverStrip is all servers on one line.
func (s *Screen) serverStrip(w int) string {
	t := s.Theme
	l := t.line(w).gap(1)
	for i := range s.places() {
		mark, look, name, load := t.glyph.dot, faint, Own, s.Loads[Own]
		if i < len(s.Status.Servers) {
			v := &s.Status.Servers[i]
			mark, look = t.healthLook(v)
			name, load = v.Name, Load{v.Running, v.Streams}
		}
		rest := s.places() - i
		need := width(t.clean(name)) + 3 + len(itoa(load.Running))
		if l.used > 1 && l.used+2+need+len("  +99") > w && rest > 1 || l.used+2+need > w && i > 0 {
			l.gap(2).put(faint, "+"+itoa(rest))
			break
		}
		if i > 0 {
			l.gap(2)
		}
		l.put(look, mark).gap(1).put(normal, name).gap(1).put(strong, itoa(load.Running))
	}
	return l.String()
}

// serverTable is a title and a row for each server, h lines in all.
func (s *Screen) serverTable(w, h int, now time.Time) []string {
	t := s.Theme
	name := len(Own)
	for i := range s.Status.Servers {
		name = max(name, width(t.clean(s.Status.Servers[i].Name)))
	}
	name = min(name, max(w-44, 8))
	title := t.line(w)
	title.put(faint, t.glyph.rule+" ").put(s.paneLook(PaneServers), "Servers").gap(1)
	for title.used < name+4 && title.used < w {
		title.put(faint, t.glyph.rule)
	}
	title.gap(1).col(faint, "health", 11).num(faint, "running", 7).num(faint, "streams", 9)
	title.num(faint, "first token", 13).gap(1)
	if left := w - title.used; left > 0 {
		title.put(faint, strings.Repeat(t.glyph.rule, left))
	}
	lines := []string{title.String()}
	room := h - 1
	first := Window(0, s.Server, s.places(), room)
	for i := first; i < min(first+room, s.places()); i++ {
		if hidden := s.places() - i; i == first+room-1 && hidden > 1 && s.Focus != PaneServers {
			lines = append(lines, t.line(w).gap(3).put(faint, "+"+itoa(hidden)+" more: tab").String())
			break
		}
		lines = append(lines, s.serverRow(i, name, w, now))
	}
	return fillTo(lines, w, h)
}

// paneLook is the look of a pane's title.
func (s *Screen) paneLook(p Pane) style {
	if s.Focus == p && s.Body == BodyList {
		return accent
	}
	return strong
}

func (s *Screen) serverRow(i, name, w int, now time.Time) string {
	t := s.Theme
	l := t.line(w)
	l.over = s.rowLook(PaneServers, i == s.Server)
	l.put(accent, s.cursorMark(PaneServers, i == s.Server))
	if i >= len(s.Status.Servers) {
		load := s.Loads[Own]
		l.put(faint, t.glyph.dot).gap(1).col(normal, Own, name).gap(1).col(faint, "", 11)
		l.num(normal, itoa(load.Running), 7).num(normal, itoa(load.Streams), 9).gap(15)
		words := "each agent's own upstream"
		if l.used+len(words) > w {
			words = "each agent's own"
		}
		return l.put(faint, words).String()
	}
	v := &s.Status.Servers[i]
	mark, look := t.healthLook(v)
	l.put(look, mark).gap(1).col(strong, v.Name, name).gap(1).col(look, healthWord(v), 11)
	l.num(normal, itoa(v.Running), 7).num(normal, itoa(v.Streams), 9).num(normal, dash(millis(v.FirstMS)), 13).gap(2)
	if v.Health.Error != "" && v.Health.State != "ok" {
		l.put(caution, ago(v.Health.At, now)+" ago: "+unnamed(v.Name, v.Health.Error))
	} else if len(v.Warnings) > 0 {
		l.put(caution, "! "+v.Warnings[0])
	}
	return l.String()
}

// cursorMark is the mark before a row.
func (s *Screen) cursorMark(p Pane, chosen bool) string {
	if chosen && (p == PaneSessions || s.Focus == p) {
		return s.Theme.glyph.cursor + " "
	}
	return "  "
}

// serverColumn is the servers at the left: h lines of w cells.
func (s *Screen) serverColumn(w, h int, now time.Time) []string {
	t := s.Theme
	lines := []string{t.rule(w, "Servers", "", s.paneLook(PaneServers) == accent)}
	room := h - 1
	blocks := make([][]string, s.places())
	for level := 2; level >= 0; level-- {
		total := 0
		for i := range blocks {
			blocks[i] = s.serverBlock(i, level, w, now)
			total += len(blocks[i])
		}
		if total <= room {
			break
		}
	}
	// When even one line each is too much, the rows around the cursor stay.
	first := 0
	if len(blocks) > room && len(blocks[0]) == 1 {
		first = Window(0, s.Server, len(blocks), room-1)
		blocks = blocks[first:min(first+room-1, len(blocks))]
	}
	for _, b := range blocks {
		lines = append(lines, b...)
	}
	if hidden := s.places() - len(blocks); hidden > 0 {
		lines = append(lines, t.line(w).gap(2).put(faint, itoa(hidden)+" more").String())
	}
	return fillTo(lines, w, h)
}

// serverBlock is one server: its name and health, its load on level 1, its
// members and what is wrong on level 2.
func (s *Screen) serverBlock(i, level, w int, now time.Time) []string {
	t := s.Theme
	l := t.line(w)
	l.over = s.rowLook(PaneServers, i == s.Server)
	l.put(accent, s.cursorMark(PaneServers, i == s.Server))
	if i >= len(s.Status.Servers) {
		load := s.Loads[Own]
		l.put(faint, t.glyph.dot).gap(1).col(normal, Own, max(w-23, 4))
		if level == 0 {
			return []string{l.num(normal, plural(load.Running, "running"), w-1-l.used).String()}
		}
		return []string{l.num(faint, "each agent's own", w-1-l.used).String(), s.loadLine(load, 0, w)}
	}
	v := &s.Status.Servers[i]
	mark, look := t.healthLook(v)
	right := healthWord(v)
	if level == 0 {
		right = itoa(v.Running) + " running"
	}
	l.put(look, mark).gap(1).col(strong, v.Name, w-6-width(right)).gap(1).num(look, right, w-1-l.used)
	lines := []string{l.String()}
	if level > 0 {
		lines = append(lines, s.loadLine(Load{v.Running, v.Streams}, v.FirstMS, w))
	}
	if level > 1 {
		for m := range v.Members {
			lines = append(lines, s.memberLine(&v.Members[m], w))
		}
		if v.Health.Error != "" && v.Health.State != "ok" {
			lines = append(lines, t.line(w).gap(4).put(caution, ago(v.Health.At, now)+" ago: "+unnamed(v.Name, v.Health.Error)).String())
		}
	}
	return lines
}

// loadLine is what a place has to do.
func (s *Screen) loadLine(load Load, firstMS int64, w int) string {
	l := s.Theme.line(w).gap(4)
	l.put(normal, itoa(load.Running)+" running").gap(1)
	if load.Streams > 0 {
		l.put(good, s.Theme.glyph.stream+" "+itoa(load.Streams)).gap(1)
		if w > 40 {
			l.put(good, "streaming")
		}
	}
	if firstMS > 0 {
		words, room := "first token "+millis(firstMS), w-1-l.used
		if len(words) > room {
			words = "first " + millis(firstMS)
		}
		l.num(faint, words, room)
	}
	return l.String()
}

func (s *Screen) memberLine(m *Member, w int) string {
	mark, look := s.Theme.healthMark(m.Health.State)
	l := s.Theme.line(w).gap(4).put(look, mark).gap(1)
	right := itoa(m.Streams) + "/" + itoa(m.Capacity)
	if m.Health.State == "down" || m.Health.State == "failing" {
		right = m.Health.State + " " + right
	}
	return l.col(faint, m.Name, w-2-l.used-len(right)).gap(1).num(look, right, len(right)).String()
}

// serverDetail is all that is known of the chosen server.
func (s *Screen) serverDetail(w int, now time.Time) []string {
	v := s.ChosenServer()
	f := s.facts(w)
	if v == nil {
		load := s.Loads[Own]
		f.add("place", strong, "own: each agent's own upstream, where it would go without agentop")
		f.add("running", normal, itoa(load.Running)+" conversations, "+plural(load.Streams, "stream"))
		for i := range s.Status.Agents {
			f.add(s.Status.Agents[i].Agent, normal, dash(s.Status.Agents[i].Upstream))
		}
		return f.lines
	}
	mark, look := s.Theme.healthLook(v)
	f.add("server", strong, v.Name)
	health := mark + " " + healthWord(v) + asOf(v.Health.At, now)
	if v.Health.At.IsZero() {
		health += ": no turn went there since the proxy started"
	}
	f.add("health", look, health)
	f.add("last error", caution, v.Health.Error)
	f.add("address", normal, v.URL)
	f.add("key", normal, v.Key)
	f.add("running", normal, itoa(v.Running)+" conversations, "+plural(v.Streams, "stream"))
	f.add("first token", normal, millis(v.FirstMS))
	f.add("new from", normal, strings.Join(s.agentsOn(v.Name), ", "))
	for _, r := range v.Rename {
		f.add("rename", normal, r.Glob+" "+s.Theme.glyph.arrow+" "+r.Name)
	}
	for i := range v.Members {
		m := &v.Members[i]
		mark, look := s.Theme.healthMark(m.Health.State)
		f.add("member", look, mark+" "+m.Name+": "+dash(m.Health.State)+", "+itoa(m.Streams)+" of "+itoa(m.Capacity)+" streams "+m.Health.Error)
	}
	for _, text := range v.Warnings {
		f.add("warning", caution, text)
	}
	f.gap()
	check, asked := s.Tests[v.Name]
	if !asked {
		f.add("test", faint, "t asks the server what it can do, with one request of a single token")
		return f.lines
	}
	words, look := checkWords(check)
	f.add("test", look, words)
	for _, text := range checkAdvice(check) {
		f.add("", caution, "! "+text)
	}
	if r := check.Result; r != nil {
		f.add("tried", normal, r.Tried)
		f.add("software", normal, r.Kind)
		for i := range r.Names {
			f.add("name", normal, s.nameWords(&r.Names[i]))
		}
		f.add("models", normal, strings.Join(r.Models, ", "))
	}
	return f.lines
}

// nameWords is what becomes of a model name on a server.
func (s *Screen) nameWords(n *Name) string {
	text := n.Agent + " asks for " + n.Asked
	if n.Sent != n.Asked {
		text += " " + s.Theme.glyph.arrow + " " + n.Sent
	}
	if !n.Served {
		text += ", which it does not list"
	}
	return text
}

func asOf(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", " + ago(t, now) + " ago"
}

// agentsOn lists the agents whose new conversations go to a server.
func (s *Screen) agentsOn(server string) []string {
	var names []string
	for i := range s.Status.Agents {
		if s.Status.Agents[i].Server == server {
			names = append(names, s.Status.Agents[i].Agent)
		}
	}
	return names
}
