// Package testkit is what the tests of several packages share: one way to leave
// out what a machine cannot do, and the program, built from this tree. Only
// tests import it. Start reading at Need.
package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Need skips the test where one of the tools is not in PATH: see Lacks.
func Need(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			Lacks(t, tool+" is not installed")
		}
	}
}

// Lacks skips the test for want of something outside, with a line that is
// printed without -v too. Where AGENTOP_TEST_REQUIRE is set, as in CI, the test
// fails, so that no skip goes unseen there.
func Lacks(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("AGENTOP_TEST_REQUIRE") != "" {
		t.Fatal(what)
	}
	fmt.Printf("skipped %s: %s\n", t.Name(), what)
	t.Skip(what)
}

// Build builds the program from this tree to a path, static as releases are.
// It may be called by a test of any package of this module.
func Build(path string) error {
	cmd := exec.Command("go", "build", "-o", path, "agentop/cmd/agentop")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build agentop: %w\n%s", err, out)
	}
	return nil
}
