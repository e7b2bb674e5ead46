package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// knownFailures are the kinds of failures that users of other proxies have
// reported, and how many there are of each: streaming, request handling,
// conversation identity, errors and retries, durable state, security, service
// and lifecycle, terminal interface.
var knownFailures = map[string]int{"S": 12, "R": 17, "A": 13, "E": 13, "D": 13, "X": 8, "L": 13, "T": 8}

// TestEveryKnownFailureHasItsTest finds a test that bears the id of each, as
// TestKF_S1_... does, so that `go test -run KF_S1` tries it.
func TestEveryKnownFailureHasItsTest(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	var names []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "../.." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1])+"_")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(names, "\n")
	for kind, n := range knownFailures {
		for i := range n {
			if id := fmt.Sprintf("KF_%s%d", kind, i+1); !strings.Contains(all, id+"_") {
				t.Errorf("no test bears %s", id)
			}
		}
	}
}
