package filestore

import "time"

const (
	// saveApart is the least time from one save's beginning to the next one's
	// while durable writes crowd. More would have more conversations begin at
	// the same moment, and their answers' events come at the same moments.
	saveApart = 10 * time.Millisecond

	// crowdLife is how long it is remembered how many came together.
	crowdLife = time.Second
)

// pace has saves begin apart while durable writes crowd, so that more of them
// share one: a save costs the processor as much for twenty as for one.
type pace struct {
	began time.Time // when the last save began
	crowd int       // the most that lately shared one
	since time.Time // when so many did
}

// gather returns until when so many that wait should wait for more to share
// their save: no time at all if none came together lately, if as many as then
// are there again, or if the last save began long enough ago.
func (p *pace) gather(waiting int, now time.Time) (until time.Time) {
	if next := p.began.Add(saveApart); waiting < p.crowd && now.Before(next) {
		return next
	}
	return time.Time{}
}

// saved notes a save that so many shared.
func (p *pace) saved(began time.Time, shared int) {
	p.began = began
	if shared >= p.crowd || began.Sub(p.since) > crowdLife {
		p.crowd, p.since = shared, began
	}
}
