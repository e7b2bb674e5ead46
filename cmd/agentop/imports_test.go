package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule is what one package of agentop may import of the others, and why no
// more. Names are paths below the module; the list is whole.
type rule struct {
	pkg    string
	may    []string
	reason string
}

// rules is the package map: a package imports only what stands in its line.
var rules = []rule{
	{"agents/outline", nil, "it scans bytes and knows nothing of agents, servers or the rest of agentop"},
	{"agents", []string{"agents/outline"}, "how agents talk is independent of where their turns go"},
	{"agents/setup", []string{"agents"}, "an agent's settings file is edited without placement, HTTP or a running proxy"},
	{"filestore", nil, "the store is useful by itself: it knows no agents, no placement and not what a value means"},
	{"router/prefix", []string{"agents", "agents/outline"}, "keys are computed without knowing who asks and why"},
	{"router/stream", []string{"agents/outline", "router/prefix"}, "events are read from bytes; which server sent them does not matter"},
	{"router/placement", []string{"agents", "agents/outline"}, "the rules are pure: what they may know is passed in"},
	{"router/config", []string{"agents", "agents/outline"}, "config.yaml is checked and edited without HTTP or placement"},
	{"router/credential", []string{"agents/outline", "router/config"}, "keys are kept and set without knowing where a turn goes"},
	{"router/reqlog", nil, "the second witness must not depend on what it testifies about"},
	{"router/metrics", []string{"agents"}, "numbers are counted by agent and turn, without knowing why a turn went where it did"},
	{"router/control", nil, "the API's types are what screens and commands share, and must not pull the proxy in"},
	{"router/preflight", []string{"agents", "agents/outline", "router/config", "router/credential"},
		"what a server can do is asked without knowing of conversations"},
	{"router/preflight/kinds", []string{"router/fakeserver"}, "only tests import it"},
	{"router/peer", nil, "who connects is asked of the system, and judged elsewhere"},
	{"router/headerpool", nil, "memory alone"},
	{"router/front", []string{"router/headerpool"}, "it carries requests to a handler, whatever that does with them"},
	{"router", []string{"agents", "agents/outline", "router/config", "router/control", "router/credential", "router/front", "router/headerpool", "router/peer", "router/placement",
		"router/prefix", "router/reqlog", "router/stream"}, "one turn: it writes through its own interfaces, and knows no store, screen or command line"},
	{"router/fakeserver", []string{"agents/outline"}, "a server for tests and the demo knows nothing of the proxy in front of it"},
	{"tui/quiet", nil, "it keeps libraries from asking the terminal before main, so it must come before all of them"},
	{"tui/view", []string{"cmd/agentop/command/plain"}, "text from data, width and now: no messages, clocks or sockets"},
	{"tui", []string{"cmd/agentop/command/plain", "tui/quiet", "tui/view"}, "it reads through its own Source, so that no HTTP, file or rule gets into the screens"},
	{"cmd/agentop/command/plain", nil, "text from outside is made safe in one place that everything may use"},
	{"cmd/agentop/home", []string{"router/control"}, "paths and modes, and no file's content"},
	{"cmd/agentop/memory", nil, "the process it runs in, and nothing of what that does"},
	{"cmd/agentop/worker", []string{"agents", "agents/outline", "cmd/agentop/home", "cmd/agentop/memory", "filestore", "router", "router/config", "router/control",
		"router/credential", "router/front", "router/metrics", "router/placement", "router/preflight", "router/reqlog"}, "it joins the proxy's parts, and no screen or command line"},
	{"cmd/agentop/importer", []string{"router/config", "router/credential"}, "other tools' files are read without a running proxy or a command line"},
	{"cmd/agentop/supervise/ahead", nil, "what it imports is initialised before the first worker is started"},
	{"cmd/agentop/supervise", []string{"cmd/agentop/home", "cmd/agentop/memory", "cmd/agentop/supervise/ahead", "router/control"}, "sockets and workers, and no rule or format"},
	{"cmd/agentop/service", []string{"cmd/agentop/home"}, "the login service, and no rule or format"},
	{"cmd/agentop/demo", []string{"agents", "agents/outline", "cmd/agentop/command/plain", "cmd/agentop/home", "cmd/agentop/worker",
		"router/control", "router/fakeserver"}, "a demonstration uses the product as it is"},
	{"cmd/agentop/doctor", []string{"agents/setup", "cmd/agentop/home", "router/config", "router/control"},
		"findings are data: nothing of placement, of the store or of the screens"},
	{"cmd/agentop/command/fakeproxy", []string{"router/control"}, "only tests import it"},
	{"cmd/testkit", nil, "only tests import it, those of every package"},
	{"cmd/agentop/command", []string{"agents", "agents/setup", "cmd/agentop/command/plain", "cmd/agentop/demo", "cmd/agentop/doctor", "cmd/agentop/home", "cmd/agentop/importer", "cmd/agentop/memory",
		"cmd/agentop/service", "cmd/agentop/supervise", "cmd/agentop/supervise/ahead", "cmd/agentop/worker", "filestore", "router/config", "router/control",
		"router/credential", "router/reqlog", "tui", "tui/view"}, "it wires all parts, and knows no placement, format or layout"},
	{"cmd/agentop", []string{"cmd/agentop/command"}, "main is the exit code"},
	{"cmd/dist", []string{"cmd/agentop/command"}, "a release is made of the built program and its command tree"},
}

