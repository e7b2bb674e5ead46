package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentop/filestore"
)

// goodFile returns the bytes of a file with one entry of each form, and what
// its keys hold.
func goodFile(t testing.TB) ([]byte, map[string]string) {
	t.Helper()
	path := newPath(t)
	s := open(t, path)
	vals := map[string]string{
		"plain":    "some text with \"quotes\", a line\nand é",
		"json":     `{"server":"glm","turns":[1,2.50,{"a":null}]}`,
		"binary":   "\xff\xfe\x00",
		"\xffkey":  "v",
		"expiring": "soon",
	}
	for key, val := range vals {
		ttl := time.Duration(0)
		if key == "expiring" {
			ttl = month
		}
		s.Set(key, val, ttl)
	}
	s.HSet("hash", map[string]string{"f": "1", "g": ""})
	s.HSet("hash64", map[string]string{"f": "\xff"})
	s.Set("gone", "", 0)
	s.Delete("gone")
	mustClose(t, s)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b, vals
}

// openDamaged opens a store on bytes in memory, judges what it says, and sees
// that writing goes on and lasts. It returns whether all values were there.
func openDamaged(b []byte, vals map[string]string) (intact bool, err error) {
	fs := newCrashFS()
	fs.put(cutPath, b)
	s, err := openOn(fs)
	if err != nil {
		return false, err
	}
	defer s.Close()
	intact = true
	for key, want := range vals {
		got, found, err := s.Get(key)
		switch {
		case err != nil:
			return false, err
		case !found:
			intact = false
		case got != want:
			return false, fmt.Errorf("%q is %q, which was never written", key, got)
		}
	}
	keys, err := s.Keys("")
	for _, key := range keys {
		if _, ok := vals[key]; !ok && key != "hash" && key != "hash64" {
			return false, fmt.Errorf("%q was never written", key)
		}
	}
	st := s.State()
	if !intact && len(st.SetAside) != 1 {
		return false, fmt.Errorf("something is missing and the file was not set aside: %+v", st)
	}
	if len(st.SetAside) == 1 && !bytes.Equal(fs.get(st.SetAside[0]), b) {
		return false, errors.New("the file that was set aside is not the damaged one")
	}
	if err := s.SetDurable(context.Background(), "after", "1", 0); err != nil {
		return false, err
	}
	return intact, errors.Join(err, s.Check())
}

func (c *crashFS) put(name string, b []byte) {
	c.last++
	c.inodes[c.last] = &inode{data: b, synced: b, mode: 0o600}
	c.names[name], c.safe[name] = c.last, c.last
}

func (c *crashFS) get(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inodes[c.names[name]].data
}

// TestTruncatedAnywhere cuts a file at every byte. What is whole is kept, the
// file is set aside, and writing goes on.
func TestTruncatedAnywhere(t *testing.T) {
	b, vals := goodFile(t)
	for n := range len(b) {
		intact, err := openDamaged(b[:n:n], vals)
		if err != nil {
			t.Errorf("cut to %d of %d bytes: %v", n, len(b), err)
		}
		if intact && n < len(b)/2 {
			t.Errorf("cut to %d of %d bytes: everything there", n, len(b))
		}
	}
}

// TestAnyByteFlipped changes each byte in several ways.
func TestAnyByteFlipped(t *testing.T) {
	b, vals := goodFile(t)
	digit := bytes.Index(b, []byte(`"version":`)) + len(`"version":`)
	for i := range b {
		for _, mask := range []byte{0x01, 0x04, 0x20, 0x80, 0xff} {
			bad := slices.Clone(b)
			bad[i] ^= mask
			if i == digit && bad[i] > '1' && bad[i] <= '9' {
				continue // it says that a later program wrote it: TestNewerFormat
			}
			if _, err := openDamaged(bad, vals); err != nil {
				t.Errorf("byte %d of %d is %q for %q: %v", i, len(b), bad[i], b[i], err)
			}
		}
	}
}

