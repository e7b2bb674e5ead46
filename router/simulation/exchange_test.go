package simulation

import (
	"bytes"
	"net/http"
)

// message is one main turn as it is sent.
type message struct {
	body   string
	header http.Header
	stream bool
}

// write is the request for the reply to user, in some style.
func (w *world) write(c *conversation, user string) message {
	s := randomStyle(w.rand)
	s.stream = s.stream || c.client.name == "codex" // it always streams
	return message{body(c, user, s), header(c, s), s.stream}
}

// ask is what the user says next; what was not answered is said again.
func (w *world) ask(c *conversation) string {
	if c.pending == "" {
		c.pending = pick(w.rand, steps)
		if len(c.turns) == 0 {
			c.pending = pick(w.rand, openings)
		}
	}
	return c.pending
}

// label is the event as which a turn of c counts: some conversations are such
// that agentop cannot always know them, whatever happens to them.
func (w *world) label(c *conversation, e event) event {
	switch {
	case c.family.diverted:
		return afterOwn
	case c.terse && !c.client.named:
		return terseReplies
	case c.unlogged():
		return killed9
	case w.history:
		return smallTables
	case w.opts.pins > 0 && e == furtherTurns && c.client.named && len(c.turns) > 0:
		if has, known := w.proxy.pinned(c.client.agent, c.session); known && !has {
			return evicted
		}
	}
	return e
}

// say leads one main turn; false if it brought no reply.
func (w *world) say(c *conversation, e event) bool { return w.sayTo(c, e, "") }

// sayTo is say to a server that fails as misdo says.
func (w *world) sayTo(c *conversation, e event, misdo string) bool {
	if w.alive() != nil {
		return false
	}
	m := w.write(c, w.ask(c))
	r, ok := w.send(c, m, &sent{conv: c, main: true, event: w.label(c, e), misdo: misdo}, nil)
	if ok {
		w.take(c, r)
	}
	return ok
}

// take enters a reply into the client's history.
func (w *world) take(c *conversation, r reply) {
	r.lost = w.proxy.dead()
	c.turns = append(c.turns, turn{c.pending, r})
	c.pending = ""
}

// send sends a main turn and reads its reply. early, if set, is called once
// with the whole reply, before the proxy has ended the request.
func (w *world) send(c *conversation, m message, s *sent, early func(reply)) (reply, bool) {
	if s.chosen == "" {
		s.chosen = w.choice(c.client.agent)
	}
	id := w.judge.expect(s)
	defer w.judge.done(id)
	h := m.header.Clone()
	h.Set(idHeader, id)
	var written func([]byte)
	if early != nil {
		written = func(soFar []byte) {
			if early == nil || m.stream && !bytes.HasSuffix(soFar, []byte("\n\n")) {
				return // an event is there when its empty line is
			}
			if r, err := readReply(c.client.format, m.stream, soFar); err == nil {
				once := early
				early = nil
				once(r)
			}
		}
	}
	res := w.proxy.request(http.MethodPost, c.client.path, m.body, h, written)
	if res.status != http.StatusOK {
		return reply{}, false
	}
	r, err := readReply(c.client.format, m.stream, res.body)
	return r, err == nil
}

// side sends a request outside the line of turns.
func (w *world) side(c *conversation, path, body string, h http.Header, s *sent) result {
	if w.alive() != nil {
		return result{}
	}
	s.chosen = w.choice(c.client.agent)
	id := w.judge.expect(s)
	defer w.judge.done(id)
	h = h.Clone()
	h.Set(idHeader, id)
	return w.proxy.request(http.MethodPost, path, body, h, nil)
}

// open makes a conversation; its first turn is not sent yet.
func (w *world) open(cl *client) *conversation {
	c := &conversation{client: cl, system: w.rand.IntN(3), day: w.rand.IntN(2), family: &family{}}
	if cl.named {
		c.session = w.newSession()
	}
	w.keep(c)
	return c
}

// keep takes a conversation among those that live; in a full world it takes
// the place of another.
func (w *world) keep(c *conversation) {
	if len(w.convs) < w.limit {
		w.convs = append(w.convs, c)
		return
	}
	w.convs[w.rand.IntN(len(w.convs))] = c
}

func (w *world) anyClient(fit func(*client) bool) *client {
	for {
		if c := &clients[w.rand.IntN(len(clients))]; fit == nil || fit(c) {
			return c
		}
	}
}

// any is a conversation that fits, or a new one of a fitting client with n
// turns.
func (w *world) any(turns int, fit func(*client) bool) *conversation {
	for range 40 {
		if len(w.convs) == 0 {
			break
		}
		c := pick(w.rand, w.convs)
		if len(c.turns) >= turns && len(c.turns) < 40 && c.pending == "" && (fit == nil || fit(c.client)) {
			return c
		}
	}
	c := w.open(w.anyClient(fit))
	for range turns {
		w.say(c, opened)
	}
	return c
}

func repeats(c *client) bool  { return !c.chained }
func isNamed(c *client) bool  { return c.named }
func isClaude(c *client) bool { return c.agent == "claude-code" }
func nameless(c *client) bool { return !c.named && !c.chained }
