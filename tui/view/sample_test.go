package view

import (
	"fmt"
	"strings"
	"time"
)

// noon is the time of all samples.
var noon = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// sample is a screen with a bit of everything.
func sample() *Screen {
	s := &Screen{Theme: NewTheme(true, false), Link: Link{State: LinkUp, AsOf: noon, Start: "agentop proxy", CanKey: true}}
	s.Status = Status{
		Version: "v1.2.0", PID: 4242, Started: noon.Add(-2 * time.Hour), Home: "/home/u/.agentop",
		Listen: []string{"127.0.0.1:4780", "[::1]:4780"}, ConfigFile: "/home/u/.agentop/config.yaml",
		Store: Store{Pins: 40}, Log: Log{Loaded: true, Lines: 9120, Keys: 5300}, Running: 6, Streams: 2,
		Agents: []Agent{
			{Agent: "claude-code", Server: "glm", Upstream: "https://api.anthropic.com", Since: noon.Add(-30 * time.Minute),
				LastSeen: noon.Add(-4 * time.Second), Version: "2.1.332", Running: 3},
			{Agent: "codex", Upstream: "https://chatgpt.com/backend-api/codex", LastSeen: noon.Add(-time.Hour), Version: "0.171.0", Running: 1},
			{Agent: "opencode", Server: "lab", Upstream: "none", Running: 1},
		},
		Servers: []Server{
			{Name: "glm", URL: "https://glm.example.com", Key: "stored", Health: Health{State: "ok", At: noon.Add(-4 * time.Second)},
				Rename:  []Rename{{"claude-*haiku*", "glm-air"}, {"claude-*", "glm-5"}},
				Running: 2, Streams: 1, FirstMS: 410},
			{Name: "lab", Key: "none", Health: Health{State: "ok", At: noon.Add(-time.Minute)}, Running: 2, Streams: 1, FirstMS: 92, Members: []Member{
				{Name: "gpu1:8000", URL: "http://gpu1:8000", Health: Health{State: "ok"}, Capacity: 16, Cost: 1, Streams: 1},
				{Name: "gpu2:8000", URL: "http://gpu2:8000", Health: Health{State: "down", Error: "connection refused"}, Capacity: 16, Cost: 2},
			}},
			{Name: "desk", URL: "http://127.0.0.1:8080", Key: "none", Health: Health{State: "failing", At: noon.Add(-3 * time.Minute), Error: "answered 500: out of memory"}},
		},
	}
	s.Loads = map[string]Load{Own: {2, 0}, "glm": {2, 1}, "lab": {2, 1}}
	s.Rows = sampleRows()
	s.Known = 40
	s.Cursor = 2
	s.Log = sampleLog()
	s.Log.Sessions = map[Key]*Session{}
	for _, row := range s.Rows {
		s.Log.Sessions[row.Key()] = row
	}
	s.Tests = map[string]Check{}
	return s
}

// handedOver is a moment after a hand-over: the worker before still answers two
// requests, one of the first conversation.
func handedOver() *Screen {
	s := sample()
	s.Rows[0].Streams = 0
	s.Status.Streams, s.Status.Servers[0].Streams, s.Loads["glm"] = 1, 0, Load{2, 0}
	s.Status.Draining = []Draining{{PID: 4100, Version: "v1.1.0", Streams: 2, Since: noon.Add(-20 * time.Second),
		Sessions: []Key{s.Rows[0].Key()}}}
	return s
}

