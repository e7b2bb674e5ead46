package router

import (
	"agentop/router/control"
	"agentop/router/placement"
)

// shown is a row as people may see it: under its plain id, and with no title
// where the user wants none.
func (r *Router) shown(s control.Session) control.Session {
	s.ID = placement.Plain(s.ID)
	if !r.Config().Titles {
		s.Title, s.Dir = "", ""
	}
	return s
}

// entitle gives a pin that is about to be saved the title that its conversation
// has by now. A title is never a reason to save.
func (r *Router) entitle(p *pinRecord) {
	if !r.Config().Titles {
		p.Title, p.Dir = "", ""
		return
	}
	if s, ok := r.roster.get(p.conversation(), r.Now()); ok && s.Title != "" {
		p.Title = s.Title
	}
}
