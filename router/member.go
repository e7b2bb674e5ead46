package router

import (
	"agentop/router/config"
	"agentop/router/placement"
)

// chooseMember picks the pool's member for this turn, the pin's own one
// unless another has much more room.
func (t *turn) chooseMember() {
	if t.server == nil || len(t.server.Pool) == 0 {
		return
	}
	bound := ""
	if t.pin != nil {
		bound = t.pin.Member
	}
	t.member, _ = placement.Member(t.poolState(), bound)
}

func (t *turn) poolState() placement.PoolState {
	now := t.r.Now()
	state := placement.PoolState{Headroom: t.server.Headroom}
	for _, m := range t.server.Pool {
		place := placeName(t.server.Name, m.Name)
		state.Members = append(state.Members, placement.MemberState{
			Name: m.Name, Capacity: m.Capacity, Cost: m.Cost,
			InFlight: t.r.load.at(place), Down: t.r.health.down(place, now),
		})
	}
	return state
}

// otherMember moves the turn to another member after a refused connection and
// remembers it in the pin; false when there is no other.
func (t *turn) otherMember(to *target) bool {
	state := t.poolState()
	name, _ := placement.Member(state, "")
	if name == "" || name == t.member || t.r.health.down(placeName(t.server.Name, name), t.r.Now()) {
		return false
	}
	before := t.member
	t.member = name
	next, f := t.target()
	if f != nil {
		t.member = before
		return false
	}
	*to = *next
	t.leave()
	t.leave = t.r.load.add(to.place)
	if isMain(t.decision.Turn) && t.pin != nil {
		t.keepPin(false, false)
	}
	return true
}

// baseURL is the URL of a server or of one of its pool's members.
func baseURL(s *config.Server, member string) string {
	for _, m := range s.Pool {
		if m.Name == member {
			return m.URL
		}
	}
	return s.URL
}
