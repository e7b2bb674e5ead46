package router

import (
	"net/http"
	"strings"
	"time"

	"agentop/agents"
	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/placement"
)

// minMark is the fewest bytes that a reply must have for its mark to count.
const minMark = 48

// place decides where the turn goes and, for a new conversation, puts the pin
// on disk. When it returns nil, nothing more can go wrong for durability.
func (t *turn) place() *failure {
	q := t.question()
	d, f := t.decide(&q)
	if f != nil {
		return f
	}
	if !d.Pin.Makes() && !(isMain(d.Turn) && t.r.gates.busy(t.gateFor(d))) {
		return t.settle(d)
	}
	// The conversation is new as far as this look tells, or its pin is just
	// being written and may not be on disk yet. Only one request of it may
	// pin, so the question is asked again when it is our turn.
	leave, err := t.r.gates.enter(t.in.Context(), t.gateFor(d))
	if err != nil {
		return t.gone()
	}
	defer leave()
	t.pins = nil
	if d, f = t.decide(&q); f != nil {
		return f
	}
	return t.settle(d)
}

// gateFor is what requests that race to pin the same conversation have in
// common. A conversation without a stated session has only its content.
func (t *turn) gateFor(d placement.Decision) placement.Conversation {
	session := d.Session
	if t.rec.Session == "" && len(t.scratch.keys) > 0 {
		session = "\x01" + string(appendHex(nil, t.scratch.keys[len(t.scratch.keys)-1]))
	}
	return placement.Conversation{Agent: t.rec.Agent, Session: session}
}

func (t *turn) question() placement.Question {
	o := &t.scratch.outline
	q := placement.Question{
		Agent: t.rec.Agent, Session: t.rec.Session, Parent: t.rec.Parent,
		Turn: t.rec.Unknown, Kind: t.rec.Kind, Format: t.rec.Format,
		Response: o.PreviousResponseID, Keys: t.scratch.keys, Began: o.Began,
		Unread: t.rec.Unknown == agents.NotInference && t.in.Method == http.MethodPost &&
			t.rec.Kind == agents.KindOther,
	}
	marks := t.scratch.marks[:0]
	for i := len(o.Replies) - 1; i >= 0 && len(marks) < placement.MaxLookups; i-- {
		if o.Replies[i].Bytes >= minMark {
			marks = append(marks, o.Replies[i].Mark)
		}
	}
	t.scratch.marks = marks
	q.Marks = marks
	return q
}

// decide asks the rules, and waits where they say so.
func (t *turn) decide(q *placement.Question) (placement.Decision, *failure) {
	choices := t.choices()
	for {
		d := placement.Place(*q, choices, known{t})
		switch d.Wait {
		case placement.WaitNone:
			return d, nil
		case placement.WaitIndex:
			select {
			case <-t.r.Recorder.Loaded():
			case <-t.in.Context().Done():
				return d, t.gone()
			}
		case placement.WaitOpening:
			if !t.awaitOpening(placement.Conversation{Agent: q.Agent, Session: q.Session}) {
				return d, t.gone()
			}
			q.Waited = true
		}
	}
}

// awaitOpening waits a moment for c to be pinned; false if the client left.
func (t *turn) awaitOpening(c placement.Conversation) bool {
	pinned, stop := t.r.gates.await(c)
	defer stop()
	if _, ok := (known{t}).Pin(c); ok { // pinned between the look and the wait
		return true
	}
	timer := time.NewTimer(awaitOpening)
	defer timer.Stop()
	select {
	case <-pinned:
	case <-timer.C:
	case <-t.in.Context().Done():
		return false
	}
	return true
}

// gone is for a client that hung up while its request waited.
func (t *turn) gone() *failure {
	t.cut = "client"
	return unavailable("client-gone", "the request was given up before it was placed", "")
}

func (t *turn) choices() placement.Choices {
	choice := t.cfg.Agents[string(t.rec.Agent)]
	_, upstream := t.ownUpstream()
	return placement.Choices{Server: choice.Server, Upstream: upstream, Servers: t.r.servers(t.cfg)}
}

func (t *turn) ownUpstream() (string, bool) {
	chatgpt := t.in.Header.Get("Chatgpt-Account-Id") != ""
	return t.cfg.OwnUpstream(string(t.rec.Agent), t.split.Provider, chatgpt)
}

// settle takes the decision: the server, the model's name there, and the pin.
func (t *turn) settle(d placement.Decision) *failure {
	t.decision = d
	if d.Refusal.Kind != placement.RefusedNot {
		t.r.Meter.Refused(string(d.Refusal.Kind))
		if d.Refusal.Kind == placement.RefusedFormat && t.r.Formats != nil {
			t.r.Formats.Doubt(d.Refusal.Server)
		}
		return refuse(string(d.Refusal.Kind), strings.TrimPrefix(d.Refusal.Text(), "agentop: "), "")
	}
	if d.Session != "" {
		t.conv = placement.Conversation{Agent: t.rec.Agent, Session: d.Session}
		t.pin = known{t}.record(t.conv)
	}
	if d.Server != placement.Own {
		t.server, _ = t.cfg.Server(d.Server)
	}
	fresh := d.Pin.Makes()
	if fresh {
		t.pin = t.newPin(d)
	}
	t.chooseMember()
	renamed := t.chooseModel()
	if isMain(d.Turn) && t.pin != nil {
		t.keepPin(fresh, renamed)
	}
	if isMain(d.Turn) && d.Session != "" && len(t.scratch.keys) > 0 {
		t.r.Recorder.Register(t.conv, d.Server, t.scratch.keys[len(t.scratch.keys)-1], t.started)
	}
	return nil
}

