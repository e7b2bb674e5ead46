package placement

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A discrete-event simulation of a pool: 200 conversations over 4 members for
// two hours. Each conversation works in bursts (an agent's tool loop) between
// a person's pauses, sends its whole input each turn, and starts again from a
// summary when it has grown too long. A member serves so many requests at once,
// first come first served, reads what its cache lacks at simPrefill and
// forgets the conversations that were used least recently. Every policy sees
// the same conversations: each has its own random numbers.
const (
	simSeed          = 20261129
	simConversations = 200
	simMembers       = 4
	simCache         = 3_000_000 // tokens a member's cache holds
	simPrefill       = 6_000.0   // tokens a second, for each request
	simDecode        = 50.0      // tokens a second
	simSeconds       = 2 * 3600.0
	simWarmup        = 600.0 // seconds that are not counted
)

// policy chooses a member (by index) for a conversation that was last on
// member bound, -1 for none.
type policy func(s *sim, bound int) int

type simRequest struct {
	conversation, input, output int
	arrived                     float64
}

type simMember struct {
	running int
	queue   []simRequest
	cached  map[int]int // tokens by conversation
	used    []int       // conversations, least recently used first
	tokens  int
}

func (m *simMember) inFlight() int { return m.running + len(m.queue) }

// keep makes the conversation's first tokens the most recently used.
func (m *simMember) keep(conversation, tokens int) {
	m.forget(conversation)
	m.cached[conversation] = tokens
	m.used = append(m.used, conversation)
	m.tokens += tokens
	for m.tokens > simCache {
		m.forget(m.used[0])
	}
}

func (m *simMember) forget(conversation int) {
	if i := slices.Index(m.used, conversation); i >= 0 {
		m.used = slices.Delete(m.used, i, i+1)
		m.tokens -= m.cached[conversation]
		delete(m.cached, conversation)
	}
}

type simConversation struct {
	rng    *rand.Rand
	input  int // tokens of the next turn's input
	member int
}

type simEvent struct {
	at   float64
	what func()
	n    int // settles equal times
}

type simEvents []simEvent

func (e simEvents) Len() int { return len(e) }
func (e simEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e simEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *simEvents) Push(x any)   { *e = append(*e, x.(simEvent)) }
func (e *simEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

type sim struct {
	capacity      int // of each member
	now           float64
	events        simEvents
	scheduled     int
	members       []*simMember
	conversations []*simConversation
	choose        policy
	rng           *rand.Rand
	turns         int // chosen so far

	cachedTokens, inputTokens, moves int
	waits, firsts                    []float64 // seconds: until a place is free; until the first token
}

func (s *sim) after(seconds float64, what func()) {
	s.scheduled++
	heap.Push(&s.events, simEvent{s.now + seconds, what, s.scheduled})
}

func simulate(capacity int, choose policy) *sim {
	s := &sim{capacity: capacity, choose: choose, rng: rand.New(rand.NewPCG(simSeed, 0))}
	for range simMembers {
		s.members = append(s.members, &simMember{cached: map[int]int{}})
	}
	for i := range simConversations {
		rng := rand.New(rand.NewPCG(simSeed, uint64(i)+1))
		s.conversations = append(s.conversations, &simConversation{rng: rng, input: 12_000 + rng.IntN(15_000), member: -1})
		s.after(rng.Float64()*simWarmup, func() { s.arrive(i) })
	}
	for len(s.events) > 0 && s.now < simSeconds {
		e := heap.Pop(&s.events).(simEvent)
		s.now = e.at
		e.what()
	}
	return s
}

func (s *sim) arrive(i int) {
	c := s.conversations[i]
	chosen := s.choose(s, c.member)
	s.turns++
	if c.member >= 0 && chosen != c.member {
		s.moves++
	}
	c.member = chosen
	r := simRequest{conversation: i, input: c.input, output: 40 + int(c.rng.ExpFloat64()*260), arrived: s.now}
	m := s.members[chosen]
	if m.running == s.capacity {
		m.queue = append(m.queue, r)
		return
	}
	s.serve(m, r)
}

func (s *sim) serve(m *simMember, r simRequest) {
	m.running++
	cached := min(m.cached[r.conversation], r.input)
	prefill := float64(r.input-cached) / simPrefill
	if r.arrived > simWarmup {
		s.cachedTokens += cached
		s.inputTokens += r.input
		s.waits = append(s.waits, s.now-r.arrived)
		s.firsts = append(s.firsts, s.now-r.arrived+prefill)
	}
	s.after(prefill+float64(r.output)/simDecode, func() { s.finish(m, r) })
}

func (s *sim) finish(m *simMember, r simRequest) {
	m.running--
	m.keep(r.conversation, r.input+r.output)
	if len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = m.queue[1:]
		s.serve(m, next)
	}
	c := s.conversations[r.conversation]
	c.input += r.output + 100 + int(c.rng.ExpFloat64()*1_500)
	if c.input > 110_000 { // a summary takes its place: no cache knows it
		c.input = 15_000 + c.rng.IntN(10_000)
		for _, m := range s.members {
			m.forget(r.conversation)
		}
	}
	pause := 0.5 + c.rng.ExpFloat64()*2
	if c.rng.Float64() < 0.12 {
		pause += c.rng.ExpFloat64() * 180
	}
	s.after(pause, func() { s.arrive(r.conversation) })
}

