package view

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// flat is the text of a screen, wherever its lines break.
func flat(s *Screen, w, h int) string {
	return strings.Join(strings.Fields(ansi.Strip(s.Render(w, h, noon))), " ")
}

// says reports what of a screen's text is missing.
func says(t *testing.T, s *Screen, w, h int, parts ...string) {
	t.Helper()
	text := flat(s, w, h)
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%dx%d does not say %q:\n%s", w, h, p, ansi.Strip(s.Render(w, h, noon)))
		}
	}
}

func TestAgentsThatWereNeverUsedTakeNoLine(t *testing.T) {
	for _, c := range []struct {
		server string
		w      int
		want   string
	}{
		{"glm", 80, "new: claude-code → glm   codex → own   opencode → lab   qwen-code → nowhere"},
		{"glm", 70, "new: claude-code → glm   codex → own   opencode → lab  +1: a"},
		{"glm", 45, "claude-code → glm   codex → own\n opencode → lab  +1: a"},
		{"a-server-of-some-length", 80, "new: claude-code → a-server-of-some-length (not configured)   codex → own\n      opencode → lab  +1: a"},
	} {
		s := sample()
		s.Status.Agents = append(s.Status.Agents, Agent{Agent: "qwen-code", Upstream: "none"})
		s.Status.Agents[0].Server = c.server
		var lines []string
		for _, l := range s.agentLines(c.w, 24) {
			lines = append(lines, strings.TrimRight(ansi.Strip(l), " "))
		}
		if got := strings.TrimSpace(strings.Join(lines, "\n")); got != c.want {
			t.Errorf("%s in %d cells:\n%s\nwant:\n%s", c.server, c.w, got, c.want)
		}
	}
}

// A conversation is known by its title and its server, so those have room
// before all else.
func TestTitleAndServerHaveRoom(t *testing.T) {
	s := sample()
	for _, row := range s.Rows {
		row.Server, row.ModelSent = "team-openrouter", "qwen3-coder-480b-instruct"
	}
	for w := 60; w <= 120; w++ {
		if c := s.sessionColumns(w); c.title < leastTitle || c.title+c.sum()+2 > w {
			t.Errorf("%d cells: %d for the title, %d for the rest", w, c.title, c.sum())
		}
		if c := s.sessionColumns(w); w >= 80 && c.server < len("team-openrouter*") {
			t.Errorf("%d cells: %d for the server", w, c.server)
		}
	}
	says(t, s, 80, 24, "6 running, v: all 40, * not where new ones go, enter: more", "team-openrouter")
	says(t, s, 60, 24, "enter: more")
}

func TestStatusIsToldInWords(t *testing.T) {
	for status := 100; status < 700; status++ {
		if got := StatusText(status); (got != "") != (status >= 400) {
			t.Errorf("%d: %q", status, got)
		}
	}
	s := sample()
	row := s.Rows[2]
	row.Status = 529
	says(t, s, 80, 24, "Its last turn failed: 529 from own: overloaded")
	says(t, s, 120, 40, "last error 529 from own: overloaded")
	row.Streams = 1 // the next turn is under way
	if text := flat(s, 120, 40); strings.Contains(text, "overloaded") {
		t.Errorf("a turn that streams has failed: %s", text)
	}
	s = sample()
	s.Body = BodyLog
	s.Log.All[29].Status = 401
	says(t, s, 80, 24, "! 401 ! key refused")
}

func TestPickerTellsWhatBecameOfTheLastTurn(t *testing.T) {
	s := switchSample(sample())
	s.Status.Servers[0].Health = Health{State: "failing", At: noon, Error: "529 Overloaded"}
	says(t, s, 120, 40, "last turn: 529 Overloaded; up 0.21s, key accepted")
	s.Status.Servers[0].Health.State = "ok"
	if text := flat(s, 120, 40); strings.Contains(text, "last turn:") {
		t.Errorf("a healthy server has a failed turn: %s", text)
	}
}

func TestPickerNamesItsAgentFirst(t *testing.T) {
	says(t, switchSample(sample()), 80, 24, "Switch codex the server of its new conversations", "claude-code [codex] opencode tab: next agent")
}

func TestEmptyScreensSayWhatFillsThem(t *testing.T) {
	s := switchSample(sample())
	s.Status.Servers, s.Switch.Items = nil, s.Switch.Items[3:]
	says(t, s, 80, 24, "no server is configured: `agentop server add NAME URL`")
	s.Body, s.Rows, s.Known = BodyList, nil, 0
	says(t, s, 80, 24, "no server is configured yet. Add one with `agentop server add NAME URL`")
	says(t, s, 120, 40, "no server is configured yet")
	if text := flat(s, 120, 40); strings.Contains(text, "Why it is there") {
		t.Errorf("a reason is offered for no conversation: %s", text)
	}
	s = switchSample(sample())
	s.Switch.Items, s.Switch.Filter = nil, "xyz"
	says(t, s, 80, 24, "no server matches; ctrl-u clears the filter")
}

func TestMoveTellsWhatOwnIs(t *testing.T) {
	s := screens["move"]()
	s.Move.Items, s.Move.Cursor = []string{"glm", Own}, 1
	says(t, s, 80, 24, "own: the agent's own upstream, https://api.anthropic.com")
	s.agent("claude-code").Upstream = "none"
	says(t, s, 80, 24, "own: no own upstream is known")
}

func TestServerThatWasNotAskedSaysSo(t *testing.T) {
	s := screens["server"]()
	s.Status.Servers[0].Health = Health{State: "unknown"}
	says(t, s, 80, 24, "○ not asked: no turn went there since the proxy started")
}

func TestOwnOffersNoKeyThatDoesNothing(t *testing.T) {
	s := sample()
	s.Focus = PaneServers
	says(t, s, 100, 24, "t test n add x remove")
	s.Server = len(s.Status.Servers)
	for _, s.Body = range []Body{BodyList, BodyServer} {
		if text := flat(s, 100, 24); strings.Contains(text, "t test") || strings.Contains(text, "x remove") {
			t.Errorf("own is offered to be tested or removed: %s", text)
		}
	}
}

// What cannot be guessed from the screen is found with ?.
func TestKeysTellWhatWordsMean(t *testing.T) {
	s := sample()
	s.Body = BodyHelp
	says(t, s, 100, 80, "`titles: off` in config.yaml", "new: where the next conversation", "running a turn in the last 24 hours", "pin the server that",
		"request log / filter by any word")
}

// Enter opens the newest request while the log follows it: the cursor says so.
func TestLogThatFollowsShowsItsCursor(t *testing.T) {
	s := sample()
	s.Body = BodyLog
	says(t, s, 80, 24, "▸ 11:59:53")
	if newest := s.logRow(&s.Log.All[29], true, logColumnsFor(80, false), 80, noon); strings.Contains(newest, "\x1b[7m") {
		t.Errorf("the newest is marked as if it were chosen: %q", newest)
	}
}
