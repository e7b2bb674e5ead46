package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// deadline is far beyond what any step here takes.
const deadline = time.Minute

// watched is a watcher whose news arrive on channels.
type watched struct {
	*Watcher
	t       *testing.T
	changes chan *Config
	errs    chan error
}

func watch(t *testing.T, path string, opts Options) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watched{Watcher: Watch(ctx, path, opts), t: t, changes: make(chan *Config, 100), errs: make(chan error, 100)}
	w.OnChange(func(_, now *Config) { w.changes <- now })
	w.OnError(func(err error) { w.errs <- err })
	t.Cleanup(func() {
		cancel()
		<-w.Done()
	})
	return w
}

// sizeN is a configuration that N tells from others.
func sizeN(n int) string { return fmt.Sprintf("# comment\nmax_body: %d MB\ntitles: off\n", n) }

// expect waits for the configuration of sizeN(n).
func (w *watched) expect(what string, n int) {
	w.t.Helper()
	select {
	case now := <-w.changes:
		if now.MaxBody != int64(n)<<20 || now.Titles || w.Current() != now {
			w.t.Fatalf("%s: got %+v, want the one with %d MB, whole", what, now, n)
		}
	case <-time.After(deadline):
		w.t.Fatalf("%s: not loaded", what)
	}
}

func (w *watched) expectError(what, part string) {
	w.t.Helper()
	select {
	case err := <-w.errs:
		if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
			w.t.Fatalf("%s: got error %v, want %q", what, err, part)
		}
	case <-time.After(deadline):
		w.t.Fatalf("%s: no word of an error", what)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write saves in place, in one call: a watcher finds the old text or the new
// one and nothing between, however slow the machine is.
func write(t *testing.T, path, data string) {
	t.Helper()
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		saveByRename(t, path, data)
		return
	case data == "":
		must(t, os.Truncate(path, 0))
		return
	}
	must(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(data + strings.Repeat("\n", max(0, len(old)-len(data))))
	must(t, errors.Join(err, f.Close()))
}

// saveByRename is how many editors save.
func saveByRename(t *testing.T, path, data string) {
	t.Helper()
	must(t, os.WriteFile(path+"~new", []byte(data), 0o600))
	must(t, os.Rename(path+"~new", path))
}

func TestKF_D7_WatchSeesEveryWayToSave(t *testing.T) {
	for name, opts := range map[string]Options{
		"notified": {Settle: 50 * time.Millisecond, Poll: time.Hour},
		"polled":   {Settle: 50 * time.Millisecond, Poll: 20 * time.Millisecond, NoNotify: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			write(t, path, sizeN(1))
			w := watch(t, path, opts)
			if w.Current().MaxBody != 1<<20 || w.Err() != nil {
				t.Fatalf("at the start: %+v, %v", w.Current(), w.Err())
			}
			n := 1
			for range 4 { // the twelfth edit as well as the first
				n++
				write(t, path, sizeN(n))
				w.expect("write in place", n)
				n++
				saveByRename(t, path, sizeN(n))
				w.expect("save by rename", n)
				n++
				must(t, os.Remove(path))
				w.expectError("delete", "the file is gone")
				write(t, path, sizeN(n))
				w.expect("create", n)
				w.expectError("create", "")
			}
		})
	}
}

func TestWatchFollowsLinks(t *testing.T) {
	for _, kind := range []string{"file", "folder"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			for i, folder := range []string{"home", "one", "two"} {
				must(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
				if i > 0 {
					write(t, filepath.Join(dir, folder, "config.yaml"), sizeN(i))
				}
			}
			path := filepath.Join(dir, "home", "config.yaml")
			link, to := path, func(folder string) string { return filepath.Join("..", folder, "config.yaml") }
			if kind == "folder" { // home/config.yaml -> data/config.yaml, home/data -> ../one
				must(t, os.Symlink(filepath.Join("data", "config.yaml"), path))
				link, to = filepath.Join(dir, "home", "data"), func(folder string) string { return filepath.Join("..", folder) }
			}
			must(t, os.Symlink(to("one"), link))
			w := watch(t, path, Options{Settle: 50 * time.Millisecond, Poll: time.Hour})
			for n := 10; n < 30; n += 10 {
				saveByRename(t, filepath.Join(dir, "one", "config.yaml"), sizeN(n+1))
				w.expect("target saved by rename", n+1)
				write(t, filepath.Join(dir, "two", "config.yaml"), sizeN(n+2))
				must(t, os.Symlink(to("two"), link+"~"))
				must(t, os.Rename(link+"~", link))
				w.expect("link pointed elsewhere", n+2)
				write(t, filepath.Join(dir, "two", "config.yaml"), sizeN(n+3))
				w.expect("new target written", n+3)
				write(t, filepath.Join(dir, "one", "config.yaml"), sizeN(n+4))
				must(t, os.Remove(link))
				must(t, os.Symlink(to("one"), link))
				w.expect("link made anew", n+4)
			}
		})
	}
}

