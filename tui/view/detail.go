package view

import (
	"strings"
	"time"
)

// detail is all that is known of the chosen conversation.
func (s *Screen) detail(w int, now time.Time) []string {
	row := s.Chosen()
	f := s.facts(w)
	if row == nil {
		f.text(faint, "no conversation is chosen")
		return f.lines
	}
	s.detailTop(f, row, now)
	f.add("directory", normal, row.Dir)
	f.add("session", normal, row.ID+" (y copies it)")
	if command, ok := Resume(row.Agent, row.ID, row.Dir); ok {
		f.add("resume", normal, command)
	}
	if row.Signed {
		f.add("thinking", normal, "signed: another server would refuse it")
	}
	s.detailRequests(f, row, now)
	return f.lines
}

// detailTop is what matters most of a conversation, in order.
func (s *Screen) detailTop(f *facts, row *Session, now time.Time) {
	title := row.Title
	if title == "" {
		title = "untitled"
	}
	f.add(row.Agent, strong, title)
	f.add("server", strong, s.placeWords(row))
	f.add("why here", normal, dash(row.Why))
	f.add("new ones", accent, s.newOnes(row))
	f.add("pin", normal, pinWords(row))
	state, look := s.state(row, stateWidth, now)
	f.add("state", look, state)
	f.add("last error", bad, Failure(row))
	f.add("turns", normal, turnWords(row, now))
	f.add("model", normal, modelWords(row))
	f.add("context", normal, s.contextWords(row))
	f.add("tokens", normal, tokenWords(row))
	f.add("times", normal, timeWords(row))
}

// placeWords is the server of a conversation with its health.
func (s *Screen) placeWords(row *Session) string {
	if row.Server == Own {
		text := "own: the agent's own upstream"
		if a := s.agent(row.Agent); a != nil && a.Upstream != "" {
			text += " (" + a.Upstream + ")"
		}
		return text
	}
	v := s.server(row.Server)
	if v == nil {
		return row.Server + ", which is not configured: its turns are refused until `agentop server add` brings it back"
	}
	mark, _ := s.Theme.healthLook(v)
	return row.Server + " " + mark + " " + healthWord(v)
}

// newOnes says where the agent's new conversations go when that is elsewhere.
func (s *Screen) newOnes(row *Session) string {
	if !s.astray(row) {
		return ""
	}
	return "new " + row.Agent + " conversations go to " + s.choice(row.Agent) + "; a running one stays where it is (m moves it)"
}

func pinWords(row *Session) string {
	text := dash(row.Pin)
	switch row.Pin {
	case "none":
		return "none: it is placed anew by each turn"
	case "new":
		text = "set at its opening"
	case "followed":
		text = "the one of the conversation that it follows"
	case "moved":
		text = "set when it was moved"
	case "restored":
		text = "restored from the request log"
	}
	switch {
	case row.Saved:
		return text + ", on disk"
	}
	return text + ", in memory only"
}

func turnWords(row *Session, now time.Time) string {
	text := itoa(row.Turns)
	if !row.Opened.IsZero() {
		text += ", opened " + clock(row.Opened, now)
	}
	if !row.LastTurn.IsZero() {
		text += ", last " + clock(row.LastTurn, now)
	}
	return text
}

func modelWords(row *Session) string {
	switch {
	case row.ModelAsked == "" && row.ModelSent == "":
		return ""
	case row.ModelSent == "" || row.ModelSent == row.ModelAsked:
		return row.ModelAsked + ", sent as asked"
	case row.ModelAsked == "":
		return "sent " + row.ModelSent
	}
	return "asked " + row.ModelAsked + ", sent " + row.ModelSent
}

func (s *Screen) contextWords(row *Session) string {
	if row.Context == 0 {
		return ""
	}
	text := count(row.Context) + " tokens"
	if row.ContextMax > 0 {
		text += " of " + count(row.ContextMax) + " (" + share(row.Context, row.ContextMax) + ") " +
			s.Theme.bar(row.Context, row.ContextMax, 12)
	}
	if part := cacheShare(row); part != "" {
		text += " " + part + " from cache"
	}
	return text
}

func tokenWords(row *Session) string {
	if row.Input == 0 && row.Output == 0 {
		return ""
	}
	text := count(row.Input) + " in"
	if row.CacheRead > 0 {
		text += " (" + count(row.CacheRead) + " from cache)"
	}
	return text + ", " + count(row.Output) + " out, over all turns"
}

func timeWords(row *Session) string {
	var parts []string
	if row.FirstMS > 0 {
		parts = append(parts, "first token "+millis(row.FirstMS))
	}
	if row.TotalMS > 0 {
		parts = append(parts, "whole turn "+millis(row.TotalMS))
	}
	return strings.Join(parts, ", ")
}

func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return itoa(n)
}

// detailRequests lists the conversation's last requests, as far as they are at
// hand.
func (s *Screen) detailRequests(f *facts, row *Session, now time.Time) {
	const most = 12
	var own []*Request
	for i := len(s.Log.All) - 1; i >= 0 && len(own) < most; i-- {
		if r := &s.Log.All[i]; r.Agent == row.Agent && r.Session == row.ID {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return
	}
	f.gap()
	f.text(faint, "last requests")
	for _, r := range own {
		f.lines = append(f.lines, s.logRow(r, false, logColumnsFor(f.w, true), f.w, now))
	}
}

// preview is the chosen conversation under the list, h lines.
func (s *Screen) preview(w, h int, now time.Time) []string {
	row := s.Chosen()
	if row == nil {
		return fillTo(nil, w, h)
	}
	f := s.facts(w)
	s.detailTop(f, row, now)
	lines := append([]string{s.Theme.rule(w, "Why it is there", "enter: all", false)}, f.lines...)
	if len(lines) > h {
		lines = append(lines[:h-1], s.Theme.line(w).gap(labelWidth).put(faint, s.Theme.glyph.ellipsis+" enter shows the rest").String())
	}
	return fillTo(lines, w, h)
}

// serverLine is one sentence on the chosen server.
func (s *Screen) serverLine() string {
	v := s.ChosenServer()
	if v == nil {
		return "own: each agent's own upstream, where it would go without agentop"
	}
	text := v.Name + ": " + healthWord(v)
	if agents := s.agentsOn(v.Name); len(agents) > 0 {
		text += ", takes new conversations of " + strings.Join(agents, ", ")
	} else {
		text += ", takes no new conversations"
	}
	if v.Health.Error != "" && v.Health.State != "ok" {
		text += "; " + unnamed(v.Name, v.Health.Error)
	}
	return text
}

// whyLine is one sentence: where the chosen conversation is and why.
func (s *Screen) whyLine() string {
	row := s.Chosen()
	if s.Focus == PaneServers {
		return s.serverLine()
	}
	if row == nil {
		return ""
	}
	text := "on " + row.Server + ": " + dash(row.Why)
	if s.astray(row) {
		text += ". New " + row.Agent + " ones go to " + s.choice(row.Agent)
	}
	if failed := Failure(row); failed != "" {
		text += ". Its last turn failed: " + failed
	}
	return text
}
