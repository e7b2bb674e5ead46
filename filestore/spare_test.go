package filestore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"agentop/filestore"
)

// tempCount is a file system that counts the temporary files it makes: one
// for each save that writes the whole file.
type tempCount struct {
	filestore.FS
	made int
}

func (c *tempCount) CreateTemp(dir, pattern string) (filestore.File, error) {
	c.made++
	return c.FS.CreateTemp(dir, pattern)
}

// TestAddedTo has saves that only add keys add to the version before the last:
// two whole files are written in all. A change of an old key has it written
// anew, and then again.
func TestAddedTo(t *testing.T) {
	fs := newCrashFS()
	count := &tempCount{FS: fs}
	s, err := openOn(count, filestore.WithSpare(1))
	if err != nil {
		t.Fatal(err)
	}
	add := func(from, to int) {
		for i := from; i < to; i++ {
			setDurable(t, s, fmt.Sprintf("k%d", i), "1")
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want int // temporary files made by then
	}{
		{"ten keys", func() { add(0, 10) }, 2},
		{"an old key", func() { setDurable(t, s, "k3", "2") }, 3},
		{"one key", func() { add(10, 11) }, 4},
		{"more keys", func() { add(11, 20) }, 4},
		{"a deletion", func() { s.DeleteDurable(t.Context(), "k5") }, 5},
		{"keys after that", func() { add(20, 30) }, 6},
	} {
		step.do()
		if count.made != step.want {
			t.Errorf("after %s %d whole files were written, want %d", step.name, count.made, step.want)
		}
	}
	mustClose(t, s)
	if left, _ := fs.List("/home", "pins.json.tmp-"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	again, err := openOn(fs)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if keys, _ := again.Keys(""); len(keys) != 29 {
		t.Errorf("%d keys, want 29: %q", len(keys), keys)
	}
	wantGet(t, again, "k3", "2", true)
	wantGet(t, again, "k29", "1", true)
}

// TestNobodysFileIsAddedTo wants what others have of the file to stay as it
// is: an open one, a copy by link. What they do with the spare harms nothing.
func TestNobodysFileIsAddedTo(t *testing.T) {
	spare := func(path string) string {
		names, _ := filepath.Glob(path + ".tmp-was*")
		if len(names) != 1 {
			t.Fatalf("spares: %q, want one", names)
		}
		return names[0]
	}
	cases := []struct {
		name string
		take func(t *testing.T, path string) (read func() []byte)
	}{
		{"open", func(t *testing.T, path string) func() []byte {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return func() []byte {
				b := make([]byte, 1<<20)
				n, _ := f.ReadAt(b, 0)
				return b[:n]
			}
		}},
		{"linked", func(t *testing.T, path string) func() []byte {
			if err := os.Link(path, path+".copy"); err != nil {
				t.Fatal(err)
			}
			return func() []byte {
				b, _ := os.ReadFile(path + ".copy")
				return b
			}
		}},
		{"spare removed", func(t *testing.T, path string) func() []byte {
			os.Remove(spare(path))
			return func() []byte { return nil }
		}},
		{"spare replaced", func(t *testing.T, path string) func() []byte {
			name := spare(path)
			os.Remove(name)
			os.WriteFile(name, []byte("not ours"), 0o600)
			return func() []byte { return nil }
		}},
		{"spare written to", func(t *testing.T, path string) func() []byte {
			os.WriteFile(spare(path), []byte("not ours"), 0o600)
			return func() []byte { return nil }
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := newPath(t)
			s := open(t, path, filestore.WithSpare(1))
			for i := range 3 {
				setDurable(t, s, fmt.Sprintf("k%d", i), "1")
			}
			if runtime.GOOS != "linux" {
				return // no spare is ever added to
			}
			read := c.take(t, path)
			was := read()
			for i := range 5 {
				setDurable(t, s, fmt.Sprintf("then%d", i), "1")
				if err := s.Check(); err != nil {
					t.Fatal(err)
				}
			}
			if now := read(); !bytes.Equal(was, now) {
				t.Errorf("it was\n%s\nand has become\n%s", was, now)
			}
			mustClose(t, s)
			again := open(t, path)
			wantGet(t, again, "k0", "1", true)
			wantGet(t, again, "then4", "1", true)
		})
	}
}

// usurper has another file take the place of the store's own just before that
// is given its second name, and keeps a copy of the store's by link.
type usurper struct {
	filestore.FS
	copy string
	once sync.Once
}

func (u *usurper) Link(name, second string) error {
	u.once.Do(func() {
		os.Link(name, u.copy)
		os.WriteFile(name+".other", []byte("not ours"), 0o600)
		os.Rename(name+".other", name)
	})
	return u.FS.Link(name, second)
}

// TestTheSpareIsFoundByItsName wants a version not added to whose second name
// has become another file's, though it has one name.
func TestTheSpareIsFoundByItsName(t *testing.T) {
	path := newPath(t)
	fs := &usurper{FS: filestore.OS(), copy: path + ".copy"}
	s := open(t, path, filestore.WithSpare(1), filestore.WithFS(fs))
	var was []byte
	for i := range 5 {
		setDurable(t, s, fmt.Sprintf("k%d", i), "1")
		b, err := os.ReadFile(fs.copy)
		switch {
		case err != nil: // no second name was given so far
		case was == nil:
			was = b
		case !bytes.Equal(was, b):
			t.Errorf("the copy was\n%s\nand has become\n%s", was, b)
		}
	}
	if was == nil && runtime.GOOS == "linux" {
		t.Error("no version was given a second name")
	}
	wantGet(t, open(t, path), "k4", "1", true)
}