func sampleRows() []*Session {
	return []*Session{
		{Agent: "claude-code", ID: "4e96a1b2-0000-4000-8000-000000000001", Title: "Fix the parser for nested lists", Dir: "/src/parser",
			Server: "glm", Pin: "new", Why: "opened 11:41 when claude-code was set to glm", Opened: noon.Add(-19 * time.Minute),
			LastTurn: noon.Add(-4 * time.Second), Running: true, Streams: 1, Turns: 12, ModelAsked: "claude-opus-4-5", ModelSent: "glm-5",
			Context: 81_000, ContextMax: 200_000, Cached: 79_400, Input: 402_000, Output: 9_100, CacheRead: 380_000,
			FirstMS: 410, TotalMS: 9_900, Status: 200, Saved: true},
		{Agent: "opencode", ID: "ses_77aa", Title: "Write tests for the retry queue", Server: "lab/gpu1:8000", Pin: "new",
			Why: "opened 11:30 when opencode was set to lab", Opened: noon.Add(-30 * time.Minute), LastTurn: noon.Add(-2 * time.Second),
			Running: true, Streams: 1, Turns: 41, ModelAsked: "qwen3-coder", ModelSent: "qwen3-coder", Context: 30_500, ContextMax: 32_768,
			Cached: 30_000, FirstMS: 92, TotalMS: 2_100, Status: 200, Saved: true},
		{Agent: "claude-code", ID: "7a11ffff-0000-4000-8000-000000000002", Title: "Why is the nightly build slow?", Dir: "/src/ci",
			Server: "own", Pin: "new", Why: "opened 11:02 when claude-code was not routed", Opened: noon.Add(-58 * time.Minute),
			LastTurn: noon.Add(-2 * time.Minute), Running: true, Turns: 3, ModelAsked: "claude-opus-4-5", Context: 9_000, Cached: 4_500,
			Signed: true, Saved: true, Status: 200, FirstMS: 1_900, TotalMS: 15_000},
		{Agent: "claude-code", ID: "c0ffee00-0000-4000-8000-000000000003", Server: "lab/gpu2:8000", Pin: "followed", Dir: "/src/web",
			Why: "follows 4e96a1b2 (fork)", Opened: noon.Add(-3 * time.Hour), LastTurn: noon.Add(-100 * time.Minute), Running: true, Turns: 7,
			ModelAsked: "claude-haiku-4-5", ModelSent: "qwen3-coder", Status: 503, Error: "lab/gpu2:8000: connection refused", Saved: false},
		{Agent: "codex", ID: "0199c0de-7777", Title: "Port the importer to the new schema, keep the old one working for a release",
			Server: "own", Pin: "restored", Why: "restored from the request log", LastTurn: noon.Add(-5 * time.Hour), Running: true, Turns: 140,
			ModelAsked: "gpt-6-codex", Context: 210_000, ContextMax: 400_000, Cached: 209_000, Saved: true, Status: 200},
		{Agent: "claude-code", ID: "dead0000-0000-4000-8000-000000000004", Title: "Rename the flags", Server: "oldbox", Pin: "new",
			Why: "opened yesterday when claude-code was set to oldbox", LastTurn: noon.Add(-20 * time.Hour), Running: true, Turns: 2, Saved: true},
	}
}

func sampleLog() LogPane {
	l := LogPane{Follow: true}
	for i := range 30 {
		r := Request{Time: noon.Add(time.Duration(i-30) * 7 * time.Second), ID: fmt.Sprint("r", i), Agent: "claude-code",
			Session: "4e96a1b2-0000-4000-8000-000000000001", Turn: "continuation", Pin: "kept", Server: "glm", Method: "POST",
			Path: "/v1/messages", Model: "glm-5", Status: 200, Input: int64(1000 * i), Output: 120, FirstMS: 410, TotalMS: 9_900}
		switch i % 5 {
		case 1:
			r.Turn, r.Side, r.Model = "side", "title", "glm-air"
		case 3:
			r.Agent, r.Session, r.Server, r.Status, r.Error = "opencode", "ses_77aa", "lab/gpu2:8000", 502, "connection refused"
		}
		l.All = append(l.All, r)
		l.Rows = append(l.Rows, i)
	}
	l.Cursor = 29
	return l
}

func samplePreflight() *Preflight {
	return &Preflight{Server: "glm", Up: true, KeyOK: ptr(true), Models: []string{"glm-5", "glm-air"}, Formats: []string{"messages", "chat"},
		Context: 200_000, FirstMS: 210, Missing: []string{"claude-haiku-4-5"}, Rename: []Rename{{"claude-*haiku*", "glm-air"}},
		Tried: "one request of 1 token to glm-5", Kind: "vLLM", Names: []Name{{"claude-code", "claude-opus-4-5", "glm-5", true, true}}}
}

