package placement

import (
	"fmt"
	"strings"
	"time"

	"agentop/agents"
)

// beganBefore is how every screen, command and page words it that agentop did
// not see a conversation begin.
const beganBefore = "began before agentop saw it"

// Why says in one line why a conversation of agent a is where it is. d is the
// decision that made its pin, at is when that was, now is when the line is
// read: it decides whether the date is told. Both are shown in their own zones.
func Why(a agents.Agent, d Decision, at, now time.Time) string {
	when := clock(at, now)
	switch d.Rule {
	case Rule1Pin:
		return "kept by its pin"
	case Rule2aLog:
		return "restored from the request log"
	case Rule2bResponse:
		return follows(d, "previous response")
	case Rule2cKey, Rule2dMark, Rule2eParent:
		return follows(d, "fork")
	case Rule3NotRouted:
		if d.Turn == agents.Opening {
			return fmt.Sprintf("opened %s when %s was not routed", when, a)
		}
		return beganBefore
	case Rule4Opening:
		return fmt.Sprintf("opened %s when %s was set to %s", when, a, d.Server)
	case Rule5Unseen:
		return beganBefore
	case Rule7NoUpstream:
		if d.Turn == agents.Continuation {
			return fmt.Sprintf("%s, and %s has no upstream of its own: on %s since %s", beganBefore, a, d.Server, when)
		}
		return fmt.Sprintf("%s has no upstream of its own", a)
	}
	return whySide(d)
}

// Dated is a line that Why wrote at a time, as it reads at another: where that
// is another day, the line tells which one it was.
func Dated(why string, at, now time.Time) string {
	written, read := clock(at, at), clock(at, now)
	if rest, ok := strings.CutPrefix(why, "opened "+written+" "); ok {
		return "opened " + read + " " + rest
	}
	if rest, ok := strings.CutSuffix(why, " since "+written); ok {
		return rest + " since " + read
	}
	return why
}

// whySide is the line for what pins nothing; only a request's own row shows it.
func whySide(d Decision) string {
	switch d.Rule {
	case Rule6Reply:
		return "where its own earlier replies were made"
	case Rule6Session, NotInferenceSession:
		return "with its conversation"
	case Rule6Parent:
		return "with its parent " + short(d.From.Session)
	case Rule6History, NotInferenceHistory:
		return follows(d, "same history")
	case Rule6Own, NotInferenceOwn:
		return "belongs to no known conversation"
	case NotInferenceServer:
		return "the agent's server"
	}
	return ""
}

func follows(d Decision, how string) string {
	switch {
	case d.Pin == PinRestored:
		return "restored from the request log"
	case d.Pin == PinKept:
		return "known by its history"
	case d.From.Session == "":
		return "follows a side request's reply"
	}
	return fmt.Sprintf("follows %s (%s)", short(d.From.Session), how)
}

// short is as much of a session as one line has room for.
func short(session string) string {
	const most = 8
	runes := []rune(Plain(session))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most]) + "..."
}

func clock(at, now time.Time) string {
	y, m, d := at.Date()
	if ny, nm, nd := now.In(at.Location()).Date(); y == ny && m == nm && d == nd {
		return at.Format("15:04")
	}
	return at.Format("2 Jan 15:04")
}