func memberName(i int) string { return fmt.Sprintf("gpu%d", i) }

// withHeadroom is agentop's own rule.
func withHeadroom(headroom float64) policy {
	return func(s *sim, bound int) int { return s.member(headroom, bound) }
}

func (s *sim) member(headroom float64, bound int) int {
	p := PoolState{Headroom: headroom}
	for i, m := range s.members {
		p.Members = append(p.Members, MemberState{Name: memberName(i), Capacity: s.capacity, InFlight: m.inFlight(), Cost: 1})
	}
	name := ""
	if bound >= 0 {
		name = memberName(bound)
	}
	name, _ = Member(p, name)
	return slices.IndexFunc(p.Members, func(m MemberState) bool { return m.Name == name })
}

func leastLoaded(s *sim, _ int) int {
	best := 0
	for i, m := range s.members {
		if m.inFlight() < s.members[best].inFlight() {
			best = i
		}
	}
	return best
}

// neverMoved binds a conversation at its first turn, for good.
func neverMoved(s *sim, bound int) int {
	if bound >= 0 {
		return bound
	}
	return leastLoaded(s, bound)
}

func roundRobin(s *sim, _ int) int { return s.turns % simMembers }

func randomMember(s *sim, _ int) int { return s.rng.IntN(simMembers) }

func (s *sim) hitShare() float64 { return float64(s.cachedTokens) / float64(s.inputTokens) }

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}

// TestPoolSimulation prints the tables of the pools page (go test -v): a pool
// with places to spare, and one that is nearly full.
func TestPoolSimulation(t *testing.T) {
	for _, capacity := range []int{24, 16} {
		t.Run(fmt.Sprint("capacity ", capacity), func(t *testing.T) { comparePolicies(t, capacity) })
	}
}

func comparePolicies(t *testing.T, capacity int) {
	policies := []struct {
		name   string
		choose policy
	}{
		{"agentop, headroom 2", withHeadroom(2)},
		{"agentop, headroom 4", withHeadroom(4)},
		{"bound for good", neverMoved},
		{"least-loaded", leastLoaded},
		{"round-robin", roundRobin},
		{"random", randomMember},
	}
	results := map[string]*sim{}
	var table strings.Builder
	table.WriteString("| policy | turns | cache-hit share | turns that changed member | queueing p95 | p99 | first token p50 | p99 |\n")
	table.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range policies {
		s := simulate(capacity, p.choose)
		results[p.name] = s
		fmt.Fprintf(&table, "| %s | %d | %.1f %% | %.1f %% | %.2f s | %.2f s | %.2f s | %.2f s |\n",
			p.name, len(s.waits), 100*s.hitShare(), 100*float64(s.moves)/float64(s.turns),
			quantile(s.waits, 0.95), quantile(s.waits, 0.99), quantile(s.firsts, 0.5), quantile(s.firsts, 0.99))
	}
	t.Logf("seed %d, %d conversations, %d members of capacity %d\n%s", simSeed, simConversations, simMembers, capacity, table.String())

	ours := results[policies[0].name]
	for _, other := range []string{"least-loaded", "round-robin", "random"} {
		if got, want := ours.hitShare(), results[other].hitShare()+0.1; got < want {
			t.Errorf("cache-hit share %.3f, want at least %.3f: 0.1 more than %s", got, want, other)
		}
		if got, want := quantile(ours.waits, 0.99), quantile(results[other].waits, 0.99)+0.25; got > want {
			t.Errorf("queueing p99 %.2f s, want at most %.2f s: %s and 0.25 s", got, want, other)
		}
	}
}
