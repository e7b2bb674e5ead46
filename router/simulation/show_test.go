package simulation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"agentop/router/fakeserver"
)

// TestSessionsShowTellsWhy asks the real program, after a real turn of each
// kind, why the conversation is where it is.
func TestSessionsShowTellsWhy(t *testing.T) {
	w := withProgram(t, 5)
	claude := &clients[0]
	choose := func(server string) {
		t.Helper()
		w.choose(claude.agent, server)
		if err := w.apply(w.yaml()); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(c *conversation) *conversation {
		t.Helper()
		if !w.say(c, opened) {
			t.Fatal("no reply")
		}
		return c
	}
	choose("s1")
	onServer := answered(w.open(claude))
	choose("")
	unrouted := answered(w.open(claude))
	choose("s3")
	fork := answered(onServer.branch(1, w.newSession()))
	before := w.open(claude)
	before.turns = []turn{{"hello", reply{sig: fakeserver.Signature{Server: elsewhere, N: 1}, text: "[elsewhere#1] an answer that agentop never passed on."}}}
	answered(before)

	const clock = `\d\d:\d\d`
	want := func(c *conversation, server, pin, why string) {
		t.Helper()
		s := w.show(t, c)
		if s.Server != server || s.Pin != pin || !regexp.MustCompile("^"+why+"$").MatchString(s.Why) {
			t.Errorf("%+v, want server %q, pin %q and why %q", s, server, pin, why)
		}
	}
	want(onServer, "s1", "new", "opened "+clock+" when claude-code was set to s1")
	want(unrouted, "own", "new", "opened "+clock+" when claude-code was not routed")
	want(fork, "s1", "followed", `follows `+onServer.session[:8]+`\.\.\. \(fork\)`)
	want(before, "own", "new", "began before agentop saw it")

	w.agentop(t, "sessions", "move", fork.session, "s4", "--yes")
	want(fork, "s4", "moved", `moved here by you on \d+ \w+ `+clock)

	w.proxy.die()
	if err := os.Remove(w.pinFile()); err != nil {
		t.Fatal(err)
	}
	answered(onServer)
	want(onServer, "s1", "restored", "restored from the request log")
	want(fork, "s4", "moved", `moved here by you on \d+ \w+ `+clock)
}

// shown is what the test reads of a conversation.
type shown struct{ Server, Pin, Why string }

func (w *world) show(t *testing.T, c *conversation) (s shown) {
	t.Helper()
	out := w.agentop(t, "sessions", "show", c.session, "--json")
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return s
}

// agentop runs one command of the program.
func (w *world) agentop(t *testing.T, args ...string) []byte {
	t.Helper()
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(folder, "agentop"), args...)
	cmd.Env = append(os.Environ(), "AGENTOP_HOME="+w.dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("agentop %v: %v\n%s", args, err, out)
	}
	return out
}
