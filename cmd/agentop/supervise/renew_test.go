package supervise

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/agentop/home"
)

// renewing is a supervisor that is about to execute another binary, which
// cannot be executed.
func renewing(t *testing.T) *supervisor {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agentop")
	if err := os.WriteFile(path, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, _, err := takeLock(home.Home(t.TempDir()), Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.release)
	s := &supervisor{binary: newBinary(path, ownImage), lock: l, signals: make(chan os.Signal, 4)}
	signal.Notify(s.signals, heeded...)
	t.Cleanup(func() { signal.Stop(s.signals) })
	return s
}

// TestSignalsAreHeededAfterABinaryThatCannotBeExecuted sends what would end a
// process that does not ask for it.
func TestSignalsAreHeededAfterABinaryThatCannotBeExecuted(t *testing.T) {
	s := renewing(t)
	if err := s.execute(); !errors.Is(err, syscall.EACCES) {
		t.Fatalf("got %v, want %v", err, syscall.EACCES)
	}
	for _, want := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(os.Getpid(), want); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-s.signals:
			if got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%v did not arrive", want)
		}
	}
}

// TestASignalThatWaitsIsNotLostToAnotherImage holds for one that came when the
// decision to execute had been made.
func TestASignalThatWaitsIsNotLostToAnotherImage(t *testing.T) {
	s := renewing(t)
	s.signals <- syscall.SIGTERM
	if err := s.execute(); !errors.Is(err, errSignal) {
		t.Errorf("got %v, want %v", err, errSignal)
	}
	if len(s.signals) != 1 {
		t.Error("the signal is gone")
	}
}
