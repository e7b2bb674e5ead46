package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// CheckState says how far the question to a server is.
type CheckState int

// The states of a check.
const (
	CheckNone CheckState = iota
	CheckAsked
	CheckDone
	CheckFailed // it could not be asked
)

// Check is what a server said of itself.
type Check struct {
	State  CheckState
	Result *Preflight // when done
	Error  string     // when failed
}

// SwitchPane is the choice of a server for an agent's new conversations.
type SwitchPane struct {
	Agents []string
	Agent  int
	Filter string
	Items  []Choice // those that match
	Cursor int
	Before string         // where new ones go now
	Stay   map[string]int // running conversations of the agent by place
	Busy   bool           // told to the proxy, not yet answered
}

// Choice is a place that can be chosen.
type Choice struct {
	Name  string // a server's name, or own
	Note  string // what own means
	Check Check
}

// MovePane is the choice of a place for one conversation.
type MovePane struct {
	Session *Session
	Items   []string
	Cursor  int
	Price   *MovePrice // of the place under the cursor, nil until it is known
	Error   string     // why it is not known
	Armed   bool       // one more key moves
	Busy    bool
}

// RemovePane is the question before a server is removed.
type RemovePane struct {
	Server string
	Busy   bool
}

// switchPane draws the choice of a server.
func (s *Screen) switchPane(w, h int) []string {
	t, p := s.Theme, s.Switch
	// The agent is named first: it is the one of the row under the cursor, which
	// may not be the one that is meant.
	lines := []string{t.rule(w, "Switch "+p.Agents[p.Agent], "the server of its new conversations", true)}
	l := t.line(w).gap(2)
	for i, agent := range p.Agents {
		look, name := faint, " "+agent+" "
		if i == p.Agent {
			look, name = selected, "["+agent+"]"
		}
		l.put(look, name).gap(1)
	}
	if len(p.Agents) > 1 {
		l.put(faint, "tab: next agent")
	}
	lines = append(lines, l.String(), s.inputLine("filter", Input{p.Filter, true}, w))
	if len(s.Status.Servers) == 0 {
		f := s.facts(w)
		f.text(caution, "! no server is configured: `agentop server add NAME URL`, in another terminal, adds one, which is then shown here")
		lines = append(lines, f.lines...)
	}
	tail := s.switchTail(w)
	// A few places stay in sight; what is said of them ends with what happens.
	if most := max(h-len(lines)-min(len(p.Items), 3), 2); len(tail) > most {
		tail = tail[len(tail)-most:]
		tail[0] = t.line(w).gap(1).put(faint, t.glyph.ellipsis+" more on a taller screen").String()
	}
	room := max(h-len(lines)-len(tail), 1)
	first := Window(0, p.Cursor, len(p.Items), room)
	name := 6
	for i := range p.Items {
		name = max(name, shortWidth(p.Items[i].Name))
	}
	name = min(name, max(w/4, 6))
	for i := first; i < min(first+room, len(p.Items)); i++ {
		lines = append(lines, s.choiceRow(i, name, w))
	}
	if len(p.Items) == 0 {
		lines = append(lines, t.line(w).gap(2).put(faint, "no server matches; ctrl-u clears the filter").String())
	}
	return fillTo(append(lines, tail...), w, h)
}

// choiceRow is one place that can be chosen, with what it said of itself.
func (s *Screen) choiceRow(i, name, w int) string {
	t, p := s.Theme, s.Switch
	item := &p.Items[i]
	l := t.line(w)
	mark := "  "
	if i == p.Cursor {
		l.over, mark = selected, t.glyph.cursor+" "
	}
	now := ""
	if item.Name == p.Before {
		now = "now"
	}
	l.put(accent, mark).col(strong, item.Name, name).gap(1).col(accent, now, 3).gap(1)
	if item.Note != "" {
		return l.put(faint, item.Note).String()
	}
	// What it says of itself and what became of the last turn there may differ.
	up := item.Check.State == CheckDone && item.Check.Result.Up
	if v := s.server(item.Name); up && v != nil && v.Health.Error != "" && v.Health.State != "ok" {
		l.put(caution, "last turn: "+unnamed(v.Name, v.Health.Error)).put(normal, "; ")
	}
	words, look := checkWords(item.Check)
	return l.put(look, words).String()
}

