package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// suites are who can see a fault: arguments of go test, the package last.
var suites = map[string][]string{
	"placement":  {"-skip", "TestPoolSimulation", "./router/placement"},
	"router":     {"-run", "TestPromise|TestPredecessor|TestRule|TestKF_A|TestNameless|TestCount|TestCodex|TestKeys|TestWhat|TestAMove|TestAForgotten|TestAnswers|TestForgetting", "./router"},
	"reqlog":     {"./router/reqlog"},
	"filestore":  {"./filestore"},
	"simulation": {"-run", "TestNeverMoved$|TestNeverMovedWithFullTables|TestPredecessor_16|TestPromise3", "./router/simulation"},
}

// simulated is how many requests the simulation makes for one fault.
const simulated = "6000"

// patience bounds one suite: a fault may make a test wait for ever.
const patience = 4 * time.Minute

// root is the module's folder, from here.
const root = "../../.."

// TestFaultsFitTheCode keeps the table true to the code: each fault is in its
// file at exactly one place, changes something, and names who sees it.
func TestFaultsFitTheCode(t *testing.T) {
	names := map[string]bool{}
	for _, f := range faults {
		if names[f.name] {
			t.Errorf("two faults are named %q", f.name)
		}
		names[f.name] = true
		if _, err := f.planted(); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		for _, s := range f.seen {
			if suites[s] == nil {
				t.Errorf("%s: there is no suite %q", f.name, s)
			}
		}
	}
	for _, e := range atEachChange {
		if !names[e.fault] || suites[e.suite] == nil {
			t.Errorf("at each change: there is no fault %q or no suite %q", e.fault, e.suite)
		}
	}
}

// planted is the file with the fault in it.
func (f fault) planted() (string, error) {
	content, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(content), f.from); n != 1 || f.from == f.to {
		return "", fmt.Errorf("%q is in %s %d times, want once, and changed", f.from, f.file, n)
	}
	return strings.Replace(string(content), f.from, f.to, 1), nil
}

// TestEveryFaultIsSeen plants the faults one by one and has whole suites look
// for them. That takes half an hour and more, so it runs only where
// AGENTOP_MUTANTS is set: to "all", or to a regular expression for the names of
// those to plant.
func TestEveryFaultIsSeen(t *testing.T) {
	want := os.Getenv("AGENTOP_MUTANTS")
	if want == "" {
		t.Log("not asked for: set AGENTOP_MUTANTS=all, or run `make mutants`")
		return
	}
	if want == "all" {
		want = ""
	}
	some, err := regexp.Compile(want)
	if err != nil {
		t.Fatal(err)
	}
	seen, survived := 0, []string{}
	for _, f := range faults {
		if !some.MatchString(f.name) {
			continue
		}
		began := time.Now()
		by, err := f.seenBy(t)
		switch {
		case err != nil:
			t.Errorf("%s: %v", f.name, err)
			continue
		case by == "":
			survived = append(survived, f.name)
			by = "NOBODY"
		default:
			seen++
		}
		fmt.Printf("%-58s seen by %s (%.0f s)\n", f.name, by, time.Since(began).Seconds())
	}
	fmt.Printf("%d faults seen, %d not\n", seen, len(survived))
	if len(survived) > 0 {
		t.Errorf("no test sees: %s", strings.Join(survived, "; "))
	}
}

// TestFaultsOfEachKindAreSeen is the short form, for every change: it plants
// one fault of each kind, each before one test.
func TestFaultsOfEachKindAreSeen(t *testing.T) {
	for _, e := range atEachChange {
		t.Run(e.fault, func(t *testing.T) {
			t.Parallel()
			f := faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == e.fault })]
			overlay, err := f.overlay(t)
			if err != nil {
				t.Fatal(err)
			}
			args := suites[e.suite]
			out, failed := runSuite([]string{"-timeout", "1m", "-run", "^" + e.test + "$", args[len(args)-1]}, overlay)
			if !failed || failedTest(out) != e.test {
				t.Errorf("%s does not see it: %s", e.test, out)
			}
		})
	}
}

// seenBy runs the suites until one fails, and names it and its test.
func (f fault) seenBy(t *testing.T) (string, error) {
	t.Helper()
	overlay, err := f.overlay(t)
	if err != nil {
		return "", err
	}
	for _, suite := range f.seen {
		out, failed := runSuite(suites[suite], overlay)
		if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
			return "", fmt.Errorf("the faulty code does not build:\n%s", out)
		}
		if failed {
			return suite + ", " + failedTest(out), nil
		}
	}
	return "", nil
}

// failedTest is the first test that failed, by what go test printed.
func failedTest(out string) string {
	if m := regexp.MustCompile(`(?m)^--- FAIL: (\S+)`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return "(it did not end)"
}

// overlay writes the faulty file and what tells the compiler of it.
func (f fault) overlay(t *testing.T) (string, error) {
	t.Helper()
	content, err := f.planted()
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.Join(root, f.file))
	if err != nil {
		return "", err
	}
	dir := t.TempDir()
	faulty, list := filepath.Join(dir, "faulty.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(faulty, []byte(content), 0o600); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {original: faulty}})
	if err != nil {
		return "", err
	}
	return list, os.WriteFile(list, b, 0o600)
}

func runSuite(suite []string, overlay string) (output string, failed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Minute)
	defer cancel()
	args := slices.Concat([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", patience.String()}, suite)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "AGENTOP_MUTANTS=", "AGENTOP_SIMULATION_SEED=1", "AGENTOP_SIMULATION_SHRINK=0", "AGENTOP_SIMULATION_REQUESTS="+simulated)
	out, err := cmd.CombinedOutput()
	return string(out), err != nil
}
