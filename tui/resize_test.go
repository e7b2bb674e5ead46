package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

func TestKF_T1_ResizesNeverPanic(t *testing.T) {
	src := newFake()
	for i := range 200 {
		src.sessions = append(src.sessions, view.Session{Agent: "codex", ID: fmt.Sprint("x", i), LastTurn: noon, Opened: noon, Running: true, Title: strings.Repeat("t", i)})
	}
	rigged(t, src, func(r *rig) {
		before := r.text()
		for _, body := range []string{"", "enter", "l", "a", "?", "w", "s", "m", "tab"} {
			if body != "" {
				r.keys(body)
			}
			r.keys("end", "pgdown", "down")
			for _, size := range [][2]int{{1, 1}, {2, 80}, {80, 2}, {0, 0}, {100, 30}, {20, 6}, {19, 5}, {250, 100}, {100, 30}} {
				r.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				_ = r.m.View()
			}
			r.keys("esc", "home")
		}
		r.keys("tab", "esc", "esc", "home")
		r.m.notices = nil
		r.send(tea.WindowSizeMsg{Width: 100, Height: 30})
		if after := r.text(); after != before {
			t.Errorf("the old view is not back:\n%s\nwant\n%s", after, before)
		}
	})
}

func TestKF_T8_ASqueezeLeavesNothing(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		want := r.m.View()
		for range 10 {
			r.send(tea.WindowSizeMsg{Width: 10, Height: 30})
			_ = r.m.View()
			r.send(tea.WindowSizeMsg{Width: 100, Height: 30})
		}
		if got := r.m.View(); got != want {
			t.Errorf("after the squeeze:\n%s\nwant\n%s", got, want)
		}
	})
}

func TestSuspendAndQuitKeys(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("ctrl+z")
		if r.seen["tea.SuspendMsg"] != 1 {
			t.Errorf("no suspend: %v", r.seen)
		}
		r.keys("s", "ctrl+c")
		if !r.quit {
			t.Error("ctrl-c did not end the screen")
		}
	})
}

func TestRowsInUseKeepTheirPlaces(t *testing.T) {
	k := known{}
	at := func(id string, opened, last time.Duration) view.Session {
		return view.Session{Agent: "a", ID: id, Opened: noon.Add(-opened), LastTurn: noon.Add(-last), Running: true}
	}
	b := batch{snapshot: true, sessions: map[view.Key]view.Session{}}
	for _, s := range []view.Session{at("young", time.Minute, time.Minute), at("old", time.Hour, time.Second), at("idle", 2*time.Minute, 10*time.Minute),
		at("idler", time.Second, time.Hour)} {
		b.sessions[s.Key()] = s
	}
	k.apply(&b)
	ids := func() (list []string) {
		for _, s := range k.rows(false, "", noon) {
			list = append(list, s.ID)
		}
		return list
	}
	want := []string{"young", "old", "idle", "idler"}
	if got := ids(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s := at("young", time.Minute, 0) // another turn changes no place
	k.apply(&batch{sessions: map[view.Key]view.Session{s.Key(): s}})
	if got := ids(); !slices.Equal(got, want) {
		t.Errorf("after a turn: got %q, want %q", got, want)
	}
}

func TestFuzzy(t *testing.T) {
	names := []string{"glm", "lab", "gpu-large", "own", "Ägypten"}
	for _, c := range []struct {
		pattern string
		want    []string
	}{
		{"", names}, {"g", []string{"glm", "gpu-large", "Ägypten"}}, {"gl", []string{"glm", "gpu-large"}}, {"LA", []string{"lab", "gpu-large"}},
		{"äp", []string{"Ägypten"}}, {"zz", nil}, {"nw", nil},
	} {
		var got []string
		for _, i := range fuzzy(c.pattern, names) {
			got = append(got, names[i])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.pattern, got, c.want)
		}
	}
}

// A key among 500 conversations costs far less than a frame; run with -bench.
func BenchmarkKeyAmong500(b *testing.B) {
	m := newModel(b.Context(), Options{Source: newFake()})
	batch := batch{snapshot: true, status: &view.Status{}, sessions: map[view.Key]view.Session{}}
	for i := range 500 {
		s := view.Session{Agent: "codex", ID: fmt.Sprint(i), Title: "a title of some length", Server: "lab", Running: true, LastTurn: time.Now(), Opened: time.Now()}
		batch.sessions[s.Key()] = s
	}
	m.takeBatch(&batch)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	for b.Loop() {
		m.Update(tea.KeyMsg{Type: tea.KeyDown})
		_ = m.View()
	}
}
