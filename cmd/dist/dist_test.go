package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testVersion = "v1.2.3-4-gfade"
	testDate    = "2026-03-04T05:06:07Z"
)

func testOptions(root, out string) options {
	return options{root: root, out: out, version: testVersion, commit: "fade", date: testDate,
		systems: runtime.GOOS + "/" + runtime.GOARCH, base: "http://dist.invalid/latest", deb: true}
}

// scratch lives until TestMain ends.
var scratch string

// source is a copy of the source as it was when the first test asked for it.
var source = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "source")
	return dir, copySource(filepath.Join("..", ".."), dir)
})

// release is what `make dist` makes, for this system alone.
var release = sync.OnceValues(func() (string, error) {
	dir, err := source()
	if err != nil {
		return "", err
	}
	out := filepath.Join(scratch, "release")
	return out, run(context.Background(), testOptions(dir, out))
})

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "agentop-dist-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

func releaseDir(t *testing.T) string {
	t.Helper()
	dir, err := release()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDistIsReproducible builds the same source in two folders and compares
// every byte. At full length for all four systems.
func TestDistIsReproducible(t *testing.T) {
	first := releaseDir(t)
	from, err := source()
	if err != nil {
		t.Fatal(err)
	}
	systems := runtime.GOOS + "/" + runtime.GOARCH
	if os.Getenv("AGENTOP_TEST_FULL") != "" {
		systems = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"
		first = filepath.Join(t.TempDir(), "first")
		o := testOptions(from, first)
		o.systems = systems
		if err := run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(t.TempDir(), "a", "clone")
	if err := copySource(from, other); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "second")
	o := testOptions(other, second)
	o.systems = systems
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	names := list(t, first)
	if got := list(t, second); !slices.Equal(got, names) {
		t.Fatalf("the second time made %v, the first %v", got, names)
	}
	for _, name := range names {
		a, b := read(t, filepath.Join(first, name)), read(t, filepath.Join(second, name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs: %d bytes the first time, %d the second", name, len(a), len(b))
		}
	}
}

func TestDistHasWhatAReleaseNeeds(t *testing.T) {
	dir := releaseDir(t)
	name := "agentop_" + runtime.GOOS + "_" + runtime.GOARCH
	want := []string{name + ".tar.gz", "checksums.txt", "install.sh"}
	if runtime.GOOS == "linux" {
		want = append([]string{name + ".deb"}, want...)
	}
	if got := list(t, dir); !slices.Equal(got, want) {
		t.Errorf("the release has %v, want %v", got, want)
	}
	sums := string(read(t, filepath.Join(dir, "checksums.txt")))
	for _, n := range want {
		if n != "checksums.txt" && !strings.Contains(sums, "  "+n+"\n") {
			t.Errorf("checksums.txt does not name %s:\n%s", n, sums)
		}
	}
	held := unpack(t, filepath.Join(dir, name+".tar.gz"))
	for _, n := range []string{"agentop", "README.md", "completions/agentop.bash", "completions/_agentop", "completions/agentop.fish",
		"man/man1/agentop.1", "man/man1/agentop-server-add.1", "man/man1/agentop-sessions-move.1", "man/man1/agentop-version.1"} {
		if len(held[name+"/"+n]) == 0 {
			t.Errorf("the archive lacks %s", n)
		}
	}
	if page := string(held[name+"/man/man1/agentop-server-add.1"]); !strings.Contains(page, `"AGENTOP-SERVER-ADD" "1" "Mar 2026" "agentop `+testVersion) {
		t.Errorf("the man page's head is not of this release:\n%.300s", page)
	}
}

// TestCompletionsAreWhatTheShellsRead has each shell that is here read its own.
func TestCompletionsAreWhatTheShellsRead(t *testing.T) {
	dir := releaseDir(t)
	name := "agentop_" + runtime.GOOS + "_" + runtime.GOARCH
	held := unpack(t, filepath.Join(dir, name+".tar.gz"))
	for shell, file := range map[string]string{"bash": "agentop.bash", "zsh": "_agentop", "fish": "agentop.fish"} {
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not here to read its completions", shell)
			continue
		}
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, held[name+"/completions/"+file], 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s -n %s: %v\n%s", shell, file, err, out)
		}
	}
}

func TestDebianVersion(t *testing.T) {
	date := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, c := range []struct{ version, commit, want string }{
		{"v1.2.3", "fade", "1.2.3"},
		{"v1.2.3-4-gfade", "fade", "1.2.3+4+gfade"},
		{"fade123", "fade123", "0~20260304050607.fade123"},
		{"dev", "", "0~20260304050607.dev"},
	} {
		if got := debianVersion(c.version, c.commit, date); got != c.want {
			t.Errorf("debianVersion(%q, %q) = %q, want %q", c.version, c.commit, got, c.want)
		}
	}
}

func TestDistRefuses(t *testing.T) {
	for name, change := range map[string]func(*options){
		"a date that is none":         func(o *options) { o.date = "yesterday" },
		"a system that is none":       func(o *options) { o.systems = "linux" },
		"a system Go does not know":   func(o *options) { o.systems = "plan10/amd64" },
		"a folder that is no source":  func(o *options) { o.root = t.TempDir() },
		"an out folder without a way": func(o *options) { o.out = filepath.Join(t.TempDir(), "no", "such", "folder") },
	} {
		o := testOptions(filepath.Join("..", ".."), filepath.Join(t.TempDir(), "out"))
		change(&o)
		if err := run(t.Context(), o); err == nil {
			t.Errorf("%s: want an error", name)
		}
		if _, err := os.Stat(o.out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it left something at %s", name, o.out)
		}
	}
}

// copySource copies what the build reads, and none of what git ignores.
func copySource(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "dist" && !strings.Contains(rel, "cmd")) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if strings.HasSuffix(rel, ".test") || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
}

// unpack gives the files of a tar.gz by name.
func unpack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
