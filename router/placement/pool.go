package placement

import "math"

// DefaultHeadroom is how many times the room another member needs, where the
// configuration does not say.
const DefaultHeadroom = 2

// PoolState is a pool at one moment.
type PoolState struct {
	Members  []MemberState
	Headroom float64 // 0 = DefaultHeadroom; below 1 counts as 1
}

// MemberState is one machine of a pool at one moment.
type MemberState struct {
	Name     string
	Capacity int     // requests at once; 0 = not known
	InFlight int     // requests there now, those of an old worker included
	Cost     float64 // cheaper is preferred
	Down     bool
}

// Member says which member of a pool serves the next request of a conversation
// that is bound to member bound ("" = to none yet), and whether that moves it.
//
// The default is the bound member, else the cheapest one with room. The member
// with the most room is taken instead only if it has more room than the
// default and at least Headroom times as much, so that a conversation does not
// go to and fro and lose its cache each time. Where nobody has room the bound
// member queues the request, or else the member that is least over its limit.
// A member that is down is taken only if all are. name is "" for a pool
// without members; the order of the members decides nothing.
//
// A member whose capacity is not known is never left for a better one, since
// it cannot be said to be full, and draws no conversation away from one that
// has room.
func Member(p PoolState, bound string) (name string, moved bool) {
	chosen, ok := p.standard(bound)
	if !ok {
		return "", false
	}
	if other := p.roomiest(); p.outweighs(other, chosen) {
		chosen = other
	}
	return chosen.Name, bound != "" && chosen.Name != bound
}

// Room is how many more requests the member can take at once; 1 stands for
// some where the capacity is not known.
func (m MemberState) Room() int {
	switch {
	case m.Down:
		return 0
	case m.Capacity <= 0:
		return 1
	}
	return max(0, m.Capacity-max(0, m.InFlight))
}

// standard is the default member; ok is false for a pool without members.
func (p PoolState) standard(bound string) (m MemberState, ok bool) {
	for i, c := range p.Members {
		if c.Name == bound && bound != "" {
			return c, true
		}
		if i == 0 || c.preferredTo(m) {
			m = c
		}
	}
	return m, len(p.Members) > 0
}

// roomiest is the member with the most room, the cheapest of those.
func (p PoolState) roomiest() MemberState {
	m := p.Members[0]
	for _, c := range p.Members[1:] {
		if c.Room() > m.Room() || c.Room() == m.Room() && c.preferredTo(m) {
			m = c
		}
	}
	return m
}

// outweighs says whether the default is left for other.
func (p PoolState) outweighs(other, chosen MemberState) bool {
	switch {
	case chosen.Down:
		return !other.Down
	case chosen.Capacity <= 0:
		return false
	}
	// More, and not only as much: with a headroom of 1, two equal members
	// would otherwise hand a conversation to and fro.
	return other.Room() > chosen.Room() &&
		float64(other.Room()) >= p.headroom()*float64(chosen.Room())
}

func (p PoolState) headroom() float64 {
	if p.Headroom == 0 || math.IsNaN(p.Headroom) {
		return DefaultHeadroom
	}
	return max(1, p.Headroom)
}

// preferredTo orders members for a conversation that is bound to none: up
// before down, with room before full; then, among those with room, by cost and
// room, and among full ones by how little they are over their limit. The name
// settles ties.
func (m MemberState) preferredTo(o MemberState) bool {
	mRoom, oRoom := m.Room(), o.Room()
	switch {
	case m.Down != o.Down:
		return o.Down
	case (mRoom > 0) != (oRoom > 0):
		return mRoom > 0
	case mRoom == 0 && !m.Down && m.over() != o.over():
		return m.over() < o.over()
	case m.Cost != o.Cost:
		return m.Cost < o.Cost
	case mRoom != oRoom:
		return mRoom > oRoom
	case m.InFlight != o.InFlight:
		return m.InFlight < o.InFlight
	}
	return m.Name < o.Name
}

// over is how many requests wait for a place at a full member.
func (m MemberState) over() int { return m.InFlight - m.Capacity }