// screens are the samples of the goldens, by name.
var screens = map[string]func() *Screen{
	"list":    sample,
	"servers": func() *Screen { s := sample(); s.Focus, s.Server = PaneServers, 1; return s },
	"filter": func() *Screen {
		s := sample()
		s.Filter = Input{"parser", true}
		s.Rows, s.Cursor = s.Rows[:1], 0
		return s
	},
	"detail": func() *Screen { s := sample(); s.Body, s.Cursor = BodyDetail, 0; return s },
	"astray": func() *Screen { s := sample(); s.Body = BodyDetail; return s },
	"server": func() *Screen {
		s := sample()
		s.Body = BodyServer
		s.Tests["glm"] = Check{State: CheckDone, Result: samplePreflight()}
		return s
	},
	"handover":       handedOver,
	"handover-proxy": func() *Screen { s := handedOver(); s.Body = BodyProxy; return s },
	"pool":           func() *Screen { s := sample(); s.Body, s.Server = BodyServer, 1; return s },
	"log":            func() *Screen { s := sample(); s.Body = BodyLog; return s },
	"agents":         func() *Screen { s := sample(); s.Body, s.Agent = BodyAgents, 1; return s },
	"setups": func() *Screen {
		s := sample()
		s.Body = BodyAgents
		s.Setups = []Setup{{"claude-code", true, "enabled, /home/u/.claude/settings.json"}, {"codex", false, "not enabled"}}
		return s
	},
	"question": func() *Screen {
		s := sample()
		s.Body, s.Title, s.Question = BodyCommand, "Point codex here", "y writes this; any other key leaves it."
		s.Shown = []string{"--- /home/u/.codex/config.toml", "+++ /home/u/.codex/config.toml", "+openai_base_url = \"http://127.0.0.1:4780/codex/v1\""}
		return s
	},
	"help":   func() *Screen { s := sample(); s.Body = BodyHelp; return s },
	"proxy":  func() *Screen { s := sample(); s.Body = BodyProxy; return s },
	"switch": func() *Screen { return switchSample(sample()) },
	"move": func() *Screen {
		s := sample()
		s.Body = BodyMove
		s.Move = &MovePane{Session: s.Rows[2], Items: []string{"glm", "lab", "desk"}, Cursor: 2, Armed: true,
			Price: &MovePrice{To: "desk", Tokens: 9_000, Signed: true, ContextMax: 8_000, MissingModel: "claude-opus-4-5", Warnings: []string{"desk is failing"}}}
		return s
	},
	"remove": func() *Screen { s := sample(); s.Body, s.Remove = BodyRemove, &RemovePane{Server: "lab"}; return s },
	"command": func() *Screen {
		s := sample()
		s.Body, s.Title = BodyCommand, "Resume in claude-code"
		s.Shown = []string{"cd /src/parser && claude --resume 4e96a1b2-0000-4000-8000-000000000001", "It goes on on glm, where it is."}
		return s
	},
	"switched": func() *Screen {
		s := sample()
		s.Notices = []Notice{{Text: SwitchSentence("claude-code", "desk", map[string]int{"own": 1, "glm": 1, "lab": 1}), Undo: true}}
		return s
	},
	"stopped": func() *Screen {
		s := sample()
		s.Link = Link{State: LinkStopped, AsOf: noon.Add(-time.Minute), Start: "agentop proxy", CanKey: true}
		return s
	},
	"never": func() *Screen {
		return &Screen{Theme: NewTheme(true, false), Link: Link{State: LinkStopped, Start: "agentop proxy"}}
	},
	"troubled": func() *Screen {
		return &Screen{Theme: NewTheme(true, false), Body: BodyProxy, Link: Link{State: LinkTroubled, PID: 4242, CanKey: true,
			Reason: `/home/u/.agentop/config.yaml:4:9: unknown field "ulr"; did you mean "url"?`}}
	},
	"broken": func() *Screen {
		s := sample()
		s.Status.Store = Store{Pins: 4, Error: "sync pins.json: no space left on device", Since: noon.Add(-time.Hour), Unsaved: 2}
		s.Status.ConfigError = `config.yaml:7:5: unknown field "ur"; did you mean "url"?`
		s.Status.Warnings = []string{"server glm: plain http to another machine"}
		return s
	},
	"empty": func() *Screen { s := sample(); s.Rows, s.Known, s.Cursor = nil, 0, 0; return s },
	"ascii": func() *Screen {
		s := sample()
		s.Theme = NewTheme(false, true)
		s.Rows[0].Title = "日本語 and plain"
		return s
	},
	"hostile": hostile,
}

