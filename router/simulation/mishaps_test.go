package simulation

import (
	"sync"
	"time"
)

// This file is what goes wrong.

// doRetry has a server fail, and the client send the same again after a
// switch.
func (w *world) doRetry() error {
	c := w.any(w.rand.IntN(2), nil)
	if w.rand.IntN(3) == 0 {
		c = w.open(w.anyClient(nil))
	}
	w.sayTo(c, retried, pick(w.rand, []string{"500", "429", "tidy", "close", "error"}))
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	w.turns(c, retried, 3)
	return nil
}

func (w *world) doRestart() error {
	if err := w.proxy.stop(); err != nil {
		return err
	}
	w.proxy = nil
	if err := w.alive(); err != nil {
		return err
	}
	w.turns(w.any(1, nil), restarted, 3)
	return nil
}

// doKill kills the proxy at some step of something that it does.
func (w *world) doKill() error {
	doing := []func(*world) error{(*world).doTurns, (*world).doOpen, (*world).doFork, (*world).doCompact, (*world).doRace,
		(*world).doRewind, (*world).doResume, (*world).doSubagent, (*world).doRetry}
	w.proxy.arm(1 + w.rand.IntN(60))
	if err := pick(w.rand, doing)(w); err != nil {
		return err
	}
	w.proxy.die()
	if w.rand.IntN(2) == 0 {
		w.choose(pick(w.rand, agentNames), pick(w.rand, places))
		if err := w.apply(w.yaml()); err != nil {
			return err
		}
	}
	// All that were cut off send their requests again.
	for _, c := range w.convs {
		if c.pending != "" {
			w.say(c, killed9)
		}
	}
	w.turns(w.any(1, nil), killed9, 2)
	return nil
}

// doLose loses or damages pins.json: while nobody runs, or under a running
// proxy that is killed before it could write the file anew.
func (w *world) doLose(kind event) error {
	tidy := w.rand.IntN(2) == 0
	if tidy {
		if err := w.proxy.stop(); err != nil {
			return err
		}
		w.proxy = nil
	} else {
		w.proxy.die()
	}
	if err := w.loseFile(kind); err != nil {
		return err
	}
	if err := w.alive(); err != nil {
		return err
	}
	// Several ask at once, while the log is still being read.
	var asked []*conversation
	for range 3 {
		asked = append(asked, w.any(1, nil))
	}
	for _, c := range asked {
		if err := w.elsewhereFirst(c); err != nil {
			return err
		}
		w.turns(c, kind, 3)
	}
	return nil
}

// mostSkew keeps all jumps together well below the life of a pin.
const mostSkew = 8 * 24 * time.Hour

func (w *world) doClock() error {
	if !w.calm {
		jump := time.Duration(w.rand.Int64N(int64(2 * mostSkew)))
		if w.rand.IntN(2) == 0 {
			jump = time.Duration(w.rand.Int64N(int64(4*time.Hour))) + mostSkew
		}
		w.skew.Store(int64(jump - mostSkew))
		w.rest(3 * time.Hour)
	}
	w.turns(w.any(1, nil), clockJumped, 3)
	w.turns(w.any(1, nil), clockJumped, 3)
	return nil
}

// doTitle sends a title request with the opening; it comes first and has to
// wait.
func (w *world) doTitle() error {
	cl := w.anyClient(func(c *client) bool { return c.agent == "claude-code" || c.name == "opencode" })
	c := w.open(cl)
	user := w.ask(c)
	s := style{stream: true, cacheAt: -1, bare: true}
	title := &sent{conv: c, event: titled}
	q := *c
	q.helper = "Generate a concise, sentence-case title for this coding session."
	if cl.name == "opencode" {
		q.helper = "You are a title generator. You output only a thread title."
	}
	text, h := body(&q, user, s), header(c, s)
	var wg sync.WaitGroup
	wg.Go(func() { w.side(c, cl.path, text, h, title) })
	w.say(c, titled)
	wg.Wait()
	home, at := w.judge.home(c), title.place()
	if at != home && at != "" && len(c.turns) > 0 && !w.proxy.dead() {
		w.judge.mu.Lock()
		w.judge.blame("%s: the title went to %s, its conversation to %s", titled, at, home)
		w.judge.mu.Unlock()
	}
	return nil
}

// doSides asks beside a conversation: a replay with a question, a token count.
func (w *world) doSides() error {
	c := w.any(1, isClaude)
	if len(c.turns) == 0 {
		return nil
	}
	if err := w.elsewhereFirst(c); err != nil {
		return err
	}
	e := w.label(c, sideAsked)
	s := randomStyle(w.rand)
	h := header(c, s)
	if s.class {
		h.Set("X-Claude-Code-Request-Class", "helper")
	}
	w.side(c, c.client.path, body(c, "<system-reminder>This is a side question\nwhat is this?", s), h, &sent{conv: c, event: e})
	w.side(c, "/claude-code/v1/messages/count_tokens", body(c, "count", s), header(c, s), &sent{conv: c, event: e})
	script := w.any(1, func(c *client) bool { return c.name == "script-messages" })
	if len(script.turns) > 0 {
		w.side(script, "/script/v1/messages/count_tokens", body(script, "count", s), header(script, s),
			&sent{conv: script, event: w.label(script, sideAsked), want: script.last()})
	}
	w.say(c, sideAsked)
	return nil
}

// doSubagent runs a subagent of a conversation. It stays where its replies
// are made, also when its session gets another name.
func (w *world) doSubagent() error {
	c := w.any(1, func(c *client) bool { return c.named && c.name != "claude-old" })
	if len(c.turns) == 0 {
		return nil
	}
	agent := w.newSession()
	sub := &conversation{client: c.client, session: c.session, system: 100, family: c.family}
	if c.client.name != "claude" {
		sub.session = agent
	}
	for i := range 1 + w.rand.IntN(4) {
		if w.alive() != nil {
			return nil
		}
		s := randomStyle(w.rand)
		h := header(sub, s)
		switch c.client.name {
		case "claude":
			h.Set("X-Claude-Code-Agent-Id", agent)
			if s.class {
				h.Set("X-Claude-Code-Request-Class", "subagent")
			}
		case "codex":
			h.Set("Session-Id", c.session)
			h.Set("X-Codex-Parent-Thread-Id", c.session)
			h.Set("X-Openai-Subagent", "collab_spawn")
		case "opencode":
			h.Set("X-Parent-Session-Id", c.session)
		}
		want := w.judge.home(c)
		if i > 0 && sub.last() != "" {
			want = sub.last()
		}
		user := w.ask(sub)
		res := w.side(sub, c.client.path, body(sub, user, s), h, &sent{conv: sub, event: w.label(sub, subagents), want: want})
		if res.status != 200 {
			return nil
		}
		r, err := readReply(c.client.format, s.stream, res.body)
		if err != nil {
			return nil
		}
		sub.turns, sub.pending = append(sub.turns, turn{user, r}), ""
		if i == 1 && c.client.name == "claude" { // /clear
			other := w.any(1, func(c *client) bool { return c.name == "claude" })
			sub.session = other.session
		}
		if err := w.elsewhereFirst(c); err != nil {
			return err
		}
	}
	return nil
}