// only says who alone may import a library, and why. A package in the list
// that is not there yet is no fault.
var only = []struct {
	library string
	by      []string
	reason  string
}{
	{"github.com/spf13/cobra", []string{"cmd/agentop/command", "cmd/dist"}, "options and run methods stay testable without a command line"},
	{"github.com/charmbracelet/bubbletea", []string{"tui"}, "messages and keys are the screens' matter"},
	{"github.com/charmbracelet/lipgloss", []string{"tui/view", "tui", "tui/quiet"}, "styling is drawn in one place; a command never asks the terminal for its colours"},
	{"github.com/fsnotify/fsnotify", []string{"router/config"}, "reload is the configuration's matter"},
	{"github.com/zeebo/xxh3", []string{"router/prefix"}, "keys and marks are hashed in one way"},
	{"go.yaml.in/yaml/v4", []string{"router/config"}, "config.yaml has one reader"},
	{"github.com/rogpeppe/go-internal/testscript", nil, "it is for tests"},
	{"pgregory.net/rapid", nil, "it is for tests"},
}

// pure packages import nothing that acts: time, randomness and text come in as
// arguments.
var pure = []string{"agents", "agents/outline", "router/placement", "router/prefix", "router/stream", "tui/view", "cmd/agentop/command/plain"}

// acting are the parts of the standard library that read clocks, open files or
// sockets, or write logs. net/http's header type is data, so it is not here.
var acting = []string{"os", "net", "log", "log/slog", "math/rand", "math/rand/v2", "os/exec", "os/signal", "syscall"}

// goPackage is what `go list -json` tells of a package.
type goPackage struct {
	ImportPath  string
	Imports     []string
	TestImports []string
}

func listPackages(t *testing.T) map[string]goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports", "agentop/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]goPackage{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, "agentop/")] = p
	}
	if !slices.Contains(all["cmd/agentop"].Imports, "agentop/cmd/agentop/command") {
		t.Fatalf("go list did not tell of this package: it gave %d packages", len(all))
	}
	return all
}

func TestImportsStandBelow(t *testing.T) {
	all := listPackages(t)
	for name, p := range all {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.pkg == name })
		if i < 0 {
			if len(p.Imports) > 0 { // a folder of tests imports nothing outside of them
				t.Errorf("%s is not in the package map: add its line, with what it may import and why no more", name)
			}
			continue
		}
		for _, imported := range p.Imports {
			own, found := strings.CutPrefix(imported, "agentop/")
			if found && !slices.Contains(rules[i].may, own) {
				t.Errorf("%s imports %s: %s", name, own, rules[i].reason)
			}
		}
	}
}

func TestImportsHaveNoCircleInTheMap(t *testing.T) {
	// A line that allows what stands above it would let two packages know each
	// other by turns.
	above := map[string]bool{}
	for _, r := range rules {
		above[r.pkg] = true
	}
	seen := map[string]bool{}
	var visit func(string, []string)
	visit = func(name string, path []string) {
		if slices.Contains(path, name) {
			t.Fatalf("the map has a circle: %s", strings.Join(append(path, name), " -> "))
		}
		if seen[name] {
			return
		}
		for _, r := range rules {
			if r.pkg != name {
				continue
			}
			for _, below := range r.may {
				if !above[below] {
					t.Errorf("%s may import %s, which has no line of its own", name, below)
				}
				visit(below, append(path, name))
			}
		}
		seen[name] = true
	}
	for _, r := range rules {
		visit(r.pkg, nil)
	}
}

func TestImportsOfLibraries(t *testing.T) {
	for name, p := range listPackages(t) {
		for _, o := range only {
			if slices.Contains(p.Imports, o.library) && !slices.Contains(o.by, name) {
				t.Errorf("%s imports %s, which only %v may: %s", name, o.library, o.by, o.reason)
			}
		}
	}
}

func TestImportsOfPurePackages(t *testing.T) {
	all := listPackages(t)
	for _, name := range pure {
		for _, imported := range all[name].Imports {
			if slices.Contains(acting, imported) {
				t.Errorf("%s imports %s, but is pure: time, randomness and bytes come in as arguments", name, imported)
			}
		}
	}
}

func TestImportsOfTestHelpersAreInTestsAlone(t *testing.T) {
	users := map[string][]string{ // of each helper, outside of tests
		"cmd/agentop/command/fakeproxy": nil,
		"router/preflight/kinds":        nil,
		"cmd/testkit":                   nil,
		"router/fakeserver":             {"cmd/agentop/demo", "router/preflight/kinds"},
	}
	for name, p := range listPackages(t) {
		for helper, allowed := range users {
			if slices.Contains(p.Imports, "agentop/"+helper) && !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s outside of a test", name, helper)
			}
		}
	}
}