// A link that is changed just before or while the file is read leaves the
// watcher at the folder from which it has read.
func TestWatchIsWhereItHasRead(t *testing.T) {
	for _, when := range []string{"before it settles", "while it is read"} {
		t.Run(when, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			for _, folder := range []string{"one", "two"} {
				must(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
				write(t, filepath.Join(dir, folder, "config.yaml"), sizeN(1))
			}
			link := filepath.Join(dir, "data")
			must(t, os.Symlink("one", link))
			change := sync.OnceFunc(func() {
				must(t, os.Symlink("two", link+"~"))
				must(t, os.Rename(link+"~", link))
			})
			notify, err := fsnotify.NewWatcher()
			must(t, err)
			defer notify.Close()
			w := &Watcher{path: filepath.Join(link, "config.yaml"), current: Default(), opts: Options{Settle: time.Hour, read: readFile}}
			f, settle := &follower{w: w, notify: notify}, time.NewTimer(time.Hour)
			if f.rewatch(); when == "before it settles" {
				f.waiting = true
				change()
				f.settled(settle)
			} else {
				w.opts.read = func(path string) ([]byte, error) { change(); return readFile(path) }
				f.look(settle)
			}
			if got, want := notify.WatchList(), []string{filepath.Join(dir, "two")}; !slices.Equal(got, want) {
				t.Errorf("watched are %q, want %q", got, want)
			}
		})
	}
}

// The first half is itself a valid configuration, and so is what is left when
// the second is cut anywhere: only waiting tells.
func TestKF_D8_WatchTakesNoHalfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, sizeN(1))
	half := strings.Index(sizeN(1), "titles")
	seen, written := make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(written) })
	see := sync.OnceFunc(func() { close(seen) })
	w := watch(t, path, Options{Settle: 50 * time.Millisecond, read: func(path string) ([]byte, error) {
		select {
		case <-seen:
			<-written // the look after the one at the half comes when all is there
		default:
		}
		data, err := readFile(path)
		if len(data) == half {
			see()
		}
		return data, err
	}})
	t.Cleanup(finish) // before the watcher's end
	write(t, path, sizeN(3))
	w.expect("the watcher is at work", 3)
	must(t, os.Truncate(path, int64(half)))
	<-seen
	write(t, path, sizeN(2))
	finish()
	w.expect("written in two parts", 2)
	select {
	case err := <-w.errs:
		t.Errorf("an error was shown for half a file: %v", err)
	default:
	}
}

func TestWatchKeepsTheLastGoodConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, sizeN(1))
	w := watch(t, path, Options{Settle: 30 * time.Millisecond})
	write(t, path, "servers:\n  glm:\n    ur: x\n")
	w.expectError("unknown field", `config.yaml:3:5: unknown field "ur"; did you mean "url"?`)
	write(t, path, "servers: {")
	w.expectError("open brace", "this is not valid YAML")
	if w.Current().MaxBody != 1<<20 {
		t.Errorf("a bad file changed what is in force: %+v", w.Current())
	}
	write(t, path, "")
	w.expectError("empty", "the file is empty")
	write(t, path, sizeN(1))
	w.expectError("as before", "")
	write(t, path, "# only the comment changed\n"+sizeN(1))
	write(t, path, sizeN(2))
	w.expect("good again", 2)
	if len(w.changes) != 0 {
		t.Errorf("a change of a comment was reported as one of meaning")
	}
}

