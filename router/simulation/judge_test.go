package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentop/router/fakeserver"
)

// idHeader tells the judge which request has arrived. The proxy passes it on
// like any header that it does not know.
const idHeader = "X-Simulation"

// ownPrefix begins the names of the agents' own upstreams.
const ownPrefix = "own-"

// elsewhere signs replies that were made before agentop was there.
const elsewhere = "elsewhere"

// mostDiversions are told of one world.
const mostDiversions = 100

// sent is a request under way.
type sent struct {
	conv   *conversation
	main   bool
	event  event
	chosen string // the agent's server when it was sent
	want   string // of a side request: where it belongs, "" where nothing tells
	misdo  string // how the server is to fail: "", "500", "429", "tidy", "close", "error"

	mu sync.Mutex
	at string // where it arrived
}

func (s *sent) place() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// judge sees every request arrive and holds the rule. It judges by the
// signatures in the bodies and by where each conversation's requests came
// before, from the servers' own eyes.
type judge struct {
	mu   sync.Mutex
	next int64
	// lenient lets a turn go to any server that made a reply in its history:
	// where tables are full, what was learnt last is what is not known.
	lenient    bool
	sent       map[string]*sent
	tally      *tally
	chosen     func(agent string) string
	broken     []string // the rule's violations
	diversions []string // turns that went to the own upstream, with what led there
}

func newJudge(chosen func(string) string) *judge {
	return &judge{sent: map[string]*sent{}, tally: newTally(), chosen: chosen}
}

// expect announces a request; its id is to be sent with it.
func (j *judge) expect(s *sent) (id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next++
	id = strconv.FormatInt(j.next, 10)
	j.sent[id] = s
	if s.main {
		s.conv.tried = append(s.conv.tried, s.chosen)
	}
	return id
}

func (j *judge) done(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.sent, id)
}

// find is the request that a record is of; the caller holds the lock.
func (j *judge) find(h http.Header) *sent { return j.sent[h.Get(idHeader)] }

// arrived judges one request at the server called name.
func (j *judge) arrived(name string, rec *fakeserver.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.find(rec.Header)
	if s == nil {
		j.blame("a request that nobody sent came to %s: %s %s", name, rec.Method, rec.Path)
		return
	}
	s.mu.Lock()
	s.at = name
	s.mu.Unlock()
	if name != ownPrefix+s.conv.client.agent && strings.HasPrefix(name, ownPrefix) {
		j.blame("%s: a request of %s reached %s", s.event, s.conv.client.agent, name)
	}
	signed := ""
	if n := len(rec.History); n > 0 {
		signed = rec.History[n-1].Server
	}
	if j.lenient && slices.ContainsFunc(rec.History, func(sig fakeserver.Signature) bool { return sig.Server == name }) {
		signed = name
	}
	if s.main {
		j.mainTurn(s, name, signed)
	} else {
		j.sideRequest(s, name)
	}
}

// mainTurn: the server that made the last reply, or the own upstream. A named
// conversation without a reply stays where it was first seen.
func (j *judge) mainTurn(s *sent, name, signed string) {
	c := s.conv
	own := strings.HasPrefix(name, ownPrefix)
	want := signed
	if c.client.chained {
		want = c.last() // the body names the reply instead of repeating it
	}
	if c.client.named && c.home != "" && !(j.lenient && c.family.diverted) {
		want = c.home
	}
	ok := own || name == want && (signed == "" || name == signed)
	if want == "" { // nothing was ever answered: the agent's choice, or what it was a moment ago
		ok = own || slices.Contains(c.tried, name) || name == j.chosen(c.client.agent)
	}
	if j.lenient && signed != "" && c.client.named && c.family.diverted {
		c.home = name
	}
	c.life = append(c.life, fmt.Sprintf("%s: %s, want %q, signed %q", s.event, name, want, signed))
	if !ok {
		j.blame("%s: a turn of %s %q reached %s, but its last reply was made by %q (signed in the body: %q)\n    %s",
			s.event, c.client.name, c.session, name, want, signed, strings.Join(c.life, "\n    "))
	}
	diverted := own && want != "" && want != elsewhere && want != name
	j.tally.turn(s.event, diverted)
	if diverted {
		c.family.diverted = true
		if len(j.diversions) < mostDiversions {
			j.diversions = append(j.diversions, fmt.Sprintf("%s, %s: %s", s.event, c.client.name, strings.Join(c.life, "\n    ")))
		}
	}
	if c.client.named && (c.home == "" || diverted || want == elsewhere) {
		c.home = name
	}
}

// sideRequest: where it belongs, or the own upstream.
func (j *judge) sideRequest(s *sent, name string) {
	own := strings.HasPrefix(name, ownPrefix)
	want := s.want
	if want == "" && s.conv.client.named {
		want = s.conv.home
	}
	if want == elsewhere {
		want = ""
	}
	if j.lenient { // a subagent whose reply was not kept goes with its session
		want = name
	}
	if !own && name != want && !(want == "" && name == j.chosen(s.conv.client.agent)) {
		j.blame("%s: a side request of %s %q reached %s, want %q or the own upstream", s.event, s.conv.client.name, s.conv.session, name, want)
	}
	j.tally.side(s.event, own && want != "" && want != name)
}

func (j *judge) blame(format string, args ...any) {
	j.broken = append(j.broken, fmt.Sprintf(format, args...))
}

func (j *judge) violations() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

// home is where a conversation is as the servers saw it.
func (j *judge) home(c *conversation) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return c.home
}

// script says how a server answers.
func (j *judge) script(rec *fakeserver.Record) fakeserver.Behaviour {
	j.mu.Lock()
	s := j.find(rec.Header)
	j.mu.Unlock()
	if s == nil {
		return fakeserver.Behaviour{}
	}
	switch s.misdo {
	case "500", "429":
		status, _ := strconv.Atoi(s.misdo)
		return fakeserver.Failure(rec, status, "api_error", "try again")
	case "tidy":
		return fakeserver.Behaviour{Cut: fakeserver.CutTidy, CutAfter: 3}
	case "close":
		return fakeserver.Behaviour{Cut: fakeserver.CutClose, CutAfter: 2}
	case "error":
		return fakeserver.Behaviour{Cut: fakeserver.CutError, CutAfter: 4}
	}
	if s.conv.terse {
		return fakeserver.Behaviour{Text: "ok", Events: 2}
	}
	n, _ := strconv.ParseUint(rec.Header.Get(idHeader), 10, 64)
	r := rand.New(rand.NewPCG(n, 3))
	b := fakeserver.Behaviour{TextBytes: 50 + r.IntN(100), Events: 1 + r.IntN(3)}
	if r.IntN(3) == 0 {
		b.Thinking = "First the file, then the test."
	}
	if r.IntN(4) == 0 && s.main {
		b.Tools = []fakeserver.ToolCall{{Name: "Bash", Input: `{"command":"go test ./... && echo é/\"x\" of those that count","timeout":120,"background":false}`}}
		b.NoText = r.IntN(2) == 0
	}
	return b
}
