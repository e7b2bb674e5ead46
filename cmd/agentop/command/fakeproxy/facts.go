package fakeproxy

import (
	"time"

	"agentop/router/control"
)

func sessions() []control.Session {
	return []control.Session{
		{Agent: "claude-code", ID: "4e96a1b2-0000-4000-8000-000000000001", Title: "fix the parser", Dir: "/src/parser",
			Server: "glm", Pin: "new", Why: "opened 11:02 when claude-code was set to glm",
			Opened: Epoch.Add(-time.Hour), LastTurn: Epoch, Running: true, Streams: 1, Turns: 12,
			ModelAsked: "claude-opus-4-5", ModelSent: "glm-5", Context: 81_000, ContextMax: 200_000, Cached: 79_000,
			Input: 400_000, Output: 9_000, CacheRead: 380_000, FirstMS: 410, TotalMS: 9_900, Status: 200, Saved: true},
		{Agent: "claude-code", ID: "4e96ffff-0000-4000-8000-000000000002", Title: "evil \x1b]52;c;ZXZpbA==\x07\ttitle\n",
			Server: "own", Pin: "followed", Why: "follows 4e96a1b2 (fork)", LastTurn: Epoch.Add(-time.Minute),
			Running: true, Turns: 3, ModelAsked: "claude-opus-4-5", Signed: true, Context: 9_000, Saved: true},
		{Agent: "codex", ID: "0199-codex", Server: "lab/gpu1:8000", Pin: "restored", Why: "restored from the request log",
			LastTurn: Epoch.Add(-2 * time.Hour), Running: true, Turns: 40, ModelAsked: "gpt-5.2", Error: "upstream 529", Status: 529},
		{Agent: "opencode", ID: "\x01px:00ff", Server: "own", Pin: "none", Why: "began before agentop saw it",
			LastTurn: Epoch.Add(-72 * time.Hour), Turns: 1},
	}
}

func (f *Proxy) status() control.Status {
	s := control.Status{
		Version: "v1.0-fake", PID: 4242, Started: Epoch, Home: "/home/u/.agentop",
		Listen: []string{"127.0.0.1:4780", "[::1]:4780"}, ConfigFile: "/home/u/.agentop/config.yaml",
		Store: control.Store{Pins: 4}, Log: control.Log{Loaded: true, Lines: 90, Keys: 70}, Running: 3, Streams: 1,
		Agents: []control.AgentStatus{
			{Agent: "claude-code", Server: "glm", Upstream: "https://api.anthropic.com", Since: Epoch, LastSeen: Epoch, Version: "2.1.0", Running: 2},
			{Agent: "codex", Upstream: "https://api.openai.com", Running: 1},
			{Agent: "opencode", Server: "lab", Upstream: "none"},
		},
		Servers: []control.Server{
			{Name: "glm", URL: "https://glm.example.com", Key: "stored", Rename: []control.Rename{{Glob: "claude-*", Name: "glm-5"}},
				Health: control.Health{State: "ok", At: Epoch}, Running: 1, Streams: 1, FirstMS: 410},
			{Name: "lab", Key: "none", Health: control.Health{State: "ok", At: Epoch}, Running: 1, Members: []control.Member{
				{Name: "gpu1:8000", URL: "http://gpu1:8000", Health: control.Health{State: "ok"}, Capacity: 16, Cost: 1, Streams: 3},
				{Name: "gpu2:8000", URL: "http://gpu2:8000", Health: control.Health{State: "down", Error: "refused"}, Capacity: 16, Cost: 2},
			}},
		},
	}
	if f.Broken {
		s.ConfigError = "config.yaml:7:5: unknown field \"ur\"; did you mean \"url\"?"
		s.Store = control.Store{Pins: 4, Error: "sync pins.json: no space left on device", Since: Epoch, Unsaved: 2}
		s.Log.Error = "write: no space left on device"
		s.Warnings = []string{"server glm: plain http"}
	}
	return s
}
