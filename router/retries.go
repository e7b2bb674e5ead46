package router

import (
	"sync"
	"sync/atomic"
	"time"

	"agentop/agents"
	"agentop/router/placement"
)

// How long an agent is let ask again before it is told to tell its person.
// Claude Code would otherwise be silent for three minutes, and Codex for one.
const (
	retryFor = 10 * time.Second
	// retryGap ends a spell: whoever asks again after a longer pause is a
	// person who tries once more, and is given the same time anew.
	retryGap = 30 * time.Second
	// retryPause is the pause that agents are asked to make, in seconds.
	retryPause = 2
	maxSpells  = 4096
)

// spell is a time through which a conversation asked a place in vain.
type spell struct{ first, last time.Time }

// asking is a conversation at a server or an own upstream.
type asking struct {
	conv   placement.Conversation
	server string
}

// retries remembers since when agents have been asking in vain. It is safe
// for concurrent use, and costs an answer that comes one atomic read.
type retries struct {
	some   atomic.Bool // there is a spell
	mu     sync.Mutex
	spells map[asking]spell
}

func newRetries() *retries { return &retries{spells: map[asking]spell{}} }

// failed notes that a request which arrived at began was in vain at now, and
// reports whether its agent has asked for long enough. If so the spell ends.
func (r *retries) failed(who asking, began, now time.Time) (enough bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.spells[who]
	if !ok || began.Sub(s.last) > retryGap {
		s.first = now
	}
	s.last = now
	if enough = now.Sub(s.first) >= retryFor; enough {
		delete(r.spells, who)
	} else if ok || r.room(now) {
		r.spells[who] = s
	}
	r.some.Store(len(r.spells) > 0)
	return enough
}

// room makes room for one more spell; the caller holds the lock.
func (r *retries) room(now time.Time) bool {
	if len(r.spells) < maxSpells {
		return true
	}
	for who, s := range r.spells {
		if now.Sub(s.last) > retryGap {
			delete(r.spells, who)
		}
	}
	return len(r.spells) < maxSpells
}

// answered ends a spell.
func (r *retries) answered(who asking) {
	if !r.some.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.spells, who)
	r.some.Store(len(r.spells) > 0)
}

// asking is who asks, and where: a pool as a whole, since another member may
// be asked next.
func (t *turn) asking() asking {
	return asking{placement.Conversation{Agent: t.rec.Agent, Session: t.session()}, t.decision.Server}
}

// final is f for an agent that has asked for long enough, in the form on which
// it shows the text and asks no more: Claude Code and the SDKs of both
// vendors heed the header; Codex knows none, and takes only a 4xx for an end
// (seen with 0.171.0). OpenCode gives up by itself after five tries.
func (f *failure) final(a agents.Agent) *failure {
	last := *f
	if a == agents.Codex {
		last.status, last.retryAfter = statusRefused, 0
	} else {
		last.noRetry = true
	}
	return &last
}
