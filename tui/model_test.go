package tui

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"agentop/tui/view"
)

func TestFirstScreen(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.shows("127.0.0.1:4780", "claude-code → lab", "codex → own", "alpha", "beta", "gamma", "3 running, v: all 4")
		r.hides("old one")
		r.keys("v")
		r.shows("old one", "4 known")
		r.told()
	})
}

func TestSwitchWithFilterAndUndo(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("s")
		r.shows("[claude-code]", "up, 1 warning", "new claude-code conversations -> glm; 2 running ones stay (1 on lab, 1 on own)")
		r.keys("d", "k") // dk: desk alone has both letters
		r.shows("filter: dk", "-> desk")
		r.hides("▸ glm", "  lab ")
		r.told()
		r.keys("enter")
		r.told(`use claude-code "desk"`)
		r.shows("new claude-code conversations -> desk; 3 running ones stay (2 on own, 1 on lab)", "u undoes it", "claude-code → desk")
		r.keys("u")
		r.told(`use claude-code "lab"`)
		r.shows("new claude-code conversations -> lab; 3 running ones stay", "claude-code → lab")
		r.hides("u undoes it")
		r.keys("u")
		r.told()
		r.shows("there is no switch to undo")
	})
}

func TestSwitchToOwnAndBack(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("s", "o", "w", "n", "enter")
		r.told(`use claude-code ""`)
		r.shows("claude-code → own")
		r.keys("u")
		r.told(`use claude-code "lab"`)
	})
}

func TestUndoLeavesASwitchThatSomebodyElseMade(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("s", "enter")
		r.told(`use claude-code "glm"`)
		r.src.mu.Lock()
		r.src.status.Agents[0].Server = "desk"
		r.src.mu.Unlock()
		r.wait(6 * time.Second)
		r.keys("u")
		r.told()
		r.shows("nothing was undone")
	})
}

func TestSwitchThatFailsKeepsThePane(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.src.failing["use"] = errors.New("config.yaml is not valid")
		r.keys("s", "enter")
		r.shows("! config.yaml is not valid", "[claude-code]", "claude-code → lab")
		r.src.failing["use"] = nil
		r.keys("enter")
		r.shows("claude-code → glm")
	})
}

func TestSwitchToWhatItIsChangesNothing(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("s", "l", "a", "b", "enter")
		r.told()
		r.shows("go to lab already")
	})
}

// An answer to a question that is no longer on the screen is dropped.
func TestLatePreflightIsDropped(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		late := make(chan struct{})
		r.src.hold["glm claude-code"] = late
		r.keys("s")
		r.shows("asking ...")
		r.keys("tab")
		r.shows("[codex]", "asked for codex")
		close(late)
		r.settle()
		r.shows("asked for codex")
		r.hides("asked for claude-code", "asking ...")
	})
}

func TestPreflightThatNeverAnswersEnds(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.src.hold["glm claude-code"] = make(chan struct{})
		r.keys("s")
		r.wait(askFor + time.Second)
		r.shows("could not be asked")
		r.keys("enter") // and blocks nothing
		r.told(`use claude-code "glm"`)
	})
}

func TestMoveNeedsItsPriceAndAYes(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("m")
		r.shows("Move one conversation", "81k tokens are read again", "glm will refuse")
		r.keys("enter")
		r.shows("y moves it")
		r.keys("enter") // any other key keeps it
		r.told()
		r.hides("y moves it")
		r.keys("down", "enter", "y")
		r.told("move claude-code a1 desk")
		r.shows("it is on desk from its next turn on")
	})
}

func TestMoveWithoutAPriceIsNotOffered(t *testing.T) {
	src := newFake()
	src.price = func(view.Key, string) (view.MovePrice, error) { return view.MovePrice{}, errors.New("no price") }
	rigged(t, src, func(r *rig) {
		r.keys("m", "enter", "y")
		r.told()
		r.shows("! no price")
		r.keys("esc")
		r.shows("Conversations")
	})
}

func TestRemoveAsks(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("tab", "down", "x")
		r.shows("Remove lab", "1 running conversation", "new conversations of claude-code go there")
		r.keys("n")
		r.told()
		r.keys("x", "y")
		r.told("remove lab")
		r.shows("lab is removed; its key is gone")
	})
}

