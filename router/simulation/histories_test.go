package simulation

import (
	"agentop/router/fakeserver"
)

// This file is what clients do to their histories.

// elsewhereFirst switches c's agent, as somebody would who wants new
// conversations elsewhere: a wrong placement then shows.
func (w *world) elsewhereFirst(c *conversation) error {
	return w.switchTo(c.client.agent, pick(w.rand, places))
}

func (w *world) doFork() error {
	c := w.any(1, nil)
	if len(c.turns) == 0 {
		return nil // its opening failed
	}
	b := c.branch(1+w.rand.IntN(len(c.turns)), w.sessionFor(c.client))
	w.keep(b)
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	w.turns(b, forked, 3)
	w.say(c, forked)
	return nil
}

// sessionFor is a new id where the client states one.
func (w *world) sessionFor(cl *client) string {
	if cl.named {
		return w.newSession()
	}
	return ""
}

// doResume goes on with a conversation under a new id, with a new system
// prompt and date, as a client does after an update.
func (w *world) doResume() error {
	c := w.any(1, func(c *client) bool { return c.named })
	if len(c.turns) == 0 {
		return nil
	}
	b := c.branch(len(c.turns), w.newSession())
	b.forkOf = "" // a resumed thread names nobody
	if w.rand.IntN(2) == 0 {
		b.system, b.day = c.system+3, c.day+1
	}
	w.keep(b)
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	w.turns(b, resumed, 4)
	return nil
}

// doRewind drops the last turns. A client without a name that drops all has
// begun anew as far as anybody could tell, so it keeps one.
func (w *world) doRewind() error {
	c := w.any(2, nil)
	if len(c.turns) < 2 {
		return nil
	}
	keep := w.rand.IntN(len(c.turns))
	if keep == 0 && (!c.client.named || w.history) {
		keep = 1
	}
	c.turns = c.turns[:keep:keep]
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	w.turns(c, rewound, 3)
	return nil
}

// doRewrite changes what the client writes around the conversation.
func (w *world) doRewrite() error {
	c := w.any(1, repeats)
	if w.rand.IntN(2) == 0 {
		c.system += 3
	}
	if w.rand.IntN(2) == 0 {
		c.day++
	}
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	w.turns(c, rewritten, 4)
	return nil
}

const summarize = "Your task is to create a detailed summary of the conversation so far."

// doCompact has a conversation summarised by a side request and goes on with
// the summary in place of its history.
func (w *world) doCompact() error {
	c := w.any(1, repeats)
	if len(c.turns) == 0 {
		return nil
	}
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	r, ok := w.summary(c)
	if !ok {
		return nil
	}
	switch {
	case w.history && c.client.agent != "opencode":
		return nil // nothing would be left to know it by
	case c.client.agent == "claude-code":
		c.turns, c.pending = nil, "This session is being continued from a previous conversation. "+r.text
	case c.client.name == "codex":
		c.window++
		c.turns, c.pending = nil, "Another language model started to solve this problem. "+r.text
	default:
		c.turns = []turn{{"What did we do so far?", reply{sig: r.sig, text: r.text, lost: r.lost}}}
	}
	w.turns(c, compacted, 3)
	return nil
}

// summary asks for one, as each client does.
func (w *world) summary(c *conversation) (reply, bool) {
	q := *c
	s := style{stream: true, cacheAt: -1}
	h := header(c, s)
	user := summarize
	switch c.client.name {
	case "claude":
		h.Set("X-Claude-Code-Request-Class", "compaction")
	case "claude-old":
	case "codex":
		h.Set("X-Codex-Turn-Metadata", `{"request_kind":"compaction","thread_source":"user"}`)
	default:
		return w.summaryByHelper(c)
	}
	sent := &sent{conv: c, event: w.label(c, compacted), want: c.last()}
	if c.client.named {
		sent.want = w.judge.home(c)
	}
	res := w.side(c, c.client.path, body(&q, user, s), h, sent)
	return w.readSide(c, res)
}

// summaryByHelper is a request with a prompt of its own and no tools.
func (w *world) summaryByHelper(c *conversation) (reply, bool) {
	q := *c
	q.helper = "You are a helpful AI assistant tasked with summarizing conversations."
	s := style{stream: true, cacheAt: -1, bare: true}
	sent := &sent{conv: c, event: w.label(c, compacted), want: c.last()}
	return w.readSide(c, w.side(c, c.client.path, body(&q, summarize, s), header(c, s), sent))
}

func (w *world) readSide(c *conversation, res result) (reply, bool) {
	if res.status != 200 {
		return reply{}, false
	}
	r, err := readReply(c.client.format, true, res.body)
	r.lost = w.proxy.dead()
	return r, err == nil
}

// doBeganBefore is a conversation that agentop did not see begin: it stays at
// the agent's own upstream, which made its replies.
func (w *world) doBeganBefore() error {
	c := w.open(w.anyClient(repeats))
	n := int64(w.rand.IntN(1 << 30))
	for i := range 1 + w.rand.IntN(3) {
		sig := fakeserver.Signature{Server: elsewhere, N: n + int64(i)}
		c.turns = append(c.turns, turn{pick(w.rand, steps), reply{sig: sig, text: sig.String() + " an answer that agentop never passed on."}})
	}
	w.turns(c, beganBefore, 3)
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	w.turns(c, beganBefore, 2)
	return nil
}

// doTerse is a script whose answers are too short to bear a mark; when it
// rewrites its prompt as well, nothing is left to know it by. Its prompts are
// its own: such a conversation is known by its beginning alone, so one that
// began like another would be taken for that.
func (w *world) doTerse() error {
	c := w.open(w.anyClient(nameless))
	c.terse = true
	w.sessions++
	c.system = 1_000_000 + 1000*w.sessions
	w.turns(c, terseReplies, 3)
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	w.turns(c, terseReplies, 2)
	c.system += 3
	w.turns(c, terseReplies, 2)
	return nil
}
