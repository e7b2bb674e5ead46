package router

import (
	"errors"
	"io"
	"net/http"
	"time"

	"agentop/agents"
	"agentop/router/control"
	"agentop/router/placement"
	"agentop/router/prefix"
	"agentop/router/reqlog"
	"agentop/router/stream"
)

// observe takes the head of the upstream's answer. It sees every answer, an
// error too, and changes none but for the route header.
func (t *turn) observe(res *http.Response, to *target) {
	t.status = res.StatusCode
	delete(res.Header, RouteHeader) // an agentop behind this one has its own
	t.route().set(res.Header)
	// A server of HTTP would invent these where the upstream sent none.
	for _, name := range []string{"Content-Type", "Date"} {
		if _, ok := res.Header[name]; !ok {
			t.w.Header()[name] = nil
		}
	}
	t.judge(res, to)
	if res.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	res.Body = t.heed(res)
	t.answer = newAnswer(res, t.rec.Format, t.r.Now)
	t.answer.whole = t.learn
	if o := t.answer.observer; o != nil && t.rec.Kind != agents.KindTitle {
		o.LeaveOutText()
	}
	res.Body = t.answer
	if t.upload.sent() { // a stream may last for an hour
		t.upload.release()
	}
}

// letGo gives back what reading the body took.
func (t *turn) letGo() {
	if t.scratch != nil {
		t.scratch.release()
		t.scratch = nil
	}
}

// began counts the request as a stream of its conversation.
func (t *turn) began() {
	if t.conv.Session == "" || !isMain(t.decision.Turn) {
		return
	}
	t.running = true
	pin, fresh, place, model, signed := t.pin, t.decision.Pin.Makes(), placeName(t.decision.Server, t.member), t.sent, t.scratch.outline.Signed
	t.r.roster.update(t.conv, func(s *control.Session) {
		s.Streams++
		s.Server, s.Saved = place, true
		s.ModelAsked, s.ModelSent = t.scratch.outline.Model, model
		s.Signed = s.Signed || signed
		if pin != nil {
			s.Pin, s.Why, s.Opened, s.Dir = pin.Pin, pin.Why, pin.Opened, pin.Dir
			if fresh || s.Title == "" { // the row may have the agent's own title, the pin the first words
				s.Title = pin.Title
			}
		}
	})
}

// end records the turn, however it ended.
func (t *turn) end() {
	if t.upload != nil {
		defer t.upload.release()
	}
	defer t.letGo()
	if t.answered || t.stranger {
		return
	}
	var sum stream.Summary
	if t.answer != nil {
		sum = t.answer.summary()
		t.cut = t.cutBy()
	}
	now := t.r.Now()
	line := t.line(sum, now)
	t.r.Recorder.Append(line)
	t.r.Meter.Request(line.Agent, line.Server, t.route().turn, t.status)
	t.countRow(sum, line, now)
	t.publish(line)
}

// cutBy says who ended the answer before its end; "" when it came whole.
func (t *turn) cutBy() string {
	switch {
	case errors.Is(t.answer.err, io.EOF):
		return ""
	case t.in.Context().Err() != nil, t.answer.err == nil:
		return "client" // we stopped reading because we could not write
	}
	t.r.health.note(placeName(t.decision.Server, t.member), healthFailing, "it broke an answer off", t.r.Now())
	t.broken = t.answer.brokenBy()
	t.r.Logger.Warn("the server broke its answer off; the client's connection was cut",
		"server", placeName(t.decision.Server, t.member), "class", t.broken, "error", errorWords(t.answer.err))
	return "server"
}

