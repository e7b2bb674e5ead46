package placement

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"agentop/agents"
	"agentop/agents/outline"
)

// rapid prints the seed of a failing run and the shrunken draw.

var (
	sessionNames = []string{"", "S", "T", "U", px("3")}
	serverNames  = []string{"glm", "lab", "llama", "gone", Own}
	someAgents   = []agents.Agent{agents.ClaudeCode, agents.Codex, agents.OpenCode, agents.Other}
)

func drawConversation(t *rapid.T, label string) Conversation {
	return Conversation{
		rapid.SampledFrom(someAgents[:2]).Draw(t, label+" agent"),
		rapid.SampledFrom(sessionNames).Draw(t, label+" session"),
	}
}

func drawOwners(t *rapid.T, label string) []Owner {
	var owners []Owner
	for i := range rapid.IntRange(0, 3).Draw(t, label+" owners") {
		l := fmt.Sprintf("%s owner %d", label, i)
		owners = append(owners, Owner{drawConversation(t, l), rapid.SampledFrom(serverNames).Draw(t, l+" server")})
	}
	return owners
}

func drawPlaces(t *rapid.T, label string) map[Conversation]string {
	places := map[Conversation]string{}
	for i := range rapid.IntRange(0, 4).Draw(t, label) {
		l := fmt.Sprintf("%s %d", label, i)
		if c := drawConversation(t, l); c.Session != "" {
			places[c] = rapid.SampledFrom(serverNames).Draw(t, l+" server")
		}
	}
	return places
}

func drawKnown(t *rapid.T) *memory {
	m := &memory{
		pins: drawPlaces(t, "pins"), last: drawPlaces(t, "last"),
		keys: map[uint64][]Owner{}, marks: map[uint64][]Owner{},
		responses: map[string][]Owner{"r1": drawOwners(t, "response")},
		loading:   rapid.IntRange(0, 4).Draw(t, "loading") == 0,
	}
	for id := uint64(1); id <= 5; id++ {
		m.keys[id] = drawOwners(t, fmt.Sprint("key ", id))
		m.marks[id] = drawOwners(t, fmt.Sprint("mark ", id))
	}
	return m
}

func drawChoices(t *rapid.T) Choices {
	c := three()
	c.Server = rapid.SampledFrom([]string{"", "glm", "lab", "llama"}).Draw(t, "set to")
	c.Upstream = rapid.IntRange(0, 3).Draw(t, "own upstream") > 0
	return c
}

func drawQuestion(t *rapid.T, turns ...agents.Turn) Question {
	ids := rapid.SliceOfN(rapid.Uint64Range(1, 8), 0, 24)
	q := Question{
		Agent:   rapid.SampledFrom(someAgents).Draw(t, "agent"),
		Session: rapid.SampledFrom(sessionNames).Draw(t, "session"),
		Parent:  rapid.SampledFrom(sessionNames).Draw(t, "parent"),
		Turn:    rapid.SampledFrom(turns).Draw(t, "turn"),
		Format:  rapid.SampledFrom([]outline.Format{outline.Messages, outline.Responses, outline.ChatCompletions}).Draw(t, "format"),
		Keys:    ids.Draw(t, "keys"),
		Marks:   ids.Draw(t, "marks"),
		Kind: rapid.SampledFrom([]agents.Kind{agents.KindMain, agents.KindTitle, agents.KindCompaction, agents.KindSubagent,
			agents.KindCount, agents.KindModels, agents.KindOther}).Draw(t, "kind"),
		Response: rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "response id"),
		Waited:   rapid.Bool().Draw(t, "waited"),
		Unread:   rapid.Bool().Draw(t, "unread"),
	}
	return q
}

var (
	allTurns  = []agents.Turn{opening, continuation, side, none}
	mainTurns = []agents.Turn{opening, continuation}
)

func TestPropertyTheSameQuestionHasTheSameAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, c, k := drawQuestion(t, allTurns...), drawChoices(t), drawKnown(t)
		if first, second := Place(q, c, k), Place(q, c, k); first != second {
			t.Fatalf("first %+v\nthen  %+v", first, second)
		}
	})
}