// TestOtherBytes opens what is no file of ours.
func TestOtherBytes(t *testing.T) {
	b, vals := goodFile(t)
	lines := bytes.SplitAfter(b, []byte("\n"))
	for name, bad := range map[string][]byte{
		"empty":            nil,
		"space":            []byte("  \n"),
		"null":             []byte("null"),
		"other JSON":       []byte(`{"a":1}`),
		"no entries":       []byte(`{"version":1,"store":"ab","save":1}`),
		"garbage":          bytes.Repeat([]byte{0x9c}, 5000),
		"zeroes":           make([]byte, len(b)),
		"deep nesting":     []byte(`{"version":1,"store":"ab","save":1,"entries":{"a":{"json":` + strings.Repeat("[", 1<<20)),
		"huge number":      []byte(`{"version":1,"store":"ab","save":` + strings.Repeat("9", 1<<16) + `,"entries":{}}`),
		"huge exponent":    []byte(`{"version":1e999,"store":"ab","save":1,"entries":{}}`),
		"negative version": []byte(`{"version":-1,"store":"ab","save":1,"entries":{}}`),
		"version 0":        []byte(`{"version":0,"store":"ab","save":1,"entries":{}}`),
		"entry twice":      slices.Concat(lines[0], lines[1], slices.Concat(lines[1:]...)),
		"two files":        slices.Concat(b, b),
		"tail missing":     slices.Concat(lines[:4]...),
		"other first line": slices.Concat([]byte("{\"oh\":{\n"), slices.Concat(lines[1:]...)),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := openDamaged(bad, vals); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLaidOutAnew opens a file that an editor has formatted: it says the same
// and is not damaged.
func TestLaidOutAnew(t *testing.T) {
	b, vals := goodFile(t)
	var out bytes.Buffer
	if err := jsonIndent(&out, b); err != nil {
		t.Fatal(err)
	}
	intact, err := openDamaged(out.Bytes(), vals)
	if !intact || err != nil {
		t.Errorf("all there: %v, %v; want true", intact, err)
	}
}

// TestPredecessor_04_SetAsideTwice damages a file twice: the second one must
// not overwrite the first.
func TestPredecessor_04_SetAsideTwice(t *testing.T) {
	path := newPath(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 3 {
		if err := os.WriteFile(path, fmt.Appendf(nil, "damage %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path, filestore.WithClock(func() time.Time { return at }, nil))
		if got := s.State().SetAside; len(got) != 1 || !strings.HasPrefix(got[0], path+".corrupt-") {
			t.Errorf("SetAside = %q, want one name after %s.corrupt-", got, path)
		}
		setDurable(t, s, "k", fmt.Sprint(i))
		mustClose(t, s)
	}
	names, _ := filepath.Glob(path + ".corrupt-*")
	if len(names) != 3 {
		t.Errorf("set aside: %q, want three files", names)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
}

// TestPredecessor_07_KF_D10_NewerFormat finds a file of a later program: not a byte
// of it may change, memory serves, State says so, and when the file is
// replaced by one that can be read, the store is durable again.
func TestPredecessor_07_KF_D10_NewerFormat(t *testing.T) {
	b, _ := goodFile(t)
	for name, newer := range map[string][]byte{
		"only the version":  bytes.Replace(b, []byte(`"version":1`), []byte(`"version":2`), 1),
		"another layout":    []byte(`{"pages":[{"x":1}],"version":99,"more":"é"}`),
		"no number of ours": []byte(`{"version":123456789012345678901234567890}`),
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, newer, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := filestore.Open(t.Context(), filestore.FileURL(path), quiet)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			st := s.State()
			if !st.ReadOnly || !errors.Is(st.Err, filestore.ErrNewerFormat) || len(st.SetAside) > 0 {
				t.Errorf("State = %+v, want read-only for a newer format", st)
			}
			if err := s.SetDurable(t.Context(), "k", "v", 0); !isNotSaved(err) || !errors.Is(err, filestore.ErrNewerFormat) {
				t.Errorf("SetDurable = %v, want ErrNotSaved for ErrNewerFormat", err)
			}
			wantGet(t, s, "k", "v", true)
			if got, _ := os.ReadFile(path); !bytes.Equal(got, newer) {
				t.Error("the newer file was changed")
			}
			if err := os.Rename(writeTemp(t, b), path); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the store is durable again", func() bool { return s.State().Err == nil })
			wantGet(t, s, "expiring", "soon", true)
			wantGet(t, s, "k", "v", true)
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func writeTemp(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestNotAFile finds something else in the file's place. It is an error that
// says so, and nothing is moved; with the fallback, memory serves and the
// store is durable once the thing is gone.
func TestNotAFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/null", path) },
		"zeroes": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			if _, err := filestore.Open(t.Context(), filestore.FileURL(path), quiet); !errors.Is(err, filestore.ErrNotRegular) {
				t.Errorf("Open = %v, want ErrNotRegular", err)
			}
			s, err := filestore.Open(t.Context(), filestore.FileURL(path), quiet, filestore.WithMemoryFallback())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.SetDurable(t.Context(), "k", "v", 0); !isNotSaved(err) {
				t.Errorf("SetDurable = %v, want ErrNotSaved", err)
			}
			if st := s.State(); !errors.Is(st.Err, filestore.ErrNotRegular) || st.Unsaved != 1 {
				t.Errorf("State = %+v, want ErrNotRegular and one unsaved write", st)
			}
			wantGet(t, s, "k", "v", true)
			if made, _ := filepath.Glob(path + "?*"); len(made) > 0 {
				t.Errorf("made beside it: %q, want nothing", made)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the store is durable", func() bool { return s.State().Err == nil })
			mustClose(t, s)
			wantGet(t, open(t, path), "k", "v", true)
		})
	}
}

// TestHugeFile finds a file of 1 GB, empty space for the most part. It is set
// aside without being read.
func TestHugeFile(t *testing.T) {
	for name, head := range map[string]string{"zeroes": "", "like JSON": `{"version":1,`} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, []byte(head), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 1<<30); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := open(t, path)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Errorf("opening took %d bytes of memory, want less than 1 MiB", got)
			}
			if st := s.State(); len(st.SetAside) != 1 || st.Err != nil {
				t.Errorf("State = %+v, want one file set aside", st)
			}
			setDurable(t, s, "k", "v")
		})
	}
}
