package reqlog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
)

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func fixed(d time.Duration) func() time.Time { return func() time.Time { return at(d) } }

// permutations calls fn with the lines in every order.
func permutations(lines []Line, fn func([]Line)) {
	var rec func(int)
	rec = func(n int) {
		if n == len(lines) {
			fn(slices.Clone(lines))
			return
		}
		for i := n; i < len(lines); i++ {
			lines[n], lines[i] = lines[i], lines[n]
			rec(n + 1)
			lines[n], lines[i] = lines[i], lines[n]
		}
	}
	rec(0)
}

func pinLine(d time.Duration, session, server string, key uint64) Line {
	return Line{
		Time: at(d), Kind: KindPin, Agent: "claude-code", Session: session, Server: server,
		Pin: PinNew, Why: "opened", Key: Hex(key),
	}
}

func sideLine(d time.Duration, server string, mark uint64, resp ...string) Line {
	return Line{
		Time: at(d), Kind: KindTurn, Turn: TurnSide, Agent: "claude-code", Session: "s1", Server: server,
		Mark: Hex(mark), Responses: resp,
	}
}

func moveLine(d time.Duration, session, server string) Line {
	return Line{Time: at(d), Kind: KindMove, Agent: "claude-code", Session: session, Server: server}
}

func forgetLine(d time.Duration, session string) Line {
	return Line{Time: at(d), Kind: KindForget, Agent: "claude-code", Session: session}
}

// Whose is key 7, and whose mark 8, after these lines? The answer must not
// depend on the order in which they are seen: old files are read while
// requests are served, and two processes write.
func TestWhoOwnsAValue(t *testing.T) {
	s := time.Second
	cases := map[string]struct {
		lines []Line
		want  []string // session@server, sorted
	}{
		"nobody":              {nil, nil},
		"one conversation":    {[]Line{mainTurn(0, "a", "glm", 7, 8)}, []string{"a@glm"}},
		"two at one server":   {[]Line{mainTurn(0, "a", "glm", 7, 8), mainTurn(s, "b", "glm", 7, 8)}, []string{"a@glm", "b@glm"}},
		"two at two servers":  {[]Line{mainTurn(0, "a", "glm", 7, 8), mainTurn(s, "b", "lab", 7, 8)}, []string{"a@glm", "b@lab"}},
		"own is a place too":  {[]Line{mainTurn(0, "a", "own", 7, 8)}, []string{"a@own"}},
		"a refusal is none":   {[]Line{mainTurn(0, "a", Refused, 7, 8)}, nil},
		"no session, no home": {[]Line{mainTurn(0, "", "glm", 7, 8)}, nil},
		"a moved one": {
			[]Line{mainTurn(0, "a", "glm", 7, 8), moveLine(s, "a", "lab")}, []string{"a@lab"},
		},
		"a turn in flight over a move": {
			[]Line{mainTurn(0, "a", "glm", 7, 8), moveLine(s, "a", "lab"), mainTurn(s/2, "a", "glm", 70, 80)}, []string{"a@lab"},
		},
		"a turn after a move": {
			[]Line{mainTurn(0, "a", "glm", 7, 8), moveLine(s, "a", "lab"), mainTurn(2*s, "a", "lab", 70, 80)}, []string{"a@lab"},
		},
		"another member of a pool": {
			[]Line{mainTurn(0, "a", "lab/gpu1", 7, 8), mainTurn(s, "a", "lab/gpu2", 70, 80)}, []string{"a@lab/gpu2"},
		},
		"a forgotten one": {
			[]Line{mainTurn(0, "a", "glm", 7, 8), forgetLine(s, "a")}, nil,
		},
		"a forgotten one, and another": {
			[]Line{mainTurn(0, "a", "glm", 7, 8), mainTurn(0, "b", "lab", 7, 8), forgetLine(s, "a")}, []string{"b@lab"},
		},
		"the same session anew after it was forgotten": {
			[]Line{mainTurn(0, "a", "glm", 7, 8), forgetLine(s, "a"), pinLine(2*s, "a", "lab", 70)}, nil,
		},
		"forgotten, then the same history again": {
			[]Line{forgetLine(0, "a"), mainTurn(s, "a", "lab", 7, 8)}, []string{"a@lab"},
		},
	}
	for name, c := range cases {
		permutations(c.lines, func(lines []Line) {
			if len(lines) > 2 && slices.ContainsFunc(lines, func(l Line) bool { return l.Kind == KindForget }) && lines[0].Kind != KindForget {
				return // a log is read in such an order that what was forgotten comes first
			}
			x := NewIndex(Limits{}, fixed(0))
			for i := range lines {
				x.Apply(&lines[i])
			}
			for what, owners := range map[string][]Owner{"key": x.ByKey(7), "mark": x.ByMark(8)} {
				if got := places(owners); !reflect.DeepEqual(got, c.want) {
					t.Errorf("%s: %s is of %v, want %v; order %v", name, what, got, c.want, kinds(lines))
				}
			}
		})
	}
}