func isMain(turn agents.Turn) bool { return turn == agents.Opening || turn == agents.Continuation }

func (t *turn) newPin(d placement.Decision) *pinRecord {
	now := t.r.Now()
	p := &pinRecord{
		Agent: t.conv.Agent, Session: t.conv.Session, Server: d.Server,
		Opened: now, Pin: string(d.Pin), Why: placement.Why(t.rec.Agent, d, now, now),
	}
	// A conversation that goes on under a new name keeps its models' names.
	if from := (known{t}).record(d.From); from != nil {
		p.Names, p.Member = from.Names, from.Member
	}
	if t.cfg.Titles && d.Turn == agents.Opening {
		o := &t.scratch.outline
		p.Title = agents.Title(o, t.plain, t.rec.Agent)
		p.Dir = agents.Dir(o, t.plain, t.rec.Agent)
	}
	return p
}

// chooseModel says which model name is sent and whether the pin has to
// remember a new one.
func (t *turn) chooseModel() (remember bool) {
	asked := t.scratch.outline.Model
	t.sent = asked
	if t.server == nil || asked == "" {
		return false
	}
	if t.pin != nil {
		if kept, ok := t.pin.Names[asked]; ok {
			t.sent = kept
			return false
		}
	}
	t.sent, _ = t.server.SendModel(asked)
	if t.pin == nil || !isMain(t.decision.Turn) || len(t.pin.Names) >= maxNames {
		return false
	}
	names := map[string]string{asked: t.sent}
	for k, v := range t.pin.Names {
		names[k] = v
	}
	t.pin.Names = names
	return true
}

// keepPin stores the pin: durably before the turn is sent when it is new, at
// leisure when only its names, its member or its time changed.
func (t *turn) keepPin(fresh, renamed bool) {
	now := t.r.Now()
	moved := t.pin.Member != t.member
	reason := ""
	switch {
	case fresh:
		reason = "new"
	case moved:
		reason = "member"
	case renamed:
		reason = "model"
	case now.Sub(t.pin.Renewed) >= pinRenew || now.Before(t.pin.Renewed.Add(-pinRenew)):
		reason = "renew"
	default:
		return
	}
	t.pin.Member, t.pin.Renewed = t.member, now
	if !fresh {
		t.r.entitle(t.pin)
	}
	t.r.Meter.PinWrite(reason)
	if err := t.r.Pins.Put(t.in.Context(), pinKey(t.conv), t.pin.encode(), pinTTL, fresh); err != nil {
		// The store keeps it in memory, tells everybody and saves it when it can.
		t.r.Logger.Warn("pin is in memory only", "agent", t.conv.Agent, "session", placement.Plain(t.conv.Session), "error", err)
	}
	if fresh {
		t.r.Recorder.Append(t.pinLine())
		t.r.gates.pinned(t.conv)
	}
}

// seenPin is what a look-up found: the pin of a conversation, nil if it has none.
type seenPin struct {
	of  placement.Conversation
	pin *pinRecord
}

// known is what the rules may look up, for one turn. A pin's record is read
// and decoded once for each turn.
type known struct{ t *turn }

func (k known) Pin(c placement.Conversation) (placement.Pin, bool) {
	p := k.record(c)
	if p == nil {
		return placement.Pin{}, false
	}
	return placement.Pin{Server: p.Server}, true
}

func (k known) record(c placement.Conversation) *pinRecord {
	if c.Session == "" {
		return nil
	}
	for _, seen := range k.t.pins {
		if seen.of == c {
			return seen.pin
		}
	}
	var p *pinRecord
	if value, ok := k.t.r.Pins.Get(pinKey(c)); ok {
		var err error
		if p, err = k.t.r.decoded.decode(c, value); err != nil {
			k.t.r.Logger.Warn("stored pin is no pin; the conversation's history decides", "agent", c.Agent, "session", placement.Plain(c.Session), "error", err)
		}
	}
	k.t.pins = append(k.t.pins, seenPin{c, p})
	return p
}

func (k known) Last(c placement.Conversation) (string, bool) { return k.t.r.Recorder.Last(c) }
func (k known) Response(id string) []placement.Owner         { return k.t.r.Recorder.Response(id) }
func (k known) Key(key uint64) []placement.Owner             { return k.t.r.Recorder.Key(key) }
func (k known) Mark(mark uint64) []placement.Owner           { return k.t.r.Recorder.Mark(mark) }

func (k known) Ready() bool {
	select {
	case <-k.t.r.Recorder.Loaded():
		return true
	default:
		return false
	}
}

// speaksAnthropic reports whether a server is Anthropic's own, which wants
// Claude Code's billing block.
func speaksAnthropic(s *config.Server, host string) bool {
	return s == nil || host == "anthropic.com" || strings.HasSuffix(host, ".anthropic.com")
}

// appendHex appends a hash as 16 hex digits.
func appendHex(b []byte, v uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[v>>shift&15])
	}
	return b
}

// formatWord is the API format's word in the log.
func formatWord(f outline.Format) string {
	switch f {
	case outline.Messages:
		return "messages"
	case outline.Responses:
		return "responses"
	case outline.ChatCompletions:
		return "chat"
	}
	return ""
}