func TestPropertyADecisionIsOneOfThree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Place(drawQuestion(t, allTurns...), drawChoices(t), drawKnown(t))
		set := 0
		for _, is := range []bool{d.Wait != WaitNone, d.Refusal.Kind != RefusedNot, d.Server != ""} {
			if is {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("got %+v, want exactly one of wait, refusal and server", d)
		}
		if d.Pin.Makes() && (d.Server == "" || d.Session == "") {
			t.Fatalf("got %+v, want no pin without a place and a name", d)
		}
		if (d.Refusal.Kind != RefusedNot) != (d.Refusal.Text() != "") {
			t.Fatalf("got refusal text %q for %+v", d.Refusal.Text(), d.Refusal)
		}
	})
}

func TestPropertyAPinIsAlwaysKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, c, k := drawQuestion(t, mainTurns...), drawChoices(t), drawKnown(t)
		if q.Session == "" {
			q.Session = "S"
		}
		at := rapid.SampledFrom(serverNames).Draw(t, "pinned to")
		k.pins[Conversation{q.Agent, q.Session}] = at
		d := Place(q, c, k)
		switch {
		case d.Rule != Rule1Pin || d.Wait != WaitNone || d.Session != q.Session || d.Turn != continuation:
			t.Fatalf("got %+v, want rule 1", d)
		case d.Refusal.Kind != RefusedNot && d.Refusal.Server != at:
			t.Fatalf("refused for %q, want only for its own place %q", d.Refusal.Server, at)
		case d.Server != "" && (d.Server != at || d.Pin != PinKept):
			t.Fatalf("got %+v, want it kept at %q", d, at)
		}
	})
}

func TestPropertyNoSideRequestMakesAPin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t, side, none)
		d := Place(q, drawChoices(t), drawKnown(t))
		if d.Pin != PinNone || d.Turn != q.Turn || d.Session != q.Session {
			t.Fatalf("got %+v, want turn %v of session %q and no pin", d, q.Turn, q.Session)
		}
	})
}

// Changing where an agent's new conversations go, and adding or losing a
// server, leaves every conversation that a rule up to 2 found where it was, or
// refuses it.
func TestPropertyNoChangeOfServersMovesAConversation(t *testing.T) {
	judged := 0
	defer func() {
		if judged == 0 {
			t.Error("no draw was a known conversation")
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		q, c, k := drawQuestion(t, mainTurns...), drawChoices(t), drawKnown(t)
		before := Place(q, c, k)
		known := before.Rule == Rule1Pin || before.Rule >= Rule2aLog && before.Rule <= Rule2eParent
		if !known || before.Server == "" {
			return
		}
		judged++
		changed := drawChoices(t)
		changed.Servers["new"] = ServerInfo{}
		lost := rapid.SampledFrom([]string{"", "glm", "lab", "llama"}).Draw(t, "lost")
		delete(changed.Servers, lost)
		if changed.Server == lost {
			changed.Server = "new"
		}
		after := Place(q, changed, k)
		if after.Server != before.Server && after.Refusal.Kind == RefusedNot {
			t.Fatalf("moved from %q to %q by %+v", before.Server, after.Server, changed)
		}
		if after.Rule != before.Rule || after.Session != before.Session {
			t.Fatalf("got %+v, want the rule and the conversation of %+v", after, before)
		}
		if after.Refusal.Kind != RefusedNot && after.Refusal.Server != before.Server {
			t.Fatalf("refused for %q, want for %q", after.Refusal.Server, before.Server)
		}
	})
}

func TestPropertyAnUnknownContinuationStaysOffTheCurrentServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, c := drawQuestion(t, continuation), drawChoices(t)
		d := Place(q, c, &memory{})
		want := Own
		if !c.Upstream {
			want = c.Server
		}
		if d.Server != want && d.Refusal.Kind == RefusedNot {
			t.Fatalf("got %+v, want %q", d, want)
		}
		if d.Server != Own && d.Server != "" && d.Rule != Rule7NoUpstream {
			t.Fatalf("got %+v, want only rule 7 to say a server", d)
		}
	})
}