func places(owners []Owner) []string {
	var out []string
	for _, o := range owners {
		out = append(out, o.Session+"@"+o.Server)
	}
	slices.Sort(out)
	return out
}

func kinds(lines []Line) (out []string) {
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s@%s %s", l.Kind, l.Server, l.Time.Format("05.0")))
	}
	return out
}

func TestSideRequestsLeaveTheirServerAlone(t *testing.T) {
	x := NewIndex(Limits{}, fixed(0))
	for _, l := range []Line{
		mainTurn(0, "s1", "glm", 7, 8), sideLine(1, "lab", 9, "resp_x"), sideLine(2, "lab", 8), sideLine(3, "lab/gpu2", 9),
		{Time: at(4), Kind: KindTurn, Turn: TurnSide, Agent: "claude-code", Session: "s1", Server: "lab", Key: Hex(9), Mark: Hex(10)},
	} {
		x.Apply(&l)
	}
	if c, _ := x.Last("claude-code", "s1"); c.Server != "glm" || c.Turns != 1 {
		t.Errorf("a side request counts for its session: %+v", c)
	}
	for what, c := range map[string]struct {
		got  []Owner
		want []string
	}{
		"mark of side requests":        {x.ByMark(9), []string{"@lab", "@lab/gpu2"}},
		"mark of both kinds":           {x.ByMark(8), []string{"@lab", "s1@glm"}},
		"response of a side request":   {x.ByResponse("resp_x"), []string{"@lab"}},
		"response nobody ever sent":    {x.ByResponse("resp_y"), nil},
		"no response":                  {x.ByResponse(""), nil},
		"no mark":                      {x.ByMark(0), nil},
		"key of a side request":        {x.ByKey(9), nil},
		"key of the main conversation": {x.ByKey(7), []string{"s1@glm"}},
	} {
		if got := places(c.got); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// However many claim a value, what is returned shows every place at which it
// was claimed, up to the four that are kept.
func TestManyOwnersKeepEveryPlace(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		x := NewIndex(Limits{}, fixed(0))
		servers := []string{"a", "b", "c", "d"}[:1+rnd.IntN(4)]
		want := map[string]bool{}
		for i := range 1 + rnd.IntN(30) {
			server := servers[rnd.IntN(len(servers))]
			if rnd.IntN(4) > 0 {
				server = servers[0]
			}
			want[server] = true
			l := mainTurn(time.Duration(i), fmt.Sprint("s", i), server, 7, 8)
			x.Apply(&l)
		}
		got := map[string]bool{}
		for _, o := range x.ByKey(7) {
			got[o.Server] = true
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: places %v, want %v", round, got, want)
		}
	}
}

// When more claimed a key than are kept and one of them moves, it may be one
// that was left out: the key matches nobody from then on.
func TestAMoveAmongManyMakesTheValueAmbiguous(t *testing.T) {
	for _, claims := range []int{maxOwners, maxOwners + 1} {
		x := NewIndex(Limits{}, fixed(0))
		for i := range claims {
			l := mainTurn(time.Duration(i), fmt.Sprint("s", i), "glm", 7, 0)
			x.Apply(&l)
		}
		move := moveLine(time.Minute, "s0", "lab")
		x.Apply(&move)
		if got := len(x.ByKey(7)); claims == maxOwners && got != maxOwners || claims > maxOwners && got != 0 {
			t.Errorf("%d claims and a move: %d owners", claims, got)
		}
	}
}

func TestRegisterNeedsNoLine(t *testing.T) {
	x := NewIndex(Limits{}, fixed(0))
	x.Register(Placed{Agent: "codex", Session: "s", Server: "glm", Key: 7, At: at(0)})
	c, ok := x.Last("codex", "s")
	if !ok || c.Server != "glm" || c.Turns != 0 || c.Key != 7 || len(x.ByKey(7)) != 1 {
		t.Errorf("Last = %+v, %v; key of %v", c, ok, x.ByKey(7))
	}
	if _, ok := x.Last("claude-code", "s"); ok {
		t.Error("another agent's equal id is the same conversation")
	}
	// An older line that is read back later changes nothing.
	old := Line{Time: at(-time.Hour), Kind: KindTurn, Turn: TurnOpening, Agent: "codex", Session: "s", Server: "lab", Key: Hex(6)}
	x.Apply(&old)
	if c, _ := x.Last("codex", "s"); c.Server != "glm" || c.Key != 7 || c.Turns != 1 || !c.Opened.Equal(at(-time.Hour)) {
		t.Errorf("after an older line: %+v", c)
	}
}

// Every field of a conversation, in whatever order its lines come.
func TestConversationIsTheSameInAnyOrder(t *testing.T) {
	first := mainTurn(0, "s", "glm", 1, 2)
	first.Turn, first.Pin, first.Why, first.ModelAsked, first.ModelSent = TurnOpening, PinNew, "opened", "opus", "glm-4"
	first.Input, first.CacheRead, first.Output, first.TotalMS = 100, 0, 10, 5000
	second := mainTurn(time.Minute, "s", "glm", 3, 4)
	second.ModelAsked, second.ModelSent, second.Status, second.Error = "opus", "glm-5", 502, "refused"
	second.Input, second.CacheRead, second.Output, second.FirstMS, second.TotalMS = 200, 90, 20, 300, 4000
	lines := []Line{pinLine(time.Millisecond, "s", "glm", 1), first, second, moveLine(time.Hour, "s", "lab")}
	lines[3].Pin, lines[3].Why = PinRestored, "moved by hand"
	want := Conversation{
		Agent: "claude-code", Session: "s", Server: "lab", Pin: PinRestored, Why: "moved by hand",
		Opened: at(0), LastTurn: at(time.Hour), Turns: 2,
		ModelAsked: "opus", ModelSent: "glm-5", Status: 502, Error: "refused",
		Context: 200, Cached: 90, FirstMS: 300, TotalMS: 4000, Key: 3, Mark: 4,
		Input: 300, CacheRead: 90, Output: 30,
	}
	permutations(lines, func(lines []Line) {
		x := NewIndex(Limits{}, fixed(0))
		for i := range lines {
			x.Apply(&lines[i])
		}
		if got, _ := x.Last("claude-code", "s"); !reflect.DeepEqual(got, want) {
			t.Errorf("order %v\ngot  %+v\nwant %+v", kinds(lines), got, want)
		}
		if got := x.Conversations(at(0)); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("Conversations = %+v", got)
		}
	})
}