func switchSample(s *Screen) *Screen {
	s.Body = BodySwitch
	s.Switch = &SwitchPane{Agents: []string{"claude-code", "codex", "opencode"}, Agent: 1, Before: Own, Stay: map[string]int{"own": 2, "lab": 1},
		Items: []Choice{
			{Name: "glm", Check: Check{State: CheckDone, Result: samplePreflight()}},
			{Name: "lab", Check: Check{State: CheckAsked}},
			{Name: "desk", Check: Check{State: CheckDone, Result: &Preflight{Server: "desk", Warnings: []string{"connection refused"}}}},
			{Name: "own", Note: "not routed: https://chatgpt.com/backend-api/codex"},
		}}
	return s
}

// nasty are texts that break screens.
var nasty = []string{
	"\x1b]52;c;ZXZpbA==\x07clipboard", "\x1b[2Jclear", "\x1b]8;;http://example.com\x1b\\link", "bell\a", "two\r\nlines\tand a tab", "\x1b]0;unfinished",
	"\u009b2Jc1", "日本語のタイトルは幅が広い", "한국어 제목", "👨‍👩‍👧‍👦 family 🏳️‍🌈 flag 🇩🇪 hand 👋🏽 heart ❤️ key 1️⃣", "e\u0301a\u0308o\u0302 marks",
	"Z" + strings.Repeat("\u0301", 500) + "algo", "مرحبا بالعالم 123 عربي", "שלום \u202eoverride", "zero\u200bwidth\u200djoin\ufeff", "bad \xff\xfe bytes",
	"हिन्दी क्षि", "ไทย ที่นี่", strings.Repeat("long title ", 1000), strings.Repeat("界", 4000), "\u0301leading mark", "",
}

// hostile has such texts in every field.
func hostile() *Screen {
	s := sample()
	next := 0
	text := func() string { next++; return nasty[next%len(nasty)] }
	st := &s.Status
	st.Version, st.Home, st.ConfigFile, st.ConfigError, st.Listen = text(), text(), text(), text(), []string{text()}
	st.Warnings = []string{text(), text()}
	st.Store.Error, st.Log.Error = text(), text()
	for i := range st.Agents {
		a := &st.Agents[i]
		a.Agent, a.Server, a.Upstream, a.Version = text(), text(), text(), text()
	}
	for i := range st.Servers {
		v := &st.Servers[i]
		v.Name, v.URL, v.Key, v.Health.Error, v.Health.State = text(), text(), text(), text(), text()
		v.Warnings, v.Rename = []string{text()}, []Rename{{text(), text()}}
		for m := range v.Members {
			v.Members[m].Name, v.Members[m].Health.Error = text(), text()
		}
	}
	var rows []*Session
	for i := range 2 * len(nasty) {
		rows = append(rows, &Session{Agent: text(), ID: text(), Title: nasty[i%len(nasty)], Dir: text(), Server: text(), Pin: text(), Why: text(),
			ModelAsked: text(), ModelSent: text(), Error: text(), Turns: 1 << 40, Context: 1 << 60, ContextMax: 3, Cached: -1, Status: i * 100, LastTurn: noon.Add(time.Hour)})
	}
	s.Rows, s.Known = rows, len(rows)
	for i := range s.Log.All {
		r := &s.Log.All[i]
		r.Agent, r.Session, r.Turn, r.Side, r.Pin, r.Server, r.Model, r.Path, r.Error = text(), text(), text(), text(), text(), text(), text(), text(), text()
	}
	s.Notices = []Notice{{Text: text(), Bad: true}, {Text: text()}}
	return s
}
