package placement

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestMemberKeepsTheBoundOneWhileItHasRoom(t *testing.T) {
	m := func(name string, capacity, inFlight int, cost float64) MemberState {
		return MemberState{Name: name, Capacity: capacity, InFlight: inFlight, Cost: cost}
	}
	down := func(m MemberState) MemberState { m.Down = true; return m }
	cases := []struct {
		name     string
		members  []MemberState
		headroom float64
		bound    string
		want     string
		moved    bool
	}{
		{"no members", nil, 2, "a", "", false},
		{"bound, idle", []MemberState{m("a", 4, 0, 1), m("b", 4, 0, 1)}, 2, "b", "b", false},
		{"bound, other has more but not twice", []MemberState{m("a", 8, 1, 1), m("b", 8, 4, 1)}, 2, "b", "b", false},
		{"bound, other has twice the room", []MemberState{m("a", 8, 0, 1), m("b", 8, 4, 1)}, 2, "b", "a", true},
		{"the one with the most room", []MemberState{m("a", 8, 0, 1), m("b", 8, 6, 1), m("c", 16, 1, 9)}, 2, "b", "c", true},
		{"bound and full", []MemberState{m("a", 8, 7, 1), m("b", 8, 8, 1)}, 2, "b", "a", true},
		{"all full, bound", []MemberState{m("a", 8, 9, 1), m("b", 8, 12, 1)}, 2, "b", "b", false},
		{"all full, bound to none", []MemberState{m("a", 8, 12, 1), m("b", 8, 9, 5)}, 2, "", "b", false},
		{"bound is down", []MemberState{m("a", 8, 7, 1), down(m("b", 8, 0, 1))}, 2, "b", "a", true},
		{"bound is down, the other full", []MemberState{m("a", 8, 9, 1), down(m("b", 8, 0, 1))}, 2, "b", "a", true},
		{"all down, bound", []MemberState{down(m("a", 8, 0, 1)), down(m("b", 8, 0, 1))}, 2, "b", "b", false},
		{"bound to one that is gone", []MemberState{m("a", 8, 0, 2), m("b", 8, 0, 1)}, 2, "z", "b", true},
		{"new: cheapest", []MemberState{m("a", 8, 0, 2), m("b", 8, 3, 1)}, 2, "", "b", false},
		{"new: cheapest with room", []MemberState{m("a", 8, 7, 2), m("b", 8, 8, 1)}, 2, "", "a", false},
		{"new: the dear one has twice the room", []MemberState{m("a", 8, 0, 2), m("b", 8, 4, 1)}, 2, "", "a", false},
		{"new: equal costs, more room", []MemberState{m("a", 8, 4, 1), m("b", 8, 3, 1)}, 2, "", "b", false},
		{"new: equal in all, by name", []MemberState{m("b", 8, 3, 1), m("a", 8, 3, 1)}, 2, "", "a", false},
		{"headroom left out is 2", []MemberState{m("a", 8, 1, 1), m("b", 8, 4, 1)}, 0, "b", "b", false},
		{"headroom below 1 is 1", []MemberState{m("a", 8, 4, 1), m("b", 8, 4, 1)}, 0.1, "b", "b", false},
		{"headroom 1: more is enough", []MemberState{m("a", 8, 3, 1), m("b", 8, 4, 1)}, 1, "b", "a", true},
		{"unknown capacity is not left", []MemberState{m("a", 64, 0, 1), m("b", 0, 30, 1)}, 2, "b", "b", false},
		{"unknown capacity draws nobody from room", []MemberState{m("a", 0, 0, 1), m("b", 8, 7, 1)}, 1, "b", "b", false},
		{"unknown capacity helps out a full one", []MemberState{m("a", 0, 9, 1), m("b", 8, 8, 1)}, 2, "b", "a", true},
		{"new: unknown capacities, fewest in flight", []MemberState{m("a", 0, 3, 1), m("b", 0, 2, 1)}, 2, "", "b", false},
		{"more in flight than nothing", []MemberState{m("a", 4, -3, 1), m("b", 4, 0, 1)}, 1, "b", "b", false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, moved := Member(PoolState{tc.members, tc.headroom}, tc.bound)
			if got != tc.want || moved != tc.moved {
				t.Errorf("got %q, moved %t; want %q, moved %t", got, moved, tc.want, tc.moved)
			}
		})
	}
}

func drawPool(t *rapid.T) PoolState {
	p := PoolState{Headroom: rapid.SampledFrom([]float64{0, 1, 1.5, 2, 3}).Draw(t, "headroom")}
	for i := range rapid.IntRange(1, 5).Draw(t, "members") {
		p.Members = append(p.Members, MemberState{
			Name:     fmt.Sprintf("gpu%d", i),
			Capacity: rapid.IntRange(0, 8).Draw(t, "capacity"),
			InFlight: rapid.IntRange(0, 10).Draw(t, "in flight"),
			Cost:     float64(rapid.IntRange(1, 3).Draw(t, "cost")),
			Down:     rapid.IntRange(0, 4).Draw(t, "down") == 0,
		})
	}
	return p
}

