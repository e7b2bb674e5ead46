package simulation

import (
	"math/rand/v2"
	"sync"
	"time"
)

// The events. The first group is done by operations below; the second are
// labels of turns whose conversation agentop cannot always know.
const (
	furtherTurns  event = "turns"
	opened        event = "opening"
	equalOpenings event = "equal openings"
	switched      event = "switch"
	unrouted      event = "not routed"
	serverGone    event = "server removed"
	forked        event = "fork"
	resumed       event = "resume under new id"
	rewound       event = "rewind"
	compacted     event = "compaction"
	rewritten     event = "client rewrites"
	retried       event = "failure and retry"
	raced         event = "concurrent openings"
	titled        event = "title before opening"
	sideAsked     event = "side requests"
	subagents     event = "subagent"
	impatient     event = "next turn at once"
	restarted     event = "restart"
	killed9       event = "kill -9"
	pinsLost      event = "pins.json lost"
	pinsEmptied   event = "pins.json emptied"
	pinsDamaged   event = "pins.json damaged"
	clockJumped   event = "clock jump"
	beganBefore   event = "began before"
	terseReplies  event = "terse, rewritten"

	evicted     event = "pin evicted"
	afterOwn    event = "after own upstream"
	smallTables event = "tables full"
)

// operation is one event with what decides everything in it.
type operation struct {
	kind event
	seed uint64
}

// weights says how often each event happens.
var weights = []struct {
	kind   event
	weight int
	do     func(*world) error
}{
	{furtherTurns, 300, (*world).doTurns},
	{opened, 80, (*world).doOpen},
	{equalOpenings, 40, (*world).doEqualOpenings},
	{switched, 50, (*world).doSwitch},
	{unrouted, 20, (*world).doUnroute},
	{serverGone, 16, (*world).doServerGone},
	{forked, 60, (*world).doFork},
	{resumed, 40, (*world).doResume},
	{rewound, 50, (*world).doRewind},
	{compacted, 50, (*world).doCompact},
	{rewritten, 50, (*world).doRewrite},
	{retried, 40, (*world).doRetry},
	{raced, 40, (*world).doRace},
	{titled, 25, (*world).doTitle},
	{sideAsked, 30, (*world).doSides},
	{subagents, 30, (*world).doSubagent},
	{impatient, 25, (*world).doImpatient},
	{restarted, 16, (*world).doRestart},
	{killed9, 22, (*world).doKill},
	{pinsLost, 16, func(w *world) error { return w.doLose(pinsLost) }},
	{pinsEmptied, 16, func(w *world) error { return w.doLose(pinsEmptied) }},
	{pinsDamaged, 16, func(w *world) error { return w.doLose(pinsDamaged) }},
	{clockJumped, 20, (*world).doClock},
	{beganBefore, 20, (*world).doBeganBefore},
	{terseReplies, 20, (*world).doTerse},
}

// plan draws n operations.
func plan(seed uint64, n int) []operation {
	r := rand.New(rand.NewPCG(seed, 1))
	sum := 0
	for _, k := range weights {
		sum += k.weight
	}
	ops := make([]operation, n)
	for i := range ops {
		at := r.IntN(sum)
		for _, k := range weights {
			if at -= k.weight; at < 0 {
				ops[i] = operation{k.kind, r.Uint64()}
				break
			}
		}
	}
	return ops
}

// run does one operation.
func (w *world) run(op operation) error {
	w.rand = rand.New(rand.NewPCG(op.seed, w.seed))
	if err := w.apply(w.yaml()); err != nil {
		return err
	}
	if err := w.alive(); err != nil {
		return err
	}
	w.rest(2 * time.Minute)
	w.judge.tally.happened(op.kind)
	for _, k := range weights {
		if k.kind == op.kind {
			return k.do(w)
		}
	}
	return nil
}

// turns leads up to n turns of c.
func (w *world) turns(c *conversation, e event, n int) {
	for range 1 + w.rand.IntN(n) {
		w.say(c, e)
		w.rest(20 * time.Second)
	}
}

func (w *world) doTurns() error {
	c := w.any(1, nil)
	if w.label(c, furtherTurns) == evicted {
		w.judge.tally.happened(evicted)
	}
	w.turns(c, furtherTurns, 12)
	return nil
}

