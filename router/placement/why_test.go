package placement

import (
	"testing"
	"time"

	"agentop/agents"
)

// What is written once is read on many days: a line that gave only the hour
// gives the day from the next one on, and no line changes otherwise.
func TestALineWrittenOnAnotherDayTellsWhich(t *testing.T) {
	at := time.Date(2026, 11, 29, 14, 2, 0, 0, time.FixedZone("", 3600))
	days := map[string]time.Time{"that day": at.Add(time.Hour), "the next day": at.Add(24 * time.Hour), "in another zone": at.Add(time.Hour).UTC()}
	decisions := map[string]Decision{
		"opened":                   {Rule: Rule4Opening, Server: "glm", Turn: opening},
		"not routed":               {Rule: Rule3NotRouted, Server: Own, Turn: opening},
		"unseen, no own upstream":  {Rule: Rule7NoUpstream, Server: "glm", Turn: continuation},
		"opening, no own upstream": {Rule: Rule7NoUpstream, Server: "glm", Turn: opening},
		"fork":                     {Rule: Rule2cKey, Pin: PinFollowed, From: claude("4e96aa01")},
		"restored":                 {Rule: Rule2aLog, Pin: PinRestored},
		"unseen":                   {Rule: Rule5Unseen, Server: Own, Turn: continuation},
	}
	for name, d := range decisions {
		for when, now := range days {
			got, want := Dated(Why(agents.ClaudeCode, d, at, at), at, now), Why(agents.ClaudeCode, d, at, now)
			if got != want {
				t.Errorf("%s, read %s: got %q, want %q", name, when, got, want)
			}
		}
	}
	for _, why := range []string{"moved here by you on 29 Nov 14:02", "", "opened 15:00 when codex was set to lab"} {
		if got := Dated(why, at, at.Add(48*time.Hour)); got != why {
			t.Errorf("got %q, want %q as it is", got, why)
		}
	}
}