// switchTail is what is under the places: advice on the one under the cursor,
// then what choosing it means.
func (s *Screen) switchTail(w int) []string {
	p := s.Switch
	if p.Cursor >= len(p.Items) {
		return nil
	}
	item := &p.Items[p.Cursor]
	f := s.facts(w)
	f.gap()
	for _, text := range checkAdvice(item.Check) {
		f.text(caution, "! "+text)
	}
	agent := p.Agents[p.Agent]
	if item.Name == p.Before {
		f.text(normal, "new "+agent+" conversations go to "+item.Name+" already; "+StaySentence(p.Stay))
		return f.lines
	}
	if item.Name == Own {
		if a := s.agent(agent); a != nil && a.Upstream == "none" {
			f.text(caution, "! "+agent+" has no own upstream: new conversations are refused until a server is chosen")
		}
	}
	f.text(strong, SwitchSentence(agent, item.Name, p.Stay))
	if p.Busy {
		f.text(faint, "asking the proxy")
	}
	return f.lines
}

// checkWords is what a server said of itself, in one line.
func checkWords(c Check) (string, style) {
	switch c.State {
	case CheckNone:
		return "", faint
	case CheckAsked:
		return "asking ...", faint
	case CheckFailed:
		return "could not be asked: " + c.Error, caution
	}
	r := c.Result
	if !r.Up {
		return "down" + prefixed(": ", unnamed(r.Server, strings.Join(r.Warnings, "; "))), bad
	}
	parts := []string{"up" + prefixed(" ", millis(r.FirstMS))}
	look := good
	switch {
	case r.KeyOK == nil:
	case *r.KeyOK:
		parts = append(parts, "key accepted")
	default:
		parts, look = append(parts, "key refused"), bad
	}
	if n := len(r.Missing); n > 0 {
		parts, look = append(parts, plural(n, "model")+" missing"), max(look, caution)
	} else if n := len(r.Warnings); n > 0 {
		parts, look = append(parts, plural(n, "warning")), max(look, caution)
	}
	if n := len(r.Models); n > 0 {
		parts = append(parts, plural(n, "model"))
	}
	if len(r.Formats) > 0 {
		parts = append(parts, strings.Join(r.Formats, "+"))
	}
	if r.Context > 0 {
		parts = append(parts, count(r.Context)+" context")
	}
	return strings.Join(parts, ", "), look
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// checkAdvice is what to do about what a server lacks.
func checkAdvice(c Check) []string {
	if c.State != CheckDone {
		return nil
	}
	var list []string
	if len(c.Result.Missing) > 0 {
		list = append(list, c.Result.Server+" does not serve "+strings.Join(c.Result.Missing, ", "))
	}
	for _, r := range c.Result.Rename {
		list = append(list, "this line in its rename would help: "+r.Glob+": "+r.Name)
	}
	return append(list, c.Result.Warnings...)
}

// unnamed is what is wrong with a server where its name stands beside it.
func unnamed(server, text string) string {
	for _, prefix := range []string{server + ": ", `server "` + server + `" `} {
		if rest, found := strings.CutPrefix(text, prefix); found {
			return rest
		}
	}
	return text
}

// SwitchSentence says what a switch does: where new conversations go and which
// running ones stay where they are.
func SwitchSentence(agent, server string, stay map[string]int) string {
	return "new " + agent + " conversations -> " + server + "; " + StaySentence(stay)
}

// StaySentence counts the running conversations that a switch leaves where
// they are, most first.
func StaySentence(stay map[string]int) string {
	total := 0
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(stay), func(a, b string) int {
		return cmp.Or(stay[b]-stay[a], cmp.Compare(a, b))
	}) {
		if n := stay[name]; n > 0 {
			total += n
			parts = append(parts, itoa(n)+" on "+name)
		}
	}
	switch total {
	case 0:
		return "no conversation of it is running"
	case 1:
		return "1 running one stays (" + strings.TrimPrefix(parts[0], "1 ") + ")"
	}
	return itoa(total) + " running ones stay (" + strings.Join(parts, ", ") + ")"
}

