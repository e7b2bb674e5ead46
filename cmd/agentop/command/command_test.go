package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/fakeproxy"
	"agentop/cmd/agentop/home"
	"agentop/router/control"
)

// testApp is an App whose world is in memory, on a terminal 100 cells wide.
func testApp(t *testing.T, input string) (a *App, out, errs *bytes.Buffer, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ao")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	env := map[string]string{home.EnvName: dir, "TERM": "xterm"}
	return &App{
		In: strings.NewReader(input), Out: out, Err: errs,
		InTerminal: true, OutTerminal: true, Width: 100,
		Getenv: func(name string) string { return env[name] },
		Now:    func() time.Time { return fakeproxy.Epoch.Add(5 * time.Minute) },
		Build:  Build{Version: "v1.0-fake"},
	}, out, errs, dir
}

func startProxy(t *testing.T, dir string) *fakeproxy.Proxy {
	t.Helper()
	p, err := fakeproxy.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func TestTablesOnATerminal(t *testing.T) {
	tests := []struct {
		name, args string
		width      int
		want       string
	}{
		{"sessions", "sessions --all", 120, `
AGENT        SESSION                               SERVER         STATE      TURNS  CONTEXT  CACHED  MODEL                     TITLE
claude-code  4e96a1b2-0000-4000-8000-000000000001  glm            streaming  12     81k      97%     claude-opus-4-5 as glm-5  fix the parser
claude-code  4e96ffff-0000-4000-8000-000000000002  own            idle 6m    3      9000     0%      claude-opus-4-5           evil ␛]52;c;ZXZpbA==␇␉title␊
codex        0199-codex                            lab/gpu1:8000  idle 2h    40     -        -       gpt-5.2                   -
opencode     px:00ff                               own            idle 3d    1      -        -       -                         -
`},
		{"servers in a narrow one", "server", 90, `
SERVER         HEALTH          RUNNING  STREAMS  FIRST TOKEN  KEY     URL
glm            ok              1        1        410ms        stored  https://glm.example…
lab            ok              1        0        -            none    pool of 2
lab/gpu1:8000  ok              -        3/16     -            -       http://gpu1:8000
lab/gpu2:8000  down (refused)  -        0/16     -            -       http://gpu2:8000
`},
		{"status", "status", 100, `
agentop v1.0-fake is running on 127.0.0.1:4780 and [::1]:4780: 3 running conversations, 1 request in flight (process 4242, up 5m)

AGENT        SERVER  RUNNING  VERSION  OWN UPSTREAM
claude-code  glm     2        2.1.0    https://api.anthropic.com
codex        own     1        -        https://api.openai.com
opencode     lab     0        -        none

SERVER         HEALTH          RUNNING  STREAMS  FIRST TOKEN  KEY     URL
glm            ok              1        1        410ms        stored  https://glm.example.com
lab            ok              1        0        -            none    pool of 2
lab/gpu1:8000  ok              -        3/16     -            -       http://gpu1:8000
lab/gpu2:8000  down (refused)  -        0/16     -            -       http://gpu2:8000
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, out, errs, dir := testApp(t, "")
			startProxy(t, dir)
			a.Width = tt.width
			if code := a.execute(t.Context(), strings.Fields(tt.args)); code != ExitOK {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			if got := "\n" + out.String(); got != tt.want {
				t.Errorf("got%s\nwant%s", got, tt.want)
			}
		})
	}
}

func TestTheLastColumnIsCutOnATerminalAlone(t *testing.T) {
	long := strings.Repeat("日本 ", 40)
	for _, terminal := range []bool{true, false} {
		a, out, _, _ := testApp(t, "")
		a.OutTerminal, a.Width = terminal, 40
		list := &table{header: []string{"A", "B"}}
		list.add("x", long)
		if err := list.print(a); err != nil {
			t.Fatal(err)
		}
		if whole := strings.Contains(out.String(), long); whole == terminal {
			t.Errorf("terminal %t: whole %t in %q", terminal, whole, out)
		}
		if terminal && !strings.HasSuffix(out.String(), "…\n") {
			t.Errorf("cut without a sign: %q", out)
		}
	}
}

func TestEmptyListsSayWhatToDo(t *testing.T) {
	a, out, _, _ := testApp(t, "")
	if code := a.execute(t.Context(), []string{"server"}); code != ExitOK || !strings.Contains(out.String(), "agentop server add NAME URL") {
		t.Errorf("got %d, %q", code, out)
	}
	a, out, _, dir := testApp(t, "")
	startProxy(t, dir).Sessions = []control.Session{{Agent: "codex", ID: "1"}}
	if code := a.execute(t.Context(), []string{"sessions"}); code != ExitOK || out.String() !=
		"no running conversations\n1 conversation not running: --all shows them\n" {
		t.Errorf("got %d, %q", code, out)
	}
}

// caught builds a command, runs it on args and gives the options that its run
// would have got.
func caught[O any](a *App, build func(*App, func(*O, context.Context) error) *cobra.Command, args string) (any, error) {
	var got any
	c := build(a, func(o *O, _ context.Context) error { got = o; return nil })
	c.SetArgs(strings.Fields(args))
	err := c.Execute()
	return got, err
}

func TestFlagsAndArgumentsBecomeOptions(t *testing.T) {
	a, _, _, _ := testApp(t, "")
	tests := []struct {
		args string
		do   func(args string) (any, error)
		want any
	}{
		{"--json", func(s string) (any, error) { return caught(a, newStatus, s) }, &statusOptions{App: a, JSON: true}},
		{"glm http://h --key-env X --yes", func(s string) (any, error) { return caught(a, newServerAdd, s) },
			&serverAddOptions{App: a, Name: "glm", URL: "http://h", KeyEnv: "X", Yes: true}},
		{"glm http://h --key-stdin --json", func(s string) (any, error) { return caught(a, newServerAdd, s) },
			&serverAddOptions{App: a, Name: "glm", URL: "http://h", KeyStdin: true, JSON: true}},
		{"glm --agent codex", func(s string) (any, error) { return caught(a, newServerUse, s) },
			&serverUseOptions{App: a, Server: "glm", Agent: "codex"}},
		{"--agent codex", func(s string) (any, error) { return caught(a, newServerReset, s) }, &serverResetOptions{App: a, Agent: "codex"}},
		{"glm --yes", func(s string) (any, error) { return caught(a, newServerRemove, s) }, &serverRemoveOptions{App: a, Name: "glm", Yes: true}},
		{"glm --agent a,b", func(s string) (any, error) { return caught(a, newServerTest, s) },
			&serverTestOptions{App: a, Server: "glm", Agents: []string{"a", "b"}}},
		{"4e glm --agent codex --yes", func(s string) (any, error) { return caught(a, newSessionsMove, s) },
			&sessionsMoveOptions{App: a, ID: "4e", Server: "glm", Agent: "codex", Yes: true}},
		{"4e --yes", func(s string) (any, error) { return caught(a, newSessionsForget, s) }, &sessionsForgetOptions{App: a, ID: "4e", Yes: true}},
		{"4e --json", func(s string) (any, error) { return caught(a, newSessionsShow, s) }, &sessionsShowOptions{App: a, ID: "4e", JSON: true}},
		{"--all --server lab", func(s string) (any, error) { return caught(a, newSessionsList, s) },
			&sessionsListOptions{App: a, All: true, Server: "lab"}},
	}
	for _, tt := range tests {
		got, err := tt.do(tt.args)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, %v\nwant %+v", tt.args, got, err, tt.want)
		}
	}
}

func TestErrorsBecomeCodesAndWords(t *testing.T) {
	tests := []struct {
		name string
		err  error
		code int
		want string
	}{
		{"none", nil, 0, ""},
		{"plain", errors.New("disk full"), 1, "agentop: disk full\n"},
		{"with a hint", fmt.Errorf("add: %w", hint(errors.New("no"), "do this")), 1, "agentop: add: no\nagentop: hint: do this\n"},
		{"usage", hint(usagef("what?"), "so"), 2, "agentop: what?\nagentop: hint: so\n"},
		{"declined", errDeclined, 3, "agentop: nothing was changed\n"},
		{"told already", errSilent, 1, ""},
		{"refused by the proxy", fmt.Errorf("x: %w", &control.Error{Message: "no \x1b[2J", Hint: "then\x07"}), 1,
			"agentop: x: no ␛[2J\nagentop: hint: then␇\n"},
		{"not running", control.ErrNotRunning, 1, "agentop: no agentop proxy is running\nagentop: hint: start it with `agentop proxy`\n"},
		{"two lines", errors.New("a.yaml:1:1: x\na.yaml:2:1: y"), 1, "agentop: a.yaml:1:1: x\na.yaml:2:1: y\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, errs, _ := testApp(t, "")
			if code := a.exit(tt.err); code != tt.code || errs.String() != tt.want {
				t.Errorf("got %d %q, want %d %q", code, errs, tt.code, tt.want)
			}
		})
	}
}

func TestStaySentence(t *testing.T) {
	for _, tt := range []struct {
		stay map[string]int
		want string
	}{
		{nil, "no conversation of it is running"},
		{map[string]int{"glm": 0}, "no conversation of it is running"},
		{map[string]int{"lab": 1}, "1 running one stays (on lab)"},
		{map[string]int{"lab": 1, "own": 2}, "3 running ones stay (2 on own, 1 on lab)"},
		{map[string]int{"b": 1, "a": 1, "c": 5}, "7 running ones stay (5 on c, 1 on a, 1 on b)"},
	} {
		if got := staySentence(tt.stay); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.stay, got, tt.want)
		}
	}
}

func TestWithoutACommand(t *testing.T) {
	shown := errors.New("screen")
	for _, tt := range []struct {
		name    string
		in, out bool
		term    string
		screen  bool
	}{
		{"terminal", true, true, "xterm", true},
		{"no input", false, true, "xterm", false},
		{"a pipe", true, false, "xterm", false},
		{"a dumb terminal", true, true, "dumb", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out, _, _ := testApp(t, "")
			a.InTerminal, a.OutTerminal = tt.in, tt.out
			getenv := a.Getenv
			a.Getenv = func(name string) string {
				if name == "TERM" {
					return tt.term
				}
				return getenv(name)
			}
			a.Screen = func(context.Context, home.Home) error { return shown }
			code := a.execute(t.Context(), []string{}) // nil would be this test's own arguments
			if (code == ExitFailed) != tt.screen || strings.Contains(out.String(), "not running") == tt.screen {
				t.Errorf("exit code %d, printed %q", code, out)
			}
		})
	}
}

// A proxy that answers with nonsense is an error, not "not running": nothing
// is edited behind the back of one that may be there.
func TestAProxyThatCannotBeUnderstoodIsLeftAlone(t *testing.T) {
	a, _, errs, dir := testApp(t, "")
	l, err := control.Listen(filepath.Join(dir, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = c.Close()
		}
	}()
	if code := a.execute(t.Context(), []string{"server", "add", "x", "http://h", "--no-key"}); code != ExitFailed {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "config.yaml")); !os.IsNotExist(err) {
		t.Errorf("config.yaml was made: %v", err)
	}
}