func (w *world) doOpen() error {
	w.turns(w.open(w.anyClient(nil)), opened, 4)
	return nil
}

// switchTo changes the agent's choice.
func (w *world) switchTo(agent, server string) error {
	w.choose(agent, server)
	return w.apply(w.yaml())
}

func (w *world) doSwitch() error {
	agent := pick(w.rand, agentNames)
	if err := w.switchTo(agent, pick(w.rand, places)); err != nil {
		return err
	}
	w.turns(w.any(1, func(c *client) bool { return c.agent == agent }), switched, 3)
	return nil
}

func (w *world) doUnroute() error {
	agent := pick(w.rand, agentNames)
	before := w.choice(agent)
	if err := w.switchTo(agent, ""); err != nil {
		return err
	}
	ofAgent := func(c *client) bool { return c.agent == agent }
	w.turns(w.any(1, ofAgent), unrouted, 2)
	w.turns(w.open(w.anyClient(ofAgent)), unrouted, 2)
	return w.switchTo(agent, before)
}

// doServerGone takes a server out of the configuration. Its conversations are
// refused, not moved, and go on when it is back.
func (w *world) doServerGone() error {
	gone := pick(w.rand, places)
	for _, agent := range agentNames {
		if w.choice(agent) == gone {
			w.choose(agent, places[(w.rand.IntN(4)+1)%len(places)])
		}
		if w.choice(agent) == gone {
			w.choose(agent, "")
		}
	}
	w.removed = gone
	if err := w.apply(w.yaml()); err != nil {
		return err
	}
	w.turns(w.any(1, nil), serverGone, 2)
	c := w.any(1, isNamed)
	for range 20 {
		if w.judge.home(c) == gone {
			break
		}
		c = w.any(1, isNamed)
	}
	w.turns(c, serverGone, 2)
	w.removed = ""
	if err := w.apply(w.yaml()); err != nil {
		return err
	}
	w.turns(c, serverGone, 2)
	return nil
}

// doEqualOpenings opens two conversations with equal bytes on two servers and
// goes on with both.
func (w *world) doEqualOpenings() error {
	cl := w.anyClient(nil)
	var pair []*conversation
	user := pick(w.rand, openings)
	system, day := w.rand.IntN(3), w.rand.IntN(2)
	for range 2 {
		if err := w.switchTo(cl.agent, pick(w.rand, places)); err != nil {
			return err
		}
		c := w.open(cl)
		c.system, c.day, c.pending = system, day, user
		w.say(c, equalOpenings)
		pair = append(pair, c)
	}
	for i := range 4 {
		w.say(pair[i%2], equalOpenings)
	}
	return nil
}

// doRace has a client send its opening several times at once, while the agent
// is switched. A named conversation gets one answer to where it is.
func (w *world) doRace() error {
	c := w.open(w.anyClient(nil))
	m := w.write(c, w.ask(c))
	replies := make([]*reply, 2+w.rand.IntN(3))
	before := w.choice(c.client.agent)
	var wg sync.WaitGroup
	for i := range replies {
		s := &sent{conv: c, main: true, event: w.label(c, raced), chosen: before}
		wg.Go(func() {
			if r, ok := w.send(c, m, s, nil); ok {
				replies[i] = &r
			}
		})
	}
	err := w.switchTo(c.client.agent, pick(w.rand, places))
	wg.Wait()
	for _, r := range replies {
		if r != nil {
			w.take(c, *r)
			break
		}
	}
	w.turns(c, raced, 2)
	return err
}

// doImpatient sends the next turn as soon as the reply is whole, before the
// proxy has ended the turn.
func (w *world) doImpatient() error {
	c := w.any(w.rand.IntN(2), nil)
	if c.pending != "" || w.alive() != nil {
		return nil
	}
	m := w.write(c, w.ask(c))
	early := false
	r, ok := w.send(c, m, &sent{conv: c, main: true, event: w.label(c, impatient)}, func(r reply) {
		early = true
		w.take(c, r)
		if err := w.switchTo(c.client.agent, pick(w.rand, places)); err == nil {
			w.say(c, impatient)
		}
	})
	if ok && !early {
		w.take(c, r)
	}
	return nil
}
