package reqlog

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadAndTail(t *testing.T) {
	dir := logDir(t)
	c := &clock{t: at(0)}
	l := openLog(t, dir, Options{Now: c.now})
	for i := range 6 {
		d := time.Duration(i) * 10 * time.Hour
		c.add(10 * time.Hour)
		mustAppend(t, l, mainTurn(d, fmt.Sprint("s", i), []string{"glm", "lab/gpu1"}[i%2], 0, 0), sideLine(d, "glm", 0))
	}
	cases := map[string]struct {
		filter Filter
		want   []string
	}{
		"all":         {Filter{}, []string{"s0", "s1", "s1", "s1", "s2", "s1", "s3", "s1", "s4", "s1", "s5", "s1"}},
		"main":        {Filter{Main: true}, []string{"s0", "s1", "s2", "s3", "s4", "s5"}},
		"since":       {Filter{Main: true, Since: at(30 * time.Hour)}, []string{"s3", "s4", "s5"}},
		"until":       {Filter{Main: true, Until: at(30 * time.Hour)}, []string{"s0", "s1", "s2"}},
		"session":     {Filter{Session: "s2"}, []string{"s2"}},
		"pool":        {Filter{Server: "lab"}, []string{"s1", "s3", "s5"}},
		"member":      {Filter{Server: "lab/gpu1", Since: at(0)}, []string{"s1", "s3", "s5"}},
		"other agent": {Filter{Agent: "codex"}, nil},
		"kind":        {Filter{Kind: KindMove}, nil},
	}
	for name, c := range cases {
		var got []string
		err := Read(t.Context(), dir, c.filter, func(l Line) bool { got = append(got, l.Session); return true })
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: Read %v, %v, want %v", name, got, err, c.want)
		}
		for n := range len(c.want) + 2 {
			tail, err := l.Tail(t.Context(), n, c.filter)
			want := c.want[max(len(c.want)-n, 0):]
			var got []string
			for _, l := range tail {
				got = append(got, l.Session)
			}
			if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("%s: Tail(%d) %v, %v, want %v", name, n, got, err, want)
			}
		}
	}
	n := 0
	if err := Read(t.Context(), dir, Filter{}, func(Line) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("stopped Read saw %d lines, %v", n, err)
	}
	if err := Read(t.Context(), filepath.Join(dir, "none"), Filter{}, func(Line) bool { return true }); err != nil {
		t.Errorf("Read without a log: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Read(ctx, dir, Filter{}, func(Line) bool { return true }); err == nil {
		t.Error("Read goes on when cancelled")
	}
}

// Follow of the package is for commands that run beside a proxy, or none.
func TestFollowWithoutALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := logDir(t)
		l := openLog(t, dir, Options{})
		mustAppend(t, l, mainTurn(0, "before", "glm", 0, 0))
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		done := make(chan error)
		go func() {
			done <- Follow(ctx, dir, Filter{Server: "glm"}, func(l Line) { got = append(got, l.Session) })
		}()
		synctest.Wait()
		mustAppend(t, l, mainTurn(1, "a", "glm", 0, 0), mainTurn(2, "b", "lab", 0, 0), mainTurn(3, "c", "glm", 0, 0))
		time.Sleep(2 * pollEvery)
		cancel()
		if err := <-done; err != nil || !reflect.DeepEqual(got, []string{"a", "c"}) {
			t.Errorf("got %v, %v", got, err)
		}
		l.Close()
	})
}
