package worker

import "agentop/cmd/agentop/home"

// wideFiles says which files of the home directory others may reach, now that
// those which were opened have been closed to them.
func wideFiles(h home.Home) (list []string) {
	wide, err := h.Check()
	if err != nil {
		list = append(list, err.Error())
	}
	for _, w := range wide {
		list = append(list, w.String())
	}
	return list
}
