package tui

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"agentop/tui/view"
)

// takeLog takes over the lines that were read, before those that were told
// since.
func (m *model) takeLog(list []view.Request) {
	// A line without a method tells of a pin, which is no request.
	list = slices.DeleteFunc(list, func(r view.Request) bool { return r.Method == "" && r.Status == 0 })
	seen := make(map[string]bool, len(list))
	for i := range list {
		seen[requestID(&list[i])] = true
	}
	for i := range m.screen.Log.All {
		if r := &m.screen.Log.All[i]; !seen[requestID(r)] && (len(list) == 0 || r.Time.After(list[0].Time)) {
			list = append(list, *r)
		}
	}
	m.logLoaded = true
	m.screen.Log.All = nil
	m.addRequests(list)
}

func requestID(r *view.Request) string { return r.ID + " " + r.Time.String() }

// addRequests appends to the log, and forgets the oldest.
func (m *model) addRequests(list []view.Request) {
	log := &m.screen.Log
	dropped := 0
	if over := len(log.All) + len(list) - maxLog; over > 0 {
		dropped = min(over, len(log.All))
		list = list[over-dropped:]
	}
	log.All = append(log.All[dropped:], list...)
	log.Cursor -= dropped // its row, as far as it is still there; with a filter about so
}

// arrangeLog finds the rows that match and keeps the cursor among them.
func (m *model) arrangeLog(now time.Time) {
	log := &m.screen.Log
	log.Rows, log.Sessions = log.Rows[:0], m.known.all
	if m.screen.Body != view.BodyLog {
		return
	}
	words := strings.Fields(strings.ToLower(log.Filter.Text))
	for i := range log.All {
		title := ""
		if c := m.known.all[view.Key{Agent: log.All[i].Agent, ID: log.All[i].Session}]; c != nil {
			title = c.Title
		}
		if requestMatches(&log.All[i], title, words) {
			log.Rows = append(log.Rows, i)
		}
	}
	last := max(len(log.Rows)-1, 0)
	if log.Follow {
		log.Cursor = last
	}
	log.Cursor = min(max(log.Cursor, 0), last)
	h := m.screen.LogHeight(m.screen.BodyHeight(m.width, m.height, now))
	log.Offset = view.Window(log.Offset, log.Cursor, len(log.Rows), h)
}

func requestMatches(r *view.Request, title string, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{r.Agent, r.Session, r.Turn, r.Side, r.Pin, r.Server, head(r.Model), r.Method, head(r.Path),
		strconv.Itoa(r.Status), head(r.Error), view.StatusText(r.Status), head(title)}, "\x00"))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
