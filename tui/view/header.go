package view

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// part is a piece of a line that may be left out.
type part struct {
	style style
	text  string
	keep  int // the higher, the longer it stays
}

// fit writes parts with gaps between, leaving out those of least worth until
// the rest fits.
func (l *line) fit(gap int, parts []part) *line {
	kept := make([]part, 0, len(parts))
	for _, p := range parts {
		if p.text != "" {
			p.text = l.theme.clean(p.text)
			kept = append(kept, p)
		}
	}
	for len(kept) > 1 {
		total := l.used - gap
		least := 0
		for i, p := range kept {
			total += width(p.text) + gap
			if p.keep < kept[least].keep {
				least = i
			}
		}
		if total <= l.max {
			break
		}
		kept = append(kept[:least], kept[least+1:]...)
	}
	for i, p := range kept {
		if i > 0 {
			l.gap(gap)
		}
		l.put(p.style, p.text)
	}
	return l
}

// header is the proxy, where it listens, whether pins are saved, where each
// agent's new conversations go, and what is wrong.
func (s *Screen) header(w, h int, now time.Time) []string {
	lines := []string{s.proxyLine(w, now)}
	lines = append(lines, s.agentLines(w, h)...)
	return append(lines, s.banner(w, h, now)...)
}

func (s *Screen) proxyLine(w int, now time.Time) string {
	t := s.Theme
	mark, look, word := t.linkWords(s.Link.State)
	parts := []part{{strong, "agentop", 90}, {look, mark + " " + word, 100}}
	if s.Link.State == LinkUp || !s.Link.AsOf.IsZero() {
		parts = append(parts, part{normal, s.address(), 80})
		if s.Link.State == LinkUp {
			save, saveLook := s.saveState()
			parts = append(parts, part{saveLook, save, 95}, part{normal, s.loadWords(), 40}, part{normal, s.finishing(), 30})
			parts = append(parts, part{faint, s.Status.Version, 10}, part{faint, prefixed("up ", ago(s.Status.Started, now)), 20})
		} else {
			parts = append(parts, part{caution, "as of " + clock(s.Link.AsOf, now), 98})
		}
	}
	return t.line(w).gap(1).fit(2, parts).String()
}

// loadWords is how much runs, in a few words.
func (s *Screen) loadWords() string {
	text := itoa(s.Status.Running) + " running"
	if s.Status.Streams > 0 {
		text += ", " + itoa(s.Status.Streams) + " streaming"
	}
	return text
}

// finishing is how many requests older workers have still to answer, in words.
func (s *Screen) finishing() string {
	n := 0
	for i := range s.Status.Draining {
		n += s.Status.Draining[i].Streams
	}
	if n == 0 {
		return ""
	}
	return itoa(n) + " finishing"
}

// finishes reports whether an older worker answers a conversation.
func (s *Screen) finishes(key Key) bool {
	for i := range s.Status.Draining {
		if slices.Contains(s.Status.Draining[i].Sessions, key) {
			return true
		}
	}
	return false
}

// linkWords is the mark, look and words of the link's state.
func (t *Theme) linkWords(state LinkState) (string, style, string) {
	switch state {
	case LinkUp:
		return t.glyph.ok, good, "proxy runs"
	case LinkStopped:
		return t.glyph.down, bad, "proxy does not run"
	case LinkLost:
		return t.glyph.failing, caution, "proxy cannot be reached"
	case LinkTroubled:
		return t.glyph.down, bad, "proxy cannot serve"
	case LinkStarting:
		return t.glyph.unknown, caution, "proxy starts"
	}
	return t.glyph.unknown, faint, "asking the proxy"
}

func (s *Screen) address() string {
	if len(s.Status.Listen) == 0 {
		return ""
	}
	return s.Status.Listen[0]
}

// saveState says whether pins reach the disk.
func (s *Screen) saveState() (string, style) {
	switch store := &s.Status.Store; {
	case store.ReadOnly != "":
		return "! pins read-only", bad
	case store.Error != "":
		return "! pins not saved", bad
	case store.Unsaved > 0:
		return "saving pins", normal
	}
	return "pins saved", normal
}

// agentLines tells where each agent's new conversations go. Where not all fit
// on a line, agents that were never used are only counted.
func (s *Screen) agentLines(w, h int) []string {
	most := 1
	if h >= 20 {
		most = 3
	}
	t := s.Theme
	l := t.line(w).gap(1)
	if len(s.Status.Agents) == 0 {
		if s.Link.State != LinkUp {
			l.put(faint, "which agent goes where is not known")
		}
		return []string{l.String()}
	}
	if w >= 50 {
		l.put(faint, "new:").gap(1)
	}
	begin := l.used
	agents := s.agentsInSight(w - begin)
	var lines []string
	left := len(s.Status.Agents)
	for i, a := range agents {
		need := s.agentWidth(a)
		reserve := 0
		if left > 1 && (len(lines) == most-1 || i == len(agents)-1) && (i < len(agents)-1 || left > len(agents)-i) {
			reserve = len("  +99: a")
		}
		if l.used > begin && l.used+3+need+reserve > w {
			if len(lines) == most-1 {
				break
			}
			lines = append(lines, l.String())
			l = t.line(w).gap(begin)
		}
		if l.used > begin {
			l.gap(3)
		}
		place, look := s.destination(a)
		l.put(normal, a.Agent).gap(1).put(faint, t.glyph.arrow).gap(1).put(look, place)
		left--
	}
	if left > 0 {
		l.gap(2).put(faint, "+"+itoa(left)+": a")
	}
	return append(lines, l.String())
}

