package reqlog

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// An idle entry goes after its life, one that is used stays, and the count and
// the memory of the rest go with it.
func TestSweep(t *testing.T) {
	c := &clock{t: at(0)}
	x := NewIndex(Limits{}, c.now)
	for i := range uint64(1000) {
		x.Register(Placed{Agent: "codex", Session: fmt.Sprint(i % 10), Server: "glm", Key: i + 1, At: at(0)})
	}
	x.Sweep()
	c.add(30 * day)
	x.Sweep()
	if s := x.Stats(); s.Keys != 1000 || s.Conversations != 10 {
		t.Errorf("after 30 days: %+v", s)
	}
	if len(x.ByKey(1)) != 1 { // a look-up that matches is a use of the key
		t.Fatal("key 1 is unknown")
	}
	x.Register(Placed{Agent: "codex", Session: "0", Server: "glm", Key: 5000, At: c.now()})
	c.add(2 * day)
	x.Sweep()
	if s := x.Stats(); s.Keys != 2 || s.Conversations != 1 {
		t.Errorf("after 32 days: %+v, want the two keys that were used", s)
	}
	if got := places(x.ByKey(5000)); !reflect.DeepEqual(got, []string{"0@glm"}) {
		t.Errorf("the used one: %v", got)
	}
	if got := places(x.ByKey(2)); got != nil {
		t.Errorf("an idle one: %v", got)
	}
}

// After sweeping, what is left is found: emptied places break no chain.
func TestSweepKeepsTheRestFindable(t *testing.T) {
	x := NewIndex(Limits{}, fixed(0))
	for i := range uint64(20000) {
		age := time.Duration(0)
		if i%3 == 0 {
			age = -40 * day
		}
		x.Register(Placed{Agent: "codex", Session: fmt.Sprint(i % 3), Server: "glm", Key: i + 1, At: at(age)})
	}
	x.Sweep()
	for i := range uint64(20000) {
		if got := len(x.ByKey(i + 1)); (got == 1) != (i%3 != 0) {
			t.Fatalf("key %d: %d owners", i+1, got)
		}
	}
}

func TestFullTablesDropNewKeysAndSaySo(t *testing.T) {
	var warned []string
	c := &clock{t: at(0)}
	l := openLog(t, logDir(t), Options{
		Now: c.now, Limits: Limits{Conversations: 10, Keys: 100, Marks: 100, Responses: 100},
		Warn: func(s string) { warned = append(warned, s) },
	})
	loadNow(t, l)
	for i := range 150 {
		line := mainTurn(time.Duration(i), "s", "glm", uint64(i+1), uint64(i+1))
		line.Responses = []string{fmt.Sprint("resp_", i)}
		mustAppend(t, l, line)
	}
	x := l.Index()
	if len(x.ByKey(100)) != 1 || x.ByKey(101) != nil || len(x.ByMark(100)) != 1 || x.ByMark(101) != nil ||
		len(x.ByResponse("resp_99")) != 1 || x.ByResponse("resp_100") != nil {
		t.Error("not the first hundred are known")
	}
	if s := l.State(); s.Keys != 100 || s.DroppedKeys != 50 || s.DroppedMarks != 50 || s.DroppedResponses != 50 {
		t.Errorf("state %+v", s.Stats)
	}
	l.Maintain()
	l.Maintain()
	slices.Sort(warned)
	if len(warned) != 3 || !strings.HasPrefix(warned[0], "100 of at most 100 prefix keys") {
		t.Errorf("warnings %q, want one for each table", warned)
	}
	// What has lapsed makes room.
	c.add(32 * day)
	l.Maintain()
	line := mainTurn(32*day, "s", "glm", 500, 0)
	mustAppend(t, l, line)
	if len(x.ByKey(500)) != 1 {
		t.Error("no room after a sweep")
	}
}

