package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"agentop/cmd/testkit"
)

// release is a pinned version of a real agent on npm.
type release struct{ name, pkg, version, bin string }

var (
	claude   = release{"claude-code", "@anthropic-ai/claude-code", "2.1.332", "claude"}
	codex    = release{"codex", "@openai/codex", "0.171.0", "codex"}
	opencode = release{"opencode", "opencode-ai", "1.18.33", "opencode"}
	qwencode = release{"qwen-code", "@qwen-code/qwen-code", "0.24.4", "qwen"}
)

// installing lets one test at a time install.
var installing sync.Mutex

// install returns the path of the agent's program, installing it if need be.
func (r release) install(t *testing.T) string {
	t.Helper()
	testkit.Need(t, "npm", "node")
	installing.Lock()
	defer installing.Unlock()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".cache", "clients", r.name+"-"+r.version)
	program := filepath.Join(dir, "node_modules", ".bin", r.bin)
	if _, err := os.Stat(filepath.Join(dir, "installed")); err == nil {
		return program
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", fmt.Sprintf("%s@%s", r.pkg, r.version))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install %s %s: %v\n%s", r.pkg, r.version, err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "installed"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return program
}
