package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTwoWorkersWriteOneProxyLog holds that no line of one worker is written
// over another's, across a rotation too.
func TestTwoWorkersWriteOneProxyLog(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "proxy.log")
	old := newProxyLogFile(name, 1<<20)
	defer old.Close()
	line := func(who string, i int) string {
		return fmt.Sprintf("%s %d %s\n", who, i, strings.Repeat("x", 1000+i%7))
	}
	want := map[string]bool{}
	write := func(f *proxyLogFile, who string, i int) {
		t.Helper()
		if _, err := f.Write([]byte(line(who, i))); err != nil {
			t.Fatal(err)
		}
		want[line(who, i)] = true
	}
	write(old, "old", 0)
	fresh := newProxyLogFile(name, 1<<20)
	defer fresh.Close()
	for i := range 1100 { // 2.2 MB
		write(fresh, "fresh", i)
		write(old, "old", i+1)
	}
	if info, err := os.Stat(name); err != nil || info.Size() > 1<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v, want at most 1 MB, 0600", info, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "proxy*.log"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files %q, %v, want some set aside", files, err)
	}
	got := map[string]bool{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(data)) {
			got[l] = true
			if !want[l] {
				t.Errorf("%s has a damaged line: %.60q", filepath.Base(f), l)
			}
		}
	}
	for l := range want {
		if !got[l] {
			t.Errorf("a line is lost: %.20q", l)
		}
	}
}