// movePane draws the choice of a place for one conversation, and its price.
func (s *Screen) movePane(w, h int) []string {
	t, p := s.Theme, s.Move
	lines := []string{t.rule(w, "Move one conversation", "", true)}
	f := s.facts(w)
	title := p.Session.Title
	if title == "" {
		title = untitled(p.Session)
	}
	f.text(strong, t.cut(t.clean(title), max(w-2, 1)))
	f.text(normal, p.Session.Agent+", now on "+p.Session.Server+". To:")
	lines = append(lines, f.lines...)
	tail := s.moveTail(w)
	room := max(h-len(lines)-len(tail), 1)
	first := Window(0, p.Cursor, len(p.Items), room)
	for i := first; i < min(first+room, len(p.Items)); i++ {
		l, mark := t.line(w), "  "
		if i == p.Cursor {
			l.over, mark = selected, t.glyph.cursor+" "
		}
		l.put(accent, mark).put(strong, p.Items[i])
		if p.Items[i] == Own {
			l.put(faint, prefixed(": ", s.upstream(p.Session.Agent)))
		}
		if v := s.server(p.Items[i]); v != nil && p.Items[i] != Own {
			health, look := t.healthLook(v)
			l.gap(1).put(look, health+" "+healthWord(v))
		}
		lines = append(lines, l.String())
	}
	if len(p.Items) == 0 {
		lines = append(lines, t.line(w).gap(2).put(faint, "there is no other place").String())
	}
	return fillTo(append(lines, tail...), w, h)
}

// moveTail is the price of the move and the question.
func (s *Screen) moveTail(w int) []string {
	p := s.Move
	f := s.facts(w)
	if len(p.Items) == 0 {
		return nil
	}
	f.gap()
	switch {
	case p.Error != "":
		f.text(bad, "! "+p.Error)
	case p.Price == nil:
		f.text(faint, "asking what it costs ...")
	default:
		f.price(p.Price)
	}
	if p.Armed {
		f.gap()
		f.text(strong, "Move it to "+p.Items[p.Cursor]+"? y moves it from its next turn on; any other key keeps it.")
	}
	if p.Busy {
		f.text(faint, "moving ...")
	}
	return f.lines
}

// price says what a move costs, one line each.
func (f *facts) price(p *MovePrice) {
	if p.Tokens == 0 {
		f.text(caution, "! its whole context is read again without cache; its size is not known")
	} else {
		f.text(caution, "! "+count(p.Tokens)+" tokens are read again without cache")
	}
	if p.Signed {
		f.text(bad, "! it holds signed thinking or encrypted reasoning, which "+p.To+" will refuse")
	}
	switch {
	case p.ContextMax > 0 && p.Tokens > p.ContextMax:
		f.text(bad, "! "+p.To+" takes "+count(p.ContextMax)+" tokens: it does not fit")
	case p.ContextMax > 0:
		f.text(normal, "  "+p.To+" takes "+count(p.ContextMax)+" tokens: it fits")
	}
	if p.MissingModel != "" {
		f.text(bad, "! "+p.To+" does not serve "+p.MissingModel)
	}
	for _, text := range p.Warnings {
		f.text(caution, "! "+text)
	}
}

// removeText is the question before a server is removed.
func (s *Screen) removeText(w int) []string {
	f := s.facts(w)
	name := s.Remove.Server
	f.text(strong, "Remove "+name+" from config.yaml, and its stored key?")
	if v := s.server(name); v != nil && v.Running > 0 {
		f.text(caution, "! "+plural(v.Running, "running conversation")+" stay pinned to it and are refused until it is added again")
	}
	if agents := s.agentsOn(name); len(agents) > 0 {
		f.text(caution, "! new conversations of "+strings.Join(agents, ", ")+" go there now; choose another server first, or they go to the agent's own upstream")
	}
	f.gap()
	f.text(strong, "y removes it; any other key keeps it.")
	if s.Remove.Busy {
		f.text(faint, "removing ...")
	}
	return f.lines
}

// commandText is a command to use in a shell.
func (s *Screen) commandText(w int) []string {
	f := s.facts(w)
	for i, text := range s.Shown {
		look := normal
		if i == 0 && s.Question == "" {
			look = strong
		}
		f.text(look, text)
		if i == 0 && s.Question == "" {
			f.gap()
		}
	}
	if s.Question != "" {
		f.gap()
		f.text(strong, s.Question)
	}
	return f.lines
}
