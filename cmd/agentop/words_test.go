package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pages say what a side request is before they use the word, and tell the
// times for which the code keeps what it knows.
func TestPredecessor_22_ThePagesDefineWhatTheySay(t *testing.T) {
	root := filepath.Join("..", "..")
	page := readFile(t, filepath.Join(root, "docs", "identity.md"))
	defined := strings.Index(page, "A *side request* (")
	first := strings.Index(strings.ToLower(page), "side request")
	if defined < 0 || first < defined {
		t.Errorf("docs/identity.md says %q at %d and defines it at %d", "side request", first, defined)
	}
	for _, fact := range []struct{ file, code, words string }{
		{"router/pin.go", "pinTTL   = 31 * 24 * time.Hour", "31 days"},
		{"router/reqlog/index.go", "const Lifetime = 31 * 24 * time.Hour", "31 days"},
		{"router/reqlog/log.go", "o.MaxAge = 30 * 24 * time.Hour", "30 days"},
		{"router/reqlog/log.go", "o.MaxBytes = 200 << 20", "200 MB"},
		{"router/place.go", "const minMark = 48", "48 bytes"},
	} {
		if !strings.Contains(readFile(t, filepath.Join(root, fact.file)), fact.code) {
			t.Errorf("%s does not say %q any more: look whether docs/identity.md is still true of %s", fact.file, fact.code, fact.words)
		}
		if !strings.Contains(strings.Join(strings.Fields(page), " "), fact.words) {
			t.Errorf("docs/identity.md does not tell of %s", fact.words)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, name := range append(pages, filepath.Join(root, "README.md")) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"29 days", "29 to 30 days", "pins are kept 30 days", "auxiliary request", "aux request"} {
			if strings.Contains(string(content), wrong) {
				t.Errorf("%s says %q", name, wrong)
			}
		}
	}
}
