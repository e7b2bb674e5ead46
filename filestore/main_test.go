package filestore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"agentop/filestore"
)

// children are what the test binary does when it is run again as a child with
// childEnv set: each is killed or watched by the test of its name.
var children = map[string]func(args []string) error{}

const childEnv = "AGENTOP_FILESTORE_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child returns the command that runs a child. wrap goes before it: strace
// and its flags, say.
func child(t *testing.T, wrap []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := append(append(append([]string{}, wrap...), self), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// full tells whether the long forms of the crash tests are wanted.
func full() bool { return os.Getenv("AGENTOP_TEST_FULL") == "1" }

var quiet = filestore.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// open opens the store of a file, and checks and closes it when the test is
// over, unless the test closes it.
func open(t testing.TB, path string, opts ...filestore.Option) filestore.Store {
	t.Helper()
	s, err := filestore.Open(context.Background(), filestore.FileURL(path), append([]filestore.Option{quiet}, opts...)...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Check(); err != nil {
			t.Errorf("when the test was over: %v", err)
		}
		s.Close()
	})
	return s
}

// mustClose checks and closes a store whose disk is well.
func mustClose(t testing.TB, s filestore.Store) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Check(); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "pins.json") }

// wantGet checks one key; value "" with found false is a missing key.
func wantGet(t testing.TB, s filestore.Store, key, value string, found bool) {
	t.Helper()
	got, ok, err := s.Get(key)
	if err != nil || got != value || ok != found {
		t.Errorf("Get(%q) = %q, %v, %v; want %q, %v", key, got, ok, err, value, found)
	}
}

func setDurable(t testing.TB, s filestore.Store, key, value string) {
	t.Helper()
	if err := s.SetDurable(t.Context(), key, value, 0); err != nil {
		t.Fatalf("SetDurable(%q): %v", key, err)
	}
}

// eventually polls, for what other processes or timers do.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func isNotSaved(err error) bool { return errors.Is(err, filestore.ErrNotSaved) }

func jsonIndent(out *bytes.Buffer, b []byte) error { return json.Indent(out, b, "", "  ") }
