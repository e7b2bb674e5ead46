package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentop/cmd/agentop/command/fakeproxy"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata from what the commands print")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"agentop": main})
}

// TestScripts runs testdata/*.txtar, one topic a file: each is documentation
// of a command as much as a test. Besides testscript's own commands:
//
//	fakeproxy [broken] [slow]  a proxy with fixed facts answers in the home from here on
//	stopproxy                  it ends
//	calls FILE                 what it was told to change goes to FILE
//	secret VALUE               the last key that it got is VALUE
//	remember, unchanged        no byte, mode, time or name in the home differs between the two
//	without NAME FILE          the line with the field NAME is taken out of FILE, since it differs by build
//	mode 0600 NAME             a file in the home has this mode
//	crlf                       makes crlf.txt, a key with a Windows line end
//	kind NAME [tls]            a fake of that kind of server answers at $URL (host and port: $HOST) from here on; its authority is in $CA
//	proxy                      a real proxy answers in the home from here on
//	exitcode N                 runs agentop with the arguments that follow, which must exit with N
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			// Short, since a Unix socket's path is limited.
			home, err := os.MkdirTemp("/tmp", "ao")
			if err != nil {
				return err
			}
			e.Defer(func() { _ = os.RemoveAll(home) })
			home = filepath.Join(home, "h")
			e.Setenv("AGENTOP_HOME", home)
			e.Setenv("TZ", "UTC")
			e.Setenv("TERM", "xterm-256color")
			e.Values[proxyKey{}] = &scriptState{home: home}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fakeproxy": cmdFakeProxy, "stopproxy": cmdStopProxy, "calls": cmdCalls, "secret": cmdSecret,
			"remember": cmdRemember, "unchanged": cmdUnchanged, "exitcode": cmdExitCode,
			"without": cmdWithout, "mode": cmdMode, "crlf": cmdCRLF, "kind": cmdKind, "proxy": cmdProxy,
		},
	})
}

type proxyKey struct{}

// scriptState is what the commands of one script share.
type scriptState struct {
	home  string
	proxy *fakeproxy.Proxy
	files string
}

func state(ts *testscript.TestScript) *scriptState { return ts.Value(proxyKey{}).(*scriptState) }

func cmdFakeProxy(ts *testscript.TestScript, _ bool, args []string) {
	s := state(ts)
	f, err := fakeproxy.Start(s.home, func(f *fakeproxy.Proxy) {
		f.Broken, f.Slow = slices.Contains(args, "broken"), slices.Contains(args, "slow")
	})
	ts.Check(err)
	s.proxy = f
	ts.Defer(f.Stop)
}

func cmdStopProxy(ts *testscript.TestScript, _ bool, _ []string) { state(ts).proxy.Stop() }

func cmdCalls(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.Join(append(state(ts).proxy.Calls(), ""), "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

func cmdSecret(ts *testscript.TestScript, _ bool, args []string) {
	if got := state(ts).proxy.Secret(); got != args[0] {
		ts.Fatalf("the proxy got the key %q, want %q", got, args[0])
	}
}

// listing is every name under the home with mode, time and content.
func listing(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d", path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	})
	if os.IsNotExist(err) {
		return "no home", nil
	}
	return b.String(), err
}

func cmdRemember(ts *testscript.TestScript, _ bool, _ []string) {
	var err error
	state(ts).files, err = listing(state(ts).home)
	ts.Check(err)
}

func cmdUnchanged(ts *testscript.TestScript, _ bool, _ []string) {
	now, err := listing(state(ts).home)
	ts.Check(err)
	if was := state(ts).files; now != was {
		ts.Fatalf("the home directory has changed:\nwas\n%s\nis\n%s", was, now)
	}
}

func cmdExitCode(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("agentop", args[1:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func cmdWithout(ts *testscript.TestScript, _ bool, args []string) {
	var kept []string
	for line := range strings.SplitSeq(ts.ReadFile(args[1]), "\n") {
		if !strings.Contains(line, `"`+args[0]+`":`) {
			kept = append(kept, line)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(kept, "\n")), 0o600))
}

func cmdMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(filepath.Join(state(ts).home, args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

func cmdCRLF(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(os.WriteFile(ts.MkAbs("crlf.txt"), []byte("sk-fake-crlf\r\n"), 0o600))
}
