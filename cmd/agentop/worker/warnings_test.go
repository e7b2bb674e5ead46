package worker

import (
	"os"
	"strings"
	"testing"
)

func TestAnotherListenIsToldOf(t *testing.T) {
	both := []string{"127.0.0.1:4780", "[::1]:4780"}
	for _, c := range []struct {
		listen string
		bound  []string
		told   bool
	}{
		{"127.0.0.1:4780", both, false},
		{"[::1]:4780", both, false},
		{"localhost:4780", both, false},
		{"127.0.0.1:0", both, false},
		{"127.0.0.1:4780", nil, false}, // it does not listen yet
		{"127.0.0.1:4781", both, true},
		{"localhost:4781", both, true},
		{"127.0.0.2:4780", both, true},
	} {
		got := movedListen(c.listen, c.bound)
		if (got != "") != c.told || c.told && !strings.Contains(got, c.listen) {
			t.Errorf("listen %s on %q: %q, want a warning: %v", c.listen, c.bound, got, c.told)
		}
	}
}

func TestADamagedPinsFileIsToldOf(t *testing.T) {
	r := start(t, "servers: {}\n")
	r.stop()
	if err := os.WriteFile(r.home.Pins(), []byte("{damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run()
	s, err := r.Status(t.Context())
	if err != nil || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "set aside as "+r.home.Pins()+".corrupt-") {
		t.Errorf("warnings %q, %v, want the damaged file and its new name", s.Warnings, err)
	}
}

func TestMendedRightsAreNoLongerToldOf(t *testing.T) {
	r := start(t, "servers: {}\n")
	r.stop()
	name := r.home.String() + "/notes"
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	r.run()
	warnings := func() []string {
		t.Helper()
		s, err := r.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Warnings
	}
	if got := warnings(); len(got) != 1 || !strings.Contains(got[0], name) {
		t.Fatalf("warnings %q, want %s", got, name)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := warnings(); len(got) != 0 {
		t.Errorf("warnings %q after the file was closed to others", got)
	}
}
