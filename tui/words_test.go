package tui

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// In a pane that takes letters u is one of them, and what the last switch did
// must not be read as what the next one will do.
func TestPaneThatAsksDoesNotShowTheLastAct(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("s", "d", "k", "enter")
		r.shows("u undoes it", "-> desk")
		for _, key := range []string{"s", "m"} {
			r.keys(key)
			r.hides("u undoes it", "-> desk; 3")
			r.keys("esc")
			r.shows("u undoes it")
		}
		r.keys("/")
		r.hides("u undoes it")
		r.keys("esc", "u")
		r.shows("taken back: new claude-code conversations -> lab")
	})
}

func TestFailedConversationIsFoundByWhatItsRowSays(t *testing.T) {
	for _, typed := range []string{"529", "failed", "overloaded"} {
		rigged(t, newFake(), func(r *rig) {
			failed := r.src.sessions[1]
			failed.Status = 529
			r.src.send(Event{Sessions: []view.Session{failed}})
			r.wait(time.Second)
			r.keys("/", typed)
			r.shows("1 of 4 match", "beta", "✕ 529", "Its last turn failed: 529 from own: overloaded")
			r.keys("enter", "enter")
			r.shows("last error 529 from own: overloaded")
		})
	}
}

func TestLogIsReadAndFilteredByTitle(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("l")
		for _, session := range []string{"a1", "a2", "unheard of"} {
			r.src.send(Event{Request: &view.Request{Time: noon, ID: session, Agent: "claude-code", Session: session, Turn: "opening",
				Server: "lab", Status: 529, Method: "POST", Path: "/v1/" + strings.ReplaceAll(session, " ", "-")}})
		}
		r.wait(time.Second)
		r.shows("! overloaded alpha", "! overloaded beta", "! overloaded", "▸ 00:00:00 claude-code")
		r.keys("/", "beta", "enter")
		r.shows("1 of 4 match")
		r.keys("enter")
		r.shows("beta", "why here")
		r.keys("esc", "esc", "esc")
		r.shows("3 running, v: all 4") // as the list was before
	})
}

func TestShownCommandIsCopied(t *testing.T) {
	rigged(t, newFake(), func(r *rig) {
		r.keys("o")
		r.shows("claude --resume a1", "in the directory that the conversation began in", "y copy")
		r.keys("y")
		r.shows("sent to the terminal's clipboard: claude --resume a1")
		if want := base64.StdEncoding.EncodeToString([]byte("claude --resume a1")); !strings.Contains(r.out.String(), want) {
			t.Errorf("written %q, want %s in it", r.out.String(), want)
		}
		r.keys("esc", "esc", "tab", "n", "y")
		r.shows("sent to the terminal's clipboard: agentop server add NAME URL")
	})
}

func TestMoveSaysWhichConversationItWas(t *testing.T) {
	for title, want := range map[string]string{"": "it", "Fix it": `"Fix it"`, strings.Repeat("日", 41): `"` + strings.Repeat("日", 40) + `..."`} {
		if got := named(&view.Session{Title: title}); got != want {
			t.Errorf("%q is called %s, want %s", title, got, want)
		}
	}
}

// A terminal gives what was typed in one go as one message.
func TestKeysThatComeTogetherAreKeysOfTheirOwn(t *testing.T) {
	together := func(r *rig, alt bool, text string) {
		r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Alt: alt})
		r.settle()
	}
	rigged(t, newFake(), func(r *rig) {
		together(r, false, "jj")
		r.shows("▸ codex gamma")
		together(r, false, "kk/gam")
		r.shows("filter: gam", "1 of 4 match")
		together(r, true, "l") // esc, then l
		r.shows("Request log")
		together(r, true, "v")
		r.shows("4 known")
		together(r, false, "sdk")
		r.shows("filter: dk", "-> desk")
		r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("qqq"), Paste: true})
		together(r, true, "q")
		if r.told(); !r.quit {
			t.Error("esc and q in one did not quit")
		}
	})
}