// A table full of conversations lets the least recently used go; their values
// never become those of the conversation that takes the place.
func TestFullConversationsEvictTheLeastRecent(t *testing.T) {
	x := NewIndex(Limits{Conversations: 50}, fixed(0))
	for i := range 5000 {
		x.Register(Placed{Agent: "codex", Session: fmt.Sprint("s", i), Server: "glm", Key: uint64(i + 1), At: at(time.Duration(i) * time.Second)})
		x.Register(Placed{Agent: "codex", Session: "busy", Server: "lab", Key: 1 << 40, At: at(time.Duration(i) * time.Second)})
		if i%500 == 499 {
			x.Sweep()
		}
	}
	if c, ok := x.Last("codex", "busy"); !ok || c.Server != "lab" {
		t.Errorf("the busy one: %+v, %v", c, ok)
	}
	s := x.Stats()
	if s.Conversations != 50 || s.EvictedConversations != 5001-50 {
		t.Errorf("stats %+v", s)
	}
	for i := range 5000 {
		got := x.ByKey(uint64(i + 1))
		if known := i >= 5000-49; known != (len(got) == 1) || known && got[0].Session != fmt.Sprint("s", i) {
			t.Fatalf("key of s%d: %v", i, got)
		}
	}
}

// The clock by which things expire is not led astray by the system's.
func TestExpiryClock(t *testing.T) {
	type step struct{ now, passed, want time.Duration }
	cases := map[string]struct {
		begin time.Duration
		steps []step
	}{
		"goes with the time":          {0, []step{{day, day, day}, {2 * day, day, 2 * day}}},
		"a year ahead":                {0, []step{{365 * day, time.Minute, time.Hour + time.Minute}, {time.Hour, time.Minute, time.Hour}}},
		"a year back":                 {0, []step{{-365 * day, time.Minute, -365 * day}, {day, time.Minute, -365*day + time.Hour + time.Minute}}},
		"after a holiday it trails":   {-50 * day, []step{{0, 0, -50*day + time.Hour}, {time.Minute, time.Minute, -50*day + 2*time.Hour + time.Minute}}},
		"true time counts in full":    {-50 * day, []step{{60 * day, 60 * day, 10*day + time.Hour}}},
		"a newest line in the future": {90 * day, []step{{0, 0, 0}}},
	}
	for name, c := range cases {
		var s sweeper
		s.begin(at(c.begin), at(max(0, min(c.begin, 0))))
		for i, st := range c.steps {
			if got := s.tick(at(st.now), st.passed); !got.Equal(at(st.want)) {
				t.Errorf("%s, step %d: %v, want %v", name, i, got.Sub(at(0)), st.want)
			}
		}
	}
}

// A clock that was set back does not undo a move: what settles a conversation's
// place is stamped after what is known of it.
func TestClockSetBackBeforeAMove(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(0)}
	l := openLog(t, dir, Options{Now: c.now})
	mustAppend(t, l, mainTurn(0, "s", "glm", 7, 8), mainTurn(0, "gone", "glm", 17, 18))
	c.add(-400 * day)
	now := c.now().Sub(at(0))
	mustAppend(t, l, moveLine(now, "s", "lab"), forgetLine(now, "gone"), pinLine(now, "gone", "lab", 19))
	l.Close()
	for name, x := range map[string]*Index{"running": l.Index(), "restarted": reload(t, dir, Options{Now: c.now}).Index()} {
		for what, c := range map[string]struct {
			got  []Owner
			want []string
		}{
			"moved":     {x.ByKey(7), []string{"s@lab"}},
			"forgotten": {x.ByKey(17), nil},
			"anew":      {x.ByKey(19), []string{"gone@lab"}},
		} {
			if got := places(c.got); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, %s: %v, want %v", name, what, got, c.want)
			}
		}
	}
}

// A start with the clock a year ahead forgets nothing and removes no file.
func TestStartWithTheClockAhead(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(0)}
	l := openLog(t, dir, Options{Now: c.now})
	for range 3 {
		mustAppend(t, l, mainTurn(c.now().Sub(at(0)), "s", "glm", 7, 8))
		c.add(day)
	}
	l.Close()
	c.add(365 * day)
	l = reload(t, dir, Options{Now: c.now})
	mustAppend(t, l, mainTurn(c.now().Sub(at(0)), "other", "glm", 9, 0))
	for range 3 {
		l.Maintain()
	}
	if got := places(l.Index().ByKey(7)); !reflect.DeepEqual(got, []string{"s@glm"}) {
		t.Errorf("key: %v", got)
	}
	if n := len(fileNames(t, dir)); n != 4 {
		t.Errorf("%d files, want 4", n)
	}
}
