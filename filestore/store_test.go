package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"agentop/filestore"
)

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "pins.json")
	ctx := context.Background()
	s, err := filestore.Open(ctx, filestore.FileURL(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetDurable(ctx, "k", `{"server":"glm"}`, 0); err != nil {
		t.Fatal(err)
	}
	s.Set("x", "a\"b\xff", 3600e9)
	s.HSet("h", map[string]string{"a": "1"})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	t.Logf("%s", b)
	s, err = filestore.Open(ctx, filestore.FileURL(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s.Get("k"))
	t.Log(s.Get("x"))
	t.Log(s.State())
	s.Close()
}