// A turn that fails tells of no tokens, and the conversation is as long as it
// was: what a move would cost is known after a restart, too.
func TestATurnThatFailsLeavesTheContextKnown(t *testing.T) {
	whole, failed := mainTurn(0, "s", "glm", 1, 2), mainTurn(time.Minute, "s", "glm", 1, 0)
	whole.Input, whole.CacheRead, failed.Status = 100, 90, 529
	permutations([]Line{whole, failed}, func(lines []Line) {
		x := NewIndex(Limits{}, fixed(0))
		for i := range lines {
			x.Apply(&lines[i])
		}
		if c, _ := x.Last("claude-code", "s"); c.Context != 100 || c.Cached != 90 || c.Status != 529 {
			t.Errorf("order %v: %+v", kinds(lines), c)
		}
	})
}

// Rotation carries counts over, more than once for a conversation that lives
// long; what a crash left in the old files is in them already.
func TestKeptCountsAreTakenOnce(t *testing.T) {
	keep := func(d time.Duration, turns int) Line {
		return Line{Time: at(d), Kind: KindKeep, Agent: "claude-code", Session: "s", Server: "glm", Turns: turns, Opened: at(0)}
	}
	lines := []Line{
		mainTurn(0, "s", "glm", 0, 0), keep(0, 1), mainTurn(time.Hour, "s", "glm", 0, 0), keep(time.Hour, 2),
		mainTurn(2*time.Hour, "s", "glm", 0, 0),
	}
	backward, forward := NewIndex(Limits{}, fixed(0)), NewIndex(Limits{}, fixed(0))
	for i := range lines {
		forward.Apply(&lines[i])
		backward.Apply(&lines[len(lines)-1-i])
	}
	for name, x := range map[string]*Index{"newest first": backward, "as it happens": forward} {
		if c, _ := x.Last("claude-code", "s"); c.Turns != 3 || !c.Opened.Equal(at(0)) {
			t.Errorf("%s: %+v, want 3 turns", name, c)
		}
	}
}