// agentWidth is how many cells an agent and its place take.
func (s *Screen) agentWidth(a *Agent) int {
	place, _ := s.destination(a)
	return width(s.Theme.clean(a.Agent)) + width(s.Theme.glyph.arrow) + 2 + width(s.Theme.clean(place))
}

// agentsInSight are the agents whose places are told in w cells: all if they
// fit, else those that are routed or were seen.
func (s *Screen) agentsInSight(w int) []*Agent {
	var all, used []*Agent
	total := -3
	for i := range s.Status.Agents {
		a := &s.Status.Agents[i]
		all = append(all, a)
		total += s.agentWidth(a) + 3
		if a.Server != "" || a.Running > 0 || !a.LastSeen.IsZero() {
			used = append(used, a)
		}
	}
	if total <= w || len(used) == 0 {
		return all
	}
	return used
}

// destination is where an agent's new conversations go, and its look.
func (s *Screen) destination(a *Agent) (string, style) {
	switch {
	case a.Server == "" && a.Upstream == "none":
		return "nowhere", caution
	case a.Server == "":
		return Own, faint
	}
	server := s.server(a.Server)
	switch {
	case server == nil:
		return a.Server + " (not configured)", bad
	case server.Health.State == "down", server.Health.State == "failing":
		return a.Server + " (" + server.Health.State + ")", caution
	}
	return a.Server, strong
}

// problems are what the user should mend, the worst first.
func (s *Screen) problems(now time.Time) []string {
	var list []string
	st := &s.Status
	if s.Link.State == LinkStopped || s.Link.State == LinkLost || s.Link.State == LinkTroubled {
		list = append(list, s.linkProblem())
	}
	if st.Store.ReadOnly != "" {
		list = append(list, "pins are in memory only: "+st.Store.ReadOnly)
	}
	if st.Store.Error != "" {
		text := "pins are not saved"
		if !st.Store.Since.IsZero() {
			text += " since " + clock(st.Store.Since, now)
		}
		list = append(list, text+" ("+itoa(st.Store.Unsaved)+" in memory only): "+st.Store.Error)
	}
	if st.ConfigError != "" {
		list = append(list, "config.yaml is not in force, the last good one is: "+st.ConfigError)
	}
	if st.Log.Error != "" {
		list = append(list, "the request log is not written: "+st.Log.Error)
	}
	return append(list, st.Warnings...)
}

// linkProblem says what to do when no proxy answers.
func (s *Screen) linkProblem() string {
	if s.Link.State == LinkTroubled {
		return "every request is answered with an error: " + dash(s.Link.Reason) + " (process " + itoa(s.Link.PID) + ")"
	}
	text := "no agentop proxy runs: agents that are pointed here get no answer"
	if s.Link.State == LinkLost {
		text = "the proxy does not answer: " + dash(s.Link.Reason)
	}
	switch {
	case s.Link.CanKey:
		return text + "; press p to start it"
	case s.Link.Start != "":
		return text + "; start it with `" + s.Link.Start + "`"
	}
	return text
}

// banner shows the first problems, wrapped, and how many there are besides.
func (s *Screen) banner(w, h int, now time.Time) []string {
	list := s.problems(now)
	if len(list) == 0 {
		return nil
	}
	most := max(h/8, 1)
	var lines []string
	for i, text := range list {
		wrapped := wrap(s.Theme.clean("! "+text), w-2)
		more := ""
		if rest := len(list) - i - 1; rest > 0 {
			more = "+" + itoa(rest) + " more: w"
		}
		room := most - len(lines)
		if len(wrapped) <= room && (more == "" || len(wrapped) < room) {
			for _, part := range wrapped {
				lines = append(lines, s.Theme.line(w).gap(1).put(bad, part).String())
			}
			continue
		}
		if len(wrapped) > room && more == "" {
			more = "w: all"
		}
		return append(lines, s.lastBanner(w, strings.Join(wrapped, " "), more))
	}
	return lines
}

// lastBanner is one line of a problem, cut, with the key that shows the rest.
func (s *Screen) lastBanner(w int, text, more string) string {
	l := s.Theme.line(w).gap(1)
	room := w - 2
	if more != "" {
		room -= width(more) + 2
	}
	l.cell(bad, text, room, false)
	if more != "" {
		l.gap(2).put(accent, more)
	}
	return l.String()
}