// line is the request's line in the log. It never holds a body, a query or a
// credential. Its time is the request's arrival: lines that disagree are
// settled by it, and a conversation may be moved while a turn is on its way.
func (t *turn) line(sum stream.Summary, now time.Time) reqlog.Line {
	route := t.route()
	l := reqlog.Line{
		Time: t.started, Kind: reqlog.KindTurn, ID: t.id,
		Agent: string(route.agent), Session: t.session(), Turn: route.turn.String(), Pin: route.pin, Server: route.server,
		Format: formatWord(t.rec.Format), Method: t.in.Method, Path: t.split.Path,
		ModelAsked: t.asked, ModelSent: t.sent, Status: t.status, Cut: t.cut,
		Input: sum.Usage.Input, CacheRead: sum.Usage.CacheRead, CacheWrite: sum.Usage.CacheWrite, Output: sum.Usage.Output,
		BytesIn: max(t.in.ContentLength, 0), TotalMS: now.Sub(t.started).Milliseconds(), Error: sum.Error,
	}
	if route.turn == agents.Side || route.turn == agents.NotInference {
		l.Side = string(t.rec.Kind)
	}
	switch {
	case t.failure != nil:
		l.Error = t.failure.class
	case l.Error == "":
		l.Error = t.broken
	}
	if t.answer != nil {
		l.BytesOut = t.answer.bytes
		if !t.answer.first.IsZero() {
			first := t.answer.first.Sub(t.started)
			l.FirstMS = first.Milliseconds()
			t.r.health.firstByte(l.Server, first)
			t.r.Meter.FirstByte(l.Server, first)
		}
	}
	if t.status/100 == 2 && t.decision.Server != "" {
		t.remember(&l, sum)
	}
	return l
}

// remember adds to the line by what the conversation will be known again.
func (t *turn) remember(l *reqlog.Line, sum stream.Summary) {
	if isMain(t.decision.Turn) {
		l.Key = t.key
	}
	if sum.MarkBytes >= minMark {
		l.Mark = prefix.Format(sum.Mark)
	}
	if sum.ResponseID != "" {
		l.Responses = []string{sum.ResponseID}
	}
}

// learn takes in at once by what an answer will be known again. The client has
// not seen its end yet, so its next turn cannot come sooner; the line in the
// log follows when the request has ended.
func (t *turn) learn(sum stream.Summary) {
	mark := sum.Mark
	if sum.MarkBytes < minMark {
		mark = 0
	}
	if mark == 0 && sum.ResponseID == "" {
		return
	}
	switch {
	case isMain(t.decision.Turn) && t.conv.Session != "":
		t.r.Recorder.Answered(t.conv, t.decision.Server, mark, sum.ResponseID, t.started)
	case t.decision.Turn == agents.Side:
		t.r.Recorder.Answered(placement.Conversation{}, t.decision.Server, mark, sum.ResponseID, t.started)
	}
}

// pinLine is the line that is written when a pin is made.
func (t *turn) pinLine() reqlog.Line {
	return reqlog.Line{
		Time: t.r.Now(), Kind: reqlog.KindPin, ID: t.id, Agent: string(t.conv.Agent), Session: t.conv.Session,
		Turn: t.decision.Turn.String(), Pin: string(t.decision.Pin), Why: t.pin.Why,
		Server:     placeName(t.decision.Server, t.member),
		ModelAsked: t.asked, ModelSent: t.sent, Key: t.key,
	}
}

// countRow adds the finished turn to its conversation's row.
func (t *turn) countRow(sum stream.Summary, l reqlog.Line, now time.Time) {
	if t.rec.Kind == agents.KindTitle && t.cfg.Titles && sum.Text != "" && t.rec.Session != "" {
		t.keepTitle(sum.Text)
	}
	if !t.running {
		return
	}
	t.r.roster.update(t.conv, func(s *control.Session) {
		s.Streams--
		s.LastTurn = now
		s.Turns++
		s.Status, s.Error = t.status, l.Error
		s.FirstMS, s.TotalMS = l.FirstMS, l.TotalMS
		addUsage(s, sum.Usage)
	})
}

// keepTitle takes the agent's own title for its conversation. It is stored
// with the pin's next save and never by one of its own.
func (t *turn) keepTitle(answer string) {
	title := agents.TitleOf(answer)
	if title == "" {
		return
	}
	c := placement.Conversation{Agent: t.rec.Agent, Session: t.rec.Session}
	if _, ok := t.r.roster.get(c, t.started); ok {
		t.r.roster.update(c, func(s *control.Session) { s.Title = title })
	}
}

// publish tells people who look of the request.
func (t *turn) publish(l reqlog.Line) {
	if !t.r.Watched() {
		return
	}
	t.r.Publish(control.Event{Kind: control.EventRequest, Request: &control.Request{
		Time: l.Time, ID: l.ID, Agent: l.Agent, Session: placement.Plain(l.Session), Turn: l.Turn, Side: l.Side,
		Pin: l.Pin, Server: l.Server, Method: l.Method, Path: l.Path, Model: l.ModelSent, Status: l.Status,
		Input: l.Input, Output: l.Output, FirstMS: l.FirstMS, TotalMS: l.TotalMS, Error: l.Error,
	}})
}
