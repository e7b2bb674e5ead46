package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentop/cmd/agentop/home"
)

func TestWideFilesAreTold(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"config.yaml": 0o644, "pins.json": 0o600, "log.jsonl": 0o620} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // past the umask
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	got := wideFiles(home.Home(dir))
	if len(got) != 2 || !strings.Contains(got[0], "config.yaml has mode 0644") || !strings.Contains(got[1], "log.jsonl has mode 0620") {
		t.Errorf("%q", got)
	}
}
