package router

import (
	"math"
	"time"

	"agentop/router/control"
	"agentop/router/placement"
)

// row is a conversation's control.Session in little memory: there are
// thousands that nobody looks at. Its conversation is its key in the roster.
type row struct {
	title, dir, why, err, server, pin, asked, sent string

	opened, lastTurn int64 // Unix nanoseconds; zero is none

	context, cached, input, output, cacheRead int64

	firstMS, totalMS, streams, turns int32
	status                           int16
	signed, saved                    bool
}

// rowOf packs what s says but for its conversation, Running and ContextMax,
// which are told anew each time.
func rowOf(s *control.Session) row {
	return row{
		title: s.Title, dir: s.Dir, why: s.Why, err: s.Error,
		opened: nanos(s.Opened), lastTurn: nanos(s.LastTurn),
		context: s.Context, cached: s.Cached, input: s.Input, output: s.Output, cacheRead: s.CacheRead,
		firstMS: fit(s.FirstMS), totalMS: fit(s.TotalMS),
		server: s.Server, pin: s.Pin, asked: s.ModelAsked, sent: s.ModelSent,
		streams: fit(int64(s.Streams)), turns: fit(int64(s.Turns)), status: int16(s.Status),
		signed: s.Signed, saved: s.Saved,
	}
}

// session is the row of c as it is told.
func (of *row) session(c placement.Conversation) control.Session {
	return control.Session{
		Agent: string(c.Agent), ID: c.Session, Title: of.title, Dir: of.dir,
		Server: of.server, Pin: of.pin, Why: of.why,
		Opened: fromNanos(of.opened), LastTurn: fromNanos(of.lastTurn),
		Streams: int(of.streams), Turns: int(of.turns),
		ModelAsked: of.asked, ModelSent: of.sent,
		Context: of.context, Cached: of.cached, Input: of.input, Output: of.output, CacheRead: of.cacheRead,
		FirstMS: int64(of.firstMS), TotalMS: int64(of.totalMS), Status: int(of.status), Error: of.err,
		Signed: of.signed, Saved: of.saved,
	}
}

func (of *row) runs(now time.Time) bool { return runs(int(of.streams), fromNanos(of.lastTurn), now) }

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func fit(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }
