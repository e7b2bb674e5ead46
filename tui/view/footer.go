package view

import "time"

// footer is the why of the chosen conversation, what an act did, and the keys.
func (s *Screen) footer(w, h int, now time.Time) []string {
	t := s.Theme
	var lines []string
	if s.Body == BodyList && s.needsWhy(w, h) {
		lines = append(lines, s.whyLines(w, h)...)
	}
	for i := range s.Notices {
		n := &s.Notices[i]
		if s.asks() && !n.Bad {
			continue // what the last act did must not be read as what the next one will do
		}
		look, text := normal, n.Text
		if n.Bad {
			look, text = bad, "! "+text
		}
		if n.Undo && !s.Filter.Active && !s.Log.Filter.Active {
			text += " " + t.glyph.dot + " u undoes it"
		}
		for _, part := range wrap(t.clean(text), w-2) {
			lines = append(lines, t.line(w).gap(1).put(look, part).String())
		}
	}
	return append(lines, s.keyLine(w))
}

// asks reports whether the body is one that asks before it acts.
func (s *Screen) asks() bool {
	switch s.Body {
	case BodySwitch, BodyMove, BodyRemove:
		return true
	}
	return s.Body == BodyCommand && s.Question != ""
}

// needsWhy reports whether no preview shows the reason.
func (s *Screen) needsWhy(w, h int) bool {
	body := w
	if w >= wideAt {
		body = w - 31
	}
	return h < 32 || body < 70
}

// whyLines is the sentence on one line, or two where there is room.
func (s *Screen) whyLines(w, h int) []string {
	text := s.Theme.clean(s.whyLine())
	most := 1
	if h >= 20 {
		most = 2
	}
	var lines []string
	for i, part := range wrap(text, w-3) {
		if text == "" {
			break
		}
		if i == most {
			// What does not fit is one key away, and said to be.
			lines[most-1] = s.Theme.line(w).put(accent, "  ").
				cell(normal, lastOf(text, w-3, most), w-10, false).put(faint, " (enter)").String()
			break
		}
		l := s.Theme.line(w)
		if i == 0 {
			l.put(accent, s.Theme.glyph.cursor).gap(1)
		} else {
			l.gap(2)
		}
		lines = append(lines, l.put(normal, part).String())
	}
	for len(lines) < most {
		lines = append(lines, blank(w)) // the list keeps its height from row to row
	}
	return lines
}

// lastOf is the wrapped text from line n on.
func lastOf(text string, w, n int) string {
	parts := wrap(text, w)
	out := ""
	for _, p := range parts[n-1:] {
		out += p + " "
	}
	return out
}

// hint is a key and what it does.
type hint struct {
	key, what string
	keep      int
}

// keyLine names the keys that do something here, as many as fit.
func (s *Screen) keyLine(w int) string {
	t := s.Theme
	hints := s.hints()
	for len(hints) > 1 {
		total, least := 1, 0
		for i, h := range hints {
			total += width(h.key) + 1 + width(h.what) + 2
			if h.keep <= hints[least].keep {
				least = i
			}
		}
		if total-2 <= w {
			break
		}
		hints = append(hints[:least], hints[least+1:]...)
	}
	l := t.line(w).gap(1)
	for i, h := range hints {
		if i > 0 {
			l.gap(2)
		}
		l.put(accent, h.key).gap(1).put(faint, h.what)
	}
	return l.String()
}

// hints are the keys of what is on the screen.
func (s *Screen) hints() []hint {
	switch s.Body {
	case BodySwitch:
		return []hint{{"enter", "switch", 9}, {"esc", "back", 8}, {"tab", "next agent", 6}, {"type", "to filter", 5}}
	case BodyMove:
		if s.Move.Armed {
			return []hint{{"y", "move", 9}, {"esc", "keep", 8}}
		}
		return []hint{{"enter", "choose", 9}, {"esc", "back", 8}}
	case BodyRemove:
		return []hint{{"y", "remove", 9}, {"esc", "keep", 8}}
	case BodyLog:
		if s.Log.Filter.Active {
			return []hint{{"enter", "keep filter", 9}, {"esc", "clear", 8}}
		}
		return []hint{{"j k", "choose", 4}, {"enter", "conversation", 5}, {"/", "filter", 6}, {"G", "newest", 3}, {"esc", "back", 8}, {"?", "keys", 7}, {"q", "quit", 2}}
	case BodyAgents:
		list := []hint{{"s", "switch", 7}, {"esc", "back", 8}, {"?", "keys", 6}}
		if len(s.Setups) > 0 {
			list = append([]hint{{"e", "enable", 5}, {"d", "disable", 5}}, list...)
		}
		return list
	case BodyDetail:
		return []hint{{"m", "move", 6}, {"y", "copy id", 5}, {"o", "resume", 5}, {"s", "switch", 4}, {"j k", "scroll", 2}, {"esc", "back", 8}, {"?", "keys", 7}}
	case BodyServer:
		if s.ChosenServer() == nil { // own
			return []hint{{"esc", "back", 8}, {"?", "keys", 7}}
		}
		return []hint{{"t", "test", 6}, {"x", "remove", 5}, {"esc", "back", 8}, {"?", "keys", 7}}
	case BodyCommand:
		if s.Question != "" {
			return []hint{{"y", "yes", 9}, {"esc", "no", 8}}
		}
		return []hint{{"y", "copy", 7}, {"esc", "back", 8}, {"q", "quit", 3}}
	case BodyHelp, BodyProxy:
		return []hint{{"j k", "scroll", 4}, {"esc", "back", 8}, {"q", "quit", 3}}
	}
	return s.listHints()
}

func (s *Screen) listHints() []hint {
	if s.Filter.Active {
		return []hint{{"enter", "keep filter", 9}, {"esc", "clear", 8}}
	}
	var list []hint
	if s.Link.State == LinkStopped && s.Link.CanKey {
		list = append(list, hint{"p", "start the proxy", 10})
	}
	list = append(list, hint{"s", "switch", 9})
	if s.Focus == PaneServers {
		acts := []hint{{"t", "test", 7}, {"n", "add", 5}, {"x", "remove", 5}}
		if s.ChosenServer() == nil { // own
			acts = acts[1:2]
		}
		list = append(list, acts...)
		return append(list, hint{"enter", "details", 6},
			hint{"tab", "conversations", 8}, hint{"?", "keys", 8}, hint{"q", "quit", 4})
	}
	return append(list, hint{"enter", "details", 7}, hint{"m", "move", 6}, hint{"/", "filter", 6}, hint{"tab", "servers", 5},
		hint{"a", "agents", 3}, hint{"l", "log", 5}, hint{"?", "keys", 8}, hint{"q", "quit", 4})
}
