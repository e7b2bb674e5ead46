package view

import (
	"strings"
	"time"
)

// help lists every key, and what the words on the screen mean.
func (s *Screen) help(w int) []string {
	t := s.Theme
	f := s.facts(w)
	for _, group := range []struct {
		name string
		keys [][2]string
	}{
		{"everywhere", [][2]string{
			{"s", "switch: choose the server of an agent's new conversations; running ones stay"},
			{"u", "undo the last switch"},
			{"a", "agents"}, {"l", "request log"}, {"w", "the proxy, and what is wrong"}, {"?", "these keys"},
			{"esc", "back"}, {"q", "quit; the proxy goes on"}, {"ctrl-z", "suspend; fg comes back"}, {"ctrl-l", "draw afresh"},
		}},
		{"conversations", [][2]string{
			{"up down", "choose (also k j, page up and down, g G)"},
			{"enter", "details: why it is where it is, and all numbers"},
			{"/", "filter by any word on its row, its directory or its id"},
			{"v", "running ones only, or all that are known"},
			{"m", "move it to another server, after its price is said"},
			{"y", "copy its session id"}, {"o", "the command that resumes it in its agent"},
			{"tab", "to the servers and back"},
		}},
		{"servers", [][2]string{
			{"up down", "choose"}, {"enter", "details"}, {"t", "test: ask what it can do, with one request of a single token"},
			{"n", "add one: shows the command"}, {"x", "remove, after a question"},
		}},
		{"request log", [][2]string{
			{"/", "filter by any word of a request: server, model, status, title, error"},
			{"up down", "choose; the list then stands still"}, {"enter", "the conversation of the request"},
			{"G", "follow the newest again"},
		}},
	} {
		f.text(strong, group.name)
		for _, k := range group.keys {
			f.add(k[0], normal, k[1])
		}
		f.gap()
	}
	f.text(strong, "signs")
	g := &t.glyph
	f.add(g.ok+" "+g.failing+" "+g.down, normal, "a server's last answers: well, an error or broken off, could not be reached ("+g.unknown+" not asked yet)")
	f.add("new:", normal, "where the next conversation of each agent will go; a switch changes this and nothing else")
	f.add("running", normal, "a turn in the last 24 hours, or an answer that streams")
	f.add("pin", normal, "the server that a conversation is bound to; it is on disk, so that no restart moves it")
	f.add("*", normal, "the conversation is not where its agent's new ones go")
	f.add("finishing", normal, "a worker that was replaced answers it to its end")
	f.add("title", normal, "its first words, or its agent's title for it; `titles: off` in config.yaml (w tells where that is) hides all")
	f.add("own", normal, "the agent's own upstream, where it would go without agentop")
	f.add("context", normal, "tokens of the last turn's input, and its share of the limit")
	f.add("cache", normal, "how much of the context was read from the server's cache")
	return f.lines
}

// proxyDetail is the proxy's own state, and everything that is wrong.
func (s *Screen) proxyDetail(w int, now time.Time) []string {
	f := s.facts(w)
	st := &s.Status
	mark, look, word := s.Theme.linkWords(s.Link.State)
	f.add("proxy", look, mark+" "+word)
	for _, text := range s.problems(now) {
		f.add("problem", bad, "! "+text)
	}
	for _, address := range st.Listen {
		f.add("address", normal, "http://"+address)
	}
	if len(st.Listen) > 0 {
		f.add("try it", normal, "ANTHROPIC_BASE_URL=http://"+s.address()+"/claude-code claude")
	}
	if s.Link.State != LinkUp && s.Link.AsOf.IsZero() {
		return f.lines // nothing more is known
	}
	f.add("version", normal, st.Version)
	if st.PID > 0 {
		f.add("process", normal, itoa(st.PID)+", started "+clock(st.Started, now))
	}
	f.add("home", normal, st.Home)
	f.add("config", normal, st.ConfigFile)
	save, saveLook := s.saveState()
	f.add("pins", saveLook, itoa(st.Store.Pins)+" ("+strings.TrimPrefix(save, "pins ")+")")
	loaded := "still being read"
	if st.Log.Loaded {
		loaded = "read"
	}
	f.add("request log", normal, plural(st.Log.Lines, "line")+", "+plural(st.Log.Keys, "key")+", "+loaded)
	if st.Log.Bad > 0 {
		f.add("", caution, plural(st.Log.Bad, "damaged line")+" skipped")
	}
	f.add("running", normal, plural(st.Running, "conversation")+", "+plural(st.Streams, "stream"))
	for i := range st.Draining {
		d := &st.Draining[i]
		f.add("before it", normal, "process "+itoa(d.PID)+" ("+d.Version+") accepts nothing more since "+clock(d.Since, now)+
			", and finishes "+plural(d.Streams, "stream"))
	}
	return f.lines
}
