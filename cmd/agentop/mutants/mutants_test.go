package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// suites are who can see a fault: arguments of go test.
var suites = map[string][]string{
	"placement":  {"./router/placement"},
	"router":     {"-run", "TestPromise|TestPredecessor|TestRule|TestKF_A|TestHeaderless|TestCount|TestCodex|TestKeys|TestWhat|TestAMove|TestAForgotten|TestAnswers", "./router"},
	"reqlog":     {"./router/reqlog"},
	"filestore":  {"./filestore"},
	"simulation": {"-run", "TestNeverMoved$|TestNeverMovedWithFullTables|TestPredecessor_16", "./router/simulation"},
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

// TestEveryFaultIsSeen plants the faults one by one. It takes an hour or two,
// so it runs only where AGENTOP_MUTANTS is set: to "all", or to a part of the
// names of those to plant.
func TestEveryFaultIsSeen(t *testing.T) {
	want := os.Getenv("AGENTOP_MUTANTS")
	if want == "" {
		t.Log("not asked for: set AGENTOP_MUTANTS=all, or run `make mutants`")
		return
	}
	seen, survived := 0, []string{}
	for _, f := range faults {
		if want != "all" && !strings.Contains(f.name, want) {
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
		fmt.Printf("%-58s seen by %-10s (%.0f s)\n", f.name, by, time.Since(began).Seconds())
	}
	fmt.Printf("%d faults seen, %d not\n", seen, len(survived))
	if len(survived) > 0 {
		t.Errorf("no test sees: %s", strings.Join(survived, "; "))
	}
}

// seenBy runs the suites until one fails, and names it.
func (f fault) seenBy(t *testing.T) (string, error) {
	t.Helper()
	overlay, err := f.overlay(t)
	if err != nil {
		return "", err
	}
	for _, suite := range f.seen {
		out, failed := runSuite(suite, overlay)
		if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
			return "", fmt.Errorf("the faulty code does not build:\n%s", out)
		}
		if failed {
			return suite, nil
		}
	}
	return "", nil
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

func runSuite(suite, overlay string) (output string, failed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Minute)
	defer cancel()
	args := slices.Concat([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", patience.String()}, suites[suite])
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "AGENTOP_MUTANTS=", "AGENTOP_SIMULATION_SEED=1", "AGENTOP_SIMULATION_SHRINK=0", "AGENTOP_SIMULATION_REQUESTS="+simulated)
	out, err := cmd.CombinedOutput()
	return string(out), err != nil
}
