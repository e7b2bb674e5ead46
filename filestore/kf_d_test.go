package filestore_test

import (
	"bytes"
	"os"
	"testing"

	"agentop/filestore"
)

// There has been one format of the file. Whoever writes a second one keeps a
// copy of the old file before the first write, so that going back is possible,
// and tests that here.
func TestKF_D13_TheFormatIsTheFirst(t *testing.T) {
	old, _ := goodFile(t)
	path := newPath(t)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := filestore.Open(t.Context(), filestore.FileURL(path), quiet)
	if err != nil {
		t.Fatal(err)
	}
	wantGet(t, s, "expiring", "soon", true)
	if got, _ := os.ReadFile(path); !bytes.Equal(got, old) {
		t.Error("reading changed the file")
	}
	setDurable(t, s, "k", "v")
	mustClose(t, s)
	if got, _ := os.ReadFile(path); !bytes.Contains(got, []byte(`"version":1`)) {
		t.Errorf("the file was rewritten in another format: %.80s", got)
	}
}