// Whatever two places claim, they draw nobody: the answer is the same as if
// nobody had claimed it.
func TestPropertyAnAmbiguousClaimMatchesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t, opening, continuation, side, none)
		q.Session, q.Parent, q.Response = "S", "", "r1"
		c := drawChoices(t)
		claims := []Owner{
			{Conversation{q.Agent, "T"}, "glm"}, {Conversation{q.Agent, "U"}, "lab"},
			{Conversation{q.Agent, ""}, Own}, {Conversation{q.Agent, "V"}, "glm"},
		}
		claims = rapid.Permutation(claims).Draw(t, "claims")[:3]
		k := &memory{keys: map[uint64][]Owner{}, marks: map[uint64][]Owner{}, responses: map[string][]Owner{"r1": claims}}
		for id := uint64(1); id <= 8; id++ {
			k.keys[id], k.marks[id] = claims, claims
		}
		if got, want := Place(q, c, k), Place(q, c, &memory{}); got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestPropertyLookupsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t, allTurns...)
		many := rapid.SliceOfN(rapid.Uint64(), 0, 400)
		q.Keys, q.Marks = many.Draw(t, "many keys"), many.Draw(t, "many marks")
		k := &memory{}
		Place(q, drawChoices(t), k)
		if k.keyLookups > MaxLookups || k.markLookups > MaxLookups {
			t.Fatalf("looked up %d keys and %d marks, want at most %d", k.keyLookups, k.markLookups, MaxLookups)
		}
	})
}

func TestLookupsGoSixteenDeep(t *testing.T) {
	var deep []uint64
	for id := uint64(100); id > 0; id-- {
		deep = append(deep, id)
	}
	cases := []struct {
		name  string
		q     Question
		known memory
		want  Rule
	}{
		// The full input's key is 1; its strict prefixes are 2 (deepest) to 100.
		{"16th strict prefix", asks(continuation, keys(deep...)), memory{keys: claim(17, owner("T", "lab"))}, Rule2cKey},
		{"17th strict prefix", asks(continuation, keys(deep...)), memory{keys: claim(18, owner("T", "lab"))}, Rule5Unseen},
		{"16th mark", asks(continuation, marks(deep...)), memory{marks: claim(85, owner("T", "lab"))}, Rule2dMark},
		{"17th mark", asks(continuation, marks(deep...)), memory{marks: claim(84, owner("T", "lab"))}, Rule5Unseen},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := Place(tc.q, three(), &tc.known).Rule; got != tc.want {
				t.Errorf("got rule %s, want %s", got, tc.want)
			}
			if tc.known.keyLookups > MaxLookups || tc.known.markLookups > MaxLookups {
				t.Errorf("looked up %d keys and %d marks, want at most %d each", tc.known.keyLookups, tc.known.markLookups, MaxLookups)
			}
		})
	}
}

// One life of a conversation without session: many turns, with switches
// between them, are one row on one server.
func TestPropertyASessionLessConversationIsOneRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &memory{pins: map[Conversation]string{}, keys: map[uint64][]Owner{}, marks: map[uint64][]Owner{}}
		type life struct {
			input          []uint64
			marks          []uint64
			session, place string
		}
		lives := make([]life, rapid.IntRange(1, 3).Draw(t, "conversations"))
		fresh := uint64(1000)
		for range rapid.IntRange(2, 30).Draw(t, "steps") {
			l := &lives[rapid.IntRange(0, len(lives)-1).Draw(t, "whose turn")]
			c := three()
			c.Server = rapid.SampledFrom([]string{"glm", "lab"}).Draw(t, "set to")
			turn := continuation
			if l.input == nil {
				turn, l.input = opening, []uint64{1, 2} // equal system and first turn
			}
			d := Place(asks(turn, session(""), keys(l.input...), marks(l.marks...)), c, k)
			if l.session == "" {
				l.session, l.place = d.Session, d.Server
			}
			if d.Session != l.session || d.Server != l.place {
				t.Fatalf("got %+v, want session %q on %q", d, l.session, l.place)
			}
			row := claude(d.Session)
			k.pins[row] = d.Server
			full := l.input[len(l.input)-1]
			k.keys[full] = append([]Owner{{row, d.Server}}, k.keys[full]...)
			k.marks[fresh] = []Owner{{row, d.Server}}
			l.marks = append([]uint64{fresh}, l.marks...)
			l.input = append(l.input, fresh, fresh+1) // the answer, the next text
			fresh += 2
		}
	})
}
