package ahead

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestDropEndsAWorkerThatNobodyTook(t *testing.T) {
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(path, []string{"sleep", "600"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first = &p
	Drop()
	if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after Drop: %v, want %v", p.PID, err, syscall.ESRCH)
	}
	if _, found := Take(); found {
		t.Error("a dropped worker is given away")
	}
	Drop() // there is none
}

// TestItNeedsTheStandardLibraryAlone holds what makes this package early: those
// that it waits for are few, and quick to initialise.
func TestItNeedsTheStandardLibraryAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if got := strings.Fields(string(out)); err != nil || len(got) != 1 {
		t.Errorf("packages beyond the standard library: %q, %v; want this one alone", got, err)
	}
}

func TestAWorkerIsTakenOnce(t *testing.T) {
	first = &Process{PID: 1, Link: 2}
	if p, found := Take(); !found || p.Link != 2 {
		t.Errorf("took %v, %v", p, found)
	}
	if p, found := Take(); found {
		t.Errorf("took %v a second time", p)
	}
}

func TestAWorkerIsNotToldWhatIsForItsSupervisor(t *testing.T) {
	got := environment([]string{"HOME=/h", "NOTIFY_SOCKET=/n", "LISTEN_FDS=1", "LISTEN_PID=2", "WATCHDOG_USEC=3", StateEnv + "={}", "LISTEN=kept"})
	if want := []string{"HOME=/h", "LISTEN=kept"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