func drawBound(t *rapid.T, p PoolState) string {
	return rapid.SampledFrom(append([]MemberState{{}, {Name: "removed"}}, p.Members...)).Draw(t, "bound").Name
}

// member finds a member by name without the code under test.
func member(t *rapid.T, p PoolState, name string) *MemberState {
	for i := range p.Members {
		if p.Members[i].Name == name {
			return &p.Members[i]
		}
	}
	t.Fatalf("chose %q, which is no member of %+v", name, p)
	return nil
}

// roomOf is the room as the documentation words it, for known capacities.
func roomOf(m MemberState) int {
	if m.Down || m.InFlight >= m.Capacity {
		return 0
	}
	return m.Capacity - m.InFlight
}

func headroomOf(p PoolState) float64 {
	if p.Headroom == 0 {
		return 2
	}
	return p.Headroom
}

func TestPropertyTheMemberIsAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		bound := drawBound(t, p)
		name, moved := Member(p, bound)
		if moved != (bound != "" && bound != name) {
			t.Fatalf("moved %t from %q to %q", moved, bound, name)
		}
		if !member(t, p, name).Down {
			return
		}
		for _, m := range p.Members {
			if !m.Down {
				t.Fatalf("chose %q, which is down, while %q is up", name, m.Name)
			}
		}
	})
}

func TestPropertyTheOrderOfMembersDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		bound := drawBound(t, p)
		want, _ := Member(p, bound)
		p.Members = rapid.Permutation(p.Members).Draw(t, "order")
		if got, _ := Member(p, bound); got != want {
			t.Fatalf("got %q, want %q whatever the order", got, want)
		}
	})
}

// The bound member is left exactly if it is down, or another has headroom
// times its room; then it is left for the one that truly has the most.
func TestPropertyABoundMemberIsLeftOnlyForHeadroom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		for i := range p.Members {
			p.Members[i].Capacity++ // all known
		}
		i := rapid.IntRange(0, len(p.Members)-1).Draw(t, "bound")
		bound := p.Members[i]
		most, anyUp := 0, false
		for _, m := range p.Members {
			most = max(most, roomOf(m))
			anyUp = anyUp || !m.Down
		}
		mayLeave := most > roomOf(bound) && float64(most) >= headroomOf(p)*float64(roomOf(bound))
		mustLeave := bound.Down && anyUp
		name, moved := Member(p, bound.Name)
		if moved != (mayLeave || mustLeave) {
			t.Fatalf("moved %t to %q, want %t", moved, name, mayLeave || mustLeave)
		}
		if chosen := *member(t, p, name); moved && roomOf(chosen) != most {
			t.Fatalf("moved to %q with room %d, the most is %d", name, roomOf(chosen), most)
		}
	})
}

func TestPropertyACapacityNotKnownIsNeverLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		i := rapid.IntRange(0, len(p.Members)-1).Draw(t, "bound")
		p.Members[i].Capacity, p.Members[i].Down = 0, false
		if name, moved := Member(p, p.Members[i].Name); moved {
			t.Fatalf("left %q for %q", p.Members[i].Name, name)
		}
	})
}

// After a move, neither while that request is in flight nor right after it
// does the conversation go back.
func TestPropertyAMoveIsNotTakenBackAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		bound := drawBound(t, p)
		name, moved := Member(p, bound)
		if !moved {
			return
		}
		if again, moves := Member(p, name); moves {
			t.Fatalf("%q to %q, and once answered to %q", bound, name, again)
		}
		member(t, p, name).InFlight++
		if again, _ := Member(p, name); again == bound {
			t.Fatalf("%q to %q, and while in flight back", bound, name)
		}
	})
}

// A new conversation gets the cheapest member with room, the roomiest of
// those, or the one that truly has the most room, if that is headroom times
// the cheapest's.
func TestPropertyANewConversationGetsTheCheapestWithRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		cost, room, most := math.Inf(1), 0, 0
		for i := range p.Members {
			p.Members[i].Capacity++ // all known
			m := p.Members[i]
			most = max(most, roomOf(m))
			if roomOf(m) > 0 && (m.Cost < cost || m.Cost == cost && roomOf(m) > room) {
				cost, room = m.Cost, roomOf(m)
			}
		}
		name, _ := Member(p, "")
		chosen := *member(t, p, name)
		wantCost, wantRoom := cost, room
		if most > room && float64(most) >= headroomOf(p)*float64(room) {
			wantCost, wantRoom = chosen.Cost, most
		}
		if room > 0 && (chosen.Cost != wantCost || roomOf(chosen) != wantRoom) {
			t.Fatalf("chose %+v, want cost %v and room %d", chosen, wantCost, wantRoom)
		}
	})
}