func TestWatchStartsWithoutAFileAndWithABadOne(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, filepath.Join(dir, "config.yaml"), Options{Settle: 30 * time.Millisecond})
	if w.Err() != nil || !Equal(w.Current(), Default()) {
		t.Errorf("without a file: %+v, %v", w.Current(), w.Err())
	}
	write(t, filepath.Join(dir, "config.yaml"), sizeN(3))
	w.expect("first file", 3)
	write(t, filepath.Join(dir, "bad.yaml"), "listen: 0.0.0.0:1\n")
	bad := watch(t, filepath.Join(dir, "bad.yaml"), Options{})
	var e *Error
	if !errors.As(bad.Err(), &e) || e.Line != 1 || !Equal(bad.Current(), Default()) {
		t.Errorf("bad file: %+v, %v", bad.Current(), bad.Err())
	}
}

func TestWatchReloadsAtOnceWhenTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	w := watch(t, path, Options{Settle: time.Hour, Poll: time.Hour})
	must(t, Edit(path, func([]byte) ([]byte, error) { return []byte(sizeN(4)), nil }))
	if err := w.Reload(); err != nil || w.Current().MaxBody != 4<<20 {
		t.Errorf("got %+v, %v", w.Current(), err)
	}
}

// A file that could not be read for want of descriptors is read when there are
// some again, though nothing about it changes.
func TestWatchReadsAgainWhatCouldNotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(path, []byte(sizeN(1)), 0o600))
	var none atomic.Bool
	w := watch(t, path, Options{Settle: time.Millisecond, Poll: 10 * time.Millisecond, NoNotify: true, read: func(path string) ([]byte, error) {
		if none.Load() {
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
		}
		return readFile(path)
	}})
	none.Store(true)
	must(t, os.WriteFile(path+".new", []byte(sizeN(2)), 0o600))
	must(t, os.Rename(path+".new", path)) // one change, and no other after it
	w.expectError("no descriptors", "too many open files")
	none.Store(false)
	w.expect("descriptors again", 2)
	w.expectError("descriptors again", "")
}

func TestEditsAtTheSameTimeLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "config.yaml")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			name := fmt.Sprintf("s%d", i)
			if err := Edit(path, func(d []byte) ([]byte, error) {
				return AddServer(d, Server{Name: name, URL: "http://" + name})
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(path, data)
	if err != nil || len(c.Servers) != 12 {
		t.Fatalf("got %+v, %v, want 12 servers", c, err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, path + ".lock": 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
}

func TestSaveKeepsLinksAndNarrowsRights(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "dotfiles.yaml"), filepath.Join(dir, "config.yaml")
	must(t, os.WriteFile(target, []byte("titles: on\n"), 0o644))
	must(t, os.Symlink("dotfiles.yaml", path))
	must(t, Edit(path, func(d []byte) ([]byte, error) { return append(d, "max_body: 1 MB\n"...), nil }))
	link, err := os.Readlink(path)
	if err != nil || link != "dotfiles.yaml" {
		t.Errorf("the link is %q, %v", link, err)
	}
	got, err := os.ReadFile(target)
	if want := "titles: on\nmax_body: 1 MB\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if info, _ := os.Stat(target); info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, want 0600", info.Mode())
	}
	must(t, os.Remove(target)) // a link to nothing: the file is made where it leads
	must(t, Edit(path, func([]byte) ([]byte, error) { return []byte("titles: off\n"), nil }))
	if got, err := os.ReadFile(target); err != nil || string(got) != "titles: off\n" {
		t.Errorf("through a link to nothing: %q, %v", got, err)
	}
}

func TestSaveRefusesWhatItHasNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "titles: on\n")
	if err := save(path, []byte("titles: off\n"), []byte("x")); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	if err := save(path, nil, []byte("x")); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	tries := 0
	must(t, Edit(path, func(d []byte) ([]byte, error) {
		if tries++; tries == 1 { // an editor saves in between
			write(t, path, "titles: off\n")
		}
		return append(d, "max_body: 1 MB\n"...), nil
	}))
	if got, _ := os.ReadFile(path); tries != 2 || string(got) != "titles: off\nmax_body: 1 MB\n" {
		t.Errorf("after %d tries: %q", tries, got)
	}
	before, err := os.Stat(path)
	must(t, err)
	must(t, Edit(path, func(d []byte) ([]byte, error) { return d, nil }))
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("an edit without a change replaced the file")
	}
}