func TestServerTestAndAdd(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("tab", "t")
		r.told("test glm")
		r.shows("one request of 1 token")
		r.keys("esc", "n")
		r.shows("agentop server add NAME URL")
		r.keys("esc")
		r.shows("Conversations")
	})
}

func TestPointingAnAgentShowsTheChangeFirst(t *testing.T) {
	src := newFake()
	riggedWith(t, src, pointable{src}, func(r *rig) {
		r.keys("a")
		r.shows("pointed here (enabled)")
		r.keys("down", "e")
		r.shows("+ plan for codex true", "y writes this")
		r.keys("n")
		r.told()
		r.keys("e", "y")
		r.told("point codex true")
		r.shows("it is done; restart it", "Agents")
		src.failing["plan"] = errors.New("nothing to undo")
		r.keys("d")
		r.shows("! nothing to undo")
	})
}

func TestPointingWithoutThePowerShowsTheCommand(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("a", "d")
		r.shows("agentop agent disable claude-code")
	})
}

func TestCopyAndResume(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("y")
		if got, want := r.out.String(), "\x1b]52;c;YTE=\x07"; got != want {
			t.Errorf("the terminal got %q, want %q", got, want)
		}
		r.shows("sent to the terminal's clipboard: a1")
		r.keys("o")
		r.shows("claude --resume a1")
		r.keys("esc", "end", "o")
		r.shows("cd /src/web && codex resume c1")
	})
}

func TestCopyRefusesControl(t *testing.T) {
	src := newFake()
	src.sessions[0].ID = "\x01px:00"
	rigged(t, src, func(r *rig) {
		r.keys("y", "o")
		if r.out.Len() > 0 {
			t.Errorf("the terminal got %q", &r.out)
		}
		r.shows("no command that resumes")
	})
}

func TestFilterAndDetails(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("/", "g", "a", "m")
		r.shows("filter: gam", "gamma", "1 of 4 match")
		r.hides("alpha")
		r.keys("backspace", "backspace", "backspace", "w", "e", "b", "enter", "enter")
		r.shows("why here", "/src/web", "codex resume c1")
		r.keys("esc", "esc")
		r.shows("alpha", "beta", "gamma")
		r.keys("/", "q") // letters are text here
		if r.quit {
			t.Error("q in a filter ended the screen")
		}
		r.keys("esc", "q")
		if !r.quit {
			t.Error("q did not end the screen")
		}
	})
}

func TestTheCursorStaysOnItsConversation(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("down")
		r.shows("▸ claude-code beta")
		r.src.send(Event{Sessions: []view.Session{{Agent: "codex", ID: "new", Title: "newest", Server: "own", Opened: noon, LastTurn: noon, Running: true, Streams: 1}}})
		r.wait(time.Second)
		r.shows("newest", "▸ claude-code beta")
		r.src.send(Event{Gone: &view.Key{Agent: "claude-code", ID: "a2"}})
		r.wait(time.Second)
		r.hides("beta")
		r.shows("▸") // and the cursor is on another
	})
}

func TestProxyGoesAwayAndComesBack(t *testing.T) {
	src := newFake()
	riggedWith(t, src, startable{src}, func(r *rig) {
		src.end(ErrNotRunning)
		r.wait(time.Second)
		r.shows("proxy does not run", "press p to start it", "as of", "alpha")
		r.keys("s")
		r.shows("nothing can be switched")
		r.keys("esc", "p")
		r.told("start")
		r.wait(2 * time.Second)
		r.shows("proxy runs", "alpha")
		r.hides("press p")
		// A restart hands over at once: nobody sees it.
		src.end(nil)
		r.wait(300 * time.Millisecond)
		r.shows("proxy runs")
		src.end(errors.New("permission denied"))
		r.wait(time.Second)
		r.shows("cannot be reached", "permission denied")
	})
}

func TestProxyThatWasNeverStarted(t *testing.T) {
	src := newFake()
	src.down = ErrNotRunning
	rigged(t, src, func(r *rig) {
		r.shows("proxy does not run", "start it with `agentop proxy`")
		r.keys("p")
		src.mu.Lock()
		src.down = nil
		src.mu.Unlock()
		r.wait(2 * time.Second)
		r.shows("proxy runs", "alpha")
	})
}