func TestConversationsSince(t *testing.T) {
	x := NewIndex(Limits{}, fixed(0))
	for i := range 5 {
		l := mainTurn(time.Duration(i)*time.Hour, fmt.Sprint(i), "glm", 0, 0)
		x.Apply(&l)
	}
	if got := x.Conversations(at(3 * time.Hour)); len(got) != 2 {
		t.Errorf("got %+v, want the last two", got)
	}
}

// Look-ups, registrations, sweeps, lines and moves at once: for the race
// detector, and for a conversation's values never to become another's.
func TestIndexUnderConcurrentUse(t *testing.T) {
	x := NewIndex(Limits{Conversations: 64, Keys: 2000, Marks: 2000, Responses: 100}, time.Now)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 9))
			for range 3000 {
				n := rnd.Uint64N(300)
				session := fmt.Sprint("s", n)
				switch rnd.IntN(10) {
				case 0:
					l := Line{Time: time.Now(), Kind: KindForget, Agent: "codex", Session: session}
					x.Apply(&l)
				case 1:
					x.Conversations(time.Time{})
				case 2:
					x.sweepAt(time.Now().Add(Lifetime - time.Millisecond))
				case 3, 4, 5:
					for _, o := range x.ByKey(n + 1) {
						if o.Session != session {
							t.Errorf("key of %s is %s's", session, o.Session)
						}
					}
				default:
					x.Register(Placed{Agent: "codex", Session: session, Server: "glm", Key: n + 1, At: time.Now()})
				}
			}
		})
	}
	wg.Wait()
	if s := x.Stats(); s.Conversations > 64 || s.Keys > 2000 {
		t.Errorf("over the limits: %+v", s)
	}
}

// An answer is known before its line is there: its client may already be
// sending the next turn.
func TestRegisterAnAnswer(t *testing.T) {
	x := NewIndex(Limits{}, fixed(0))
	x.Register(Placed{Agent: "codex", Session: "s", Server: "glm", Key: 7, At: at(0)})
	x.Register(Placed{Agent: "codex", Session: "s", Server: "glm", Mark: 8, Response: "resp_1", At: at(0)})
	x.Register(Placed{Server: "lab", Mark: 9, Response: "resp_2", At: at(0)}) // a side request's
	for what, c := range map[string]struct {
		got  []Owner
		want []string
	}{
		"mark":                {x.ByMark(8), []string{"s@glm"}},
		"response":            {x.ByResponse("resp_1"), []string{"s@glm"}},
		"side request's mark": {x.ByMark(9), []string{"@lab"}},
		"its response":        {x.ByResponse("resp_2"), []string{"@lab"}},
	} {
		if got := places(c.got); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
	line := mainTurn(0, "s", "glm", 7, 8)
	line.Agent = "codex"
	x.Apply(&line)
	if c, _ := x.Last("codex", "s"); c.Turns != 1 || c.Key != 7 || c.Mark != 8 {
		t.Errorf("after its line: %+v, want one turn", c)
	}
}
