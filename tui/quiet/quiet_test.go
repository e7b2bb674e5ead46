package quiet

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const asks = "github.com/charmbracelet/bubbletea"

// TestItComesBeforeWhoAsks holds what the order of initialisation follows from:
// this package needs nothing of Bubble Tea's, and its path sorts before.
func TestItComesBeforeWhoAsks(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	if own := deps[len(deps)-1]; own >= asks || slices.Contains(deps, asks) {
		t.Errorf("%s, which needs %s, is initialised after %s", own, deps[:len(deps)-1], asks)
	}
}