func TestProxyThatCannotServe(t *testing.T) {
	src := newFake()
	src.down = &TroubledError{PID: 77, Reason: "config.yaml:4:9: unknown field", Cure: "correct it"}
	riggedWith(t, src, startable{src}, func(r *rig) {
		r.shows("proxy cannot serve", "config.yaml:4:9: unknown field; correct it", "process 77")
		r.hides("press p")
		r.keys("p")
		r.told()
		src.mu.Lock()
		src.down = nil
		src.mu.Unlock()
		r.wait(2 * time.Second)
		r.shows("proxy runs", "alpha")
	})
}

func TestStartThatFailsIsTold(t *testing.T) {
	src := newFake()
	src.down = ErrNotRunning
	src.failing["start"] = errors.New("address in use")
	riggedWith(t, src, startable{src}, func(r *rig) {
		r.keys("p")
		r.shows("the proxy did not start: address in use", "proxy does not run")
	})
}

func TestCountsAgreeWithRows(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		s := r.src.sessions[2]
		s.Streams, s.Server = 1, "desk"
		r.src.send(Event{Sessions: []view.Session{s}})
		r.wait(200 * time.Millisecond)
		for _, v := range r.m.screen.Status.Servers {
			want := view.Load{Running: map[string]int{"lab": 1, "desk": 1}[v.Name], Streams: map[string]int{"desk": 1}[v.Name]}
			if got := (view.Load{Running: v.Running, Streams: v.Streams}); got != want {
				t.Errorf("%s: got %+v, want %+v", v.Name, got, want)
			}
		}
		if got, want := r.m.screen.Loads[view.Own], (view.Load{Running: 1}); got != want {
			t.Errorf("own: got %+v, want %+v", got, want)
		}
		// A day later nothing has been told, and nothing runs but the stream.
		time.Sleep(25 * time.Hour)
		r.settle()
		if got := r.m.screen.Status.Running; got != 1 {
			t.Errorf("%d run after a day, want the one that streams", got)
		}
	})
}

func TestLogFollowsAndFilters(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("l")
		r.shows("Request log", "opening", "follows the newest")
		for i := range 100 {
			r.src.send(Event{Request: &view.Request{Time: noon.Add(time.Duration(i) * time.Second), ID: fmt.Sprint("r", i), Agent: "claude-code",
				Session: "not known", Turn: "continuation", Server: "lab", Status: 200, Path: fmt.Sprint("/m/", i)}})
		}
		r.wait(time.Second)
		r.shows("/m/99")
		r.keys("up")
		r.shows("G follows again")
		r.src.send(Event{Request: &view.Request{Time: noon.Add(time.Hour), ID: "z", Turn: "side", Path: "/newest"}})
		r.wait(time.Second)
		r.hides("/newest")
		r.keys("G")
		r.shows("/newest")
		r.keys("/", "o", "p", "e", "n", "i", "n", "g", "enter")
		r.shows("1 of 102 match")
		r.keys("enter")
		r.shows("gamma", "why here")
	})
}

func TestTheLogIsBounded(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		list := make([]view.Request, 0, 3*maxLog)
		for i := range 3 * maxLog {
			list = append(list, view.Request{ID: fmt.Sprint(i)})
		}
		r.m.addRequests(list)
		if got := len(r.m.screen.Log.All); got != maxLog || r.m.screen.Log.All[maxLog-1].ID != list[len(list)-1].ID {
			t.Errorf("%d lines are kept, want the last %d", got, maxLog)
		}
	})
}

// However busy the proxy is, the screen changes at most ten times a second,
// and shows the last state.
func TestFramesAreBounded(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.seen = map[string]int{}
		s := r.src.sessions[0]
		for i := range 3000 { // 1,000 a second
			s.Turns = i
			r.src.send(Event{Sessions: []view.Session{s}, Request: &view.Request{ID: fmt.Sprint(i), Time: time.Now()}})
			time.Sleep(time.Millisecond)
			r.settle()
		}
		r.wait(time.Second)
		if n := r.seen["tui.batchMsg"]; n < 20 || n > 32 {
			t.Errorf("%d batches in 3 s, want 10 a second", n)
		}
		if r.m.known.all[s.Key()].Turns != 2999 {
			t.Errorf("the last state is not shown")
		}
	})
}

// An idle screen asks the proxy seldom, and no event is waited for.
func TestIdleAsksSeldom(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		_ = r.src.told()
		r.wait(time.Minute)
		if n := len(r.src.told()); n > 13 {
			t.Errorf("asked %d times in a minute of nothing", n)
		}
	})
}
