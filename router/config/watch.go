package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options are a watcher's settings; the zero value is the usual one.
type Options struct {
	// Settle is how long the file's bytes must stay the same before they are
	// taken, so that no half-written file is; 0 means 500 ms.
	Settle time.Duration
	// Poll is how often the file is looked at (not read) without a
	// notification, as a net under those that the system sends, or in their
	// place where it sends none; 0 means each ten seconds in the first case,
	// which wakes an idle laptop seldom, and each second in the other.
	Poll time.Duration
	// NoNotify leaves the system's notifications out.
	NoNotify bool

	read func(path string) ([]byte, error) // nil for readFile; of tests
}

// How often the file is looked at without notifications, and with them.
const (
	pollAlone  = time.Second
	pollBeside = 10 * time.Second
)

// Watcher keeps the configuration that is in force. Its methods may be called
// from any goroutine.
type Watcher struct {
	path    string
	opts    Options
	done    chan struct{}
	loading sync.Mutex // one load at a time, callbacks included

	mu       sync.Mutex
	current  *Config
	data     []byte // what was loaded last, good or bad
	err      error
	onChange []func(old, new *Config)
	onError  []func(error)
}

// Watch loads the configuration at path and follows it until ctx ends. It
// always gives a watcher: when the file does not parse, Err says why and
// Current is the default configuration.
//
// After the start the last good configuration stays in force when the file
// stops parsing, vanishes or is empty (a crash of an editor leaves such
// files, and taking them would unroute every agent).
func Watch(ctx context.Context, path string, opts Options) *Watcher {
	if opts.Settle <= 0 {
		opts.Settle = 500 * time.Millisecond
	}
	if opts.read == nil {
		opts.read = readFile
	}
	w := &Watcher{path: path, opts: opts, current: Default(), done: make(chan struct{})}
	data, err := opts.read(path)
	unread := err != nil
	if err == nil {
		w.data = data
		var parsed *Config
		if parsed, err = Parse(path, data); err == nil {
			w.current = parsed
		}
	}
	w.err = err
	f := &follower{w: w, unread: unread}
	if !opts.NoNotify {
		f.notify, _ = fsnotify.NewWatcher() // without it, polling does
	}
	if opts.Poll <= 0 {
		w.opts.Poll = pollAlone
		if f.notify != nil {
			w.opts.Poll = pollBeside
		}
	}
	f.rewatch()
	go f.run(ctx)
	return w
}

// Current gives the configuration in force; never nil.
func (w *Watcher) Current() *Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current
}

// Err says why the file on disk is not in force; nil when it is.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// OnChange adds a function that is called after each change of meaning, one
// call at a time, in order. It must not call Reload.
func (w *Watcher) OnChange(f func(old, new *Config)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onChange = append(w.onChange, f)
}

// OnError adds a function that is called when Err has changed, with nil when
// the file is in force again; one call at a time, in order.
func (w *Watcher) OnError(f func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onError = append(w.onError, f)
}

// Done is closed when the watcher has ended.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Reload takes the file as it is, without waiting for it to settle: for
// callers that have just written it whole. It gives what Err then gives.
func (w *Watcher) Reload() error {
	data, err := w.opts.read(w.path)
	w.load(data, err)
	return w.Err()
}

var (
	errGone  = errors.New("the file is gone; the last good configuration stays in force until it is back")
	errEmpty = errors.New("the file is empty; the last good configuration stays in force (write `servers: {}` to have none)")
)

// load puts what was read in force, or keeps the last good configuration.
func (w *Watcher) load(data []byte, err error) {
	w.loading.Lock()
	defer w.loading.Unlock()
	var parsed *Config
	switch hadContent := !Equal(w.Current(), Default()); {
	case err != nil:
	case data == nil && hadContent:
		err = fmt.Errorf("%s: %w", w.path, errGone)
	case len(bytes.TrimSpace(data)) == 0 && hadContent:
		err = fmt.Errorf("%s: %w", w.path, errEmpty)
	default:
		parsed, err = Parse(w.path, data)
	}
	w.mu.Lock()
	old, oldErr := w.current, w.err
	w.data, w.err = data, err
	changed := err == nil && !Equal(old, parsed)
	if changed {
		w.current = parsed
	}
	onChange, onError := slices.Clone(w.onChange), slices.Clone(w.onError)
	w.mu.Unlock()
	if changed {
		for _, f := range onChange {
			f(old, parsed)
		}
	}
	if fmt.Sprint(oldErr) != fmt.Sprint(err) {
		for _, f := range onError {
			f(err)
		}
	}
}

func (w *Watcher) loaded(data []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Equal(w.data, data) && (w.data == nil) == (data == nil)
}

// follower is the watcher's goroutine: it looks at the file when told to, and
// loads what has stayed the same for the settling time.
type follower struct {
	w       *Watcher
	notify  *fsnotify.Watcher
	folders []string // watched
	names   []string // of the file and the links to it
	seen    os.FileInfo
	pending []byte // read, and not yet settled
	waiting bool
	unread  bool // the last read failed: descriptors may have run out, say, which no event tells the end of
}

func (f *follower) run(ctx context.Context) {
	defer close(f.w.done)
	var events chan fsnotify.Event
	var failures chan error
	if f.notify != nil {
		defer f.notify.Close()
		events, failures = f.notify.Events, f.notify.Errors
	}
	poll := time.NewTicker(f.w.opts.Poll)
	defer poll.Stop()
	settle := time.NewTimer(f.w.opts.Settle)
	defer settle.Stop()
	f.waiting = true // what changed between the first load and the watch
	f.pending, _ = f.w.opts.read(f.w.path)
	for {
		look := false
		select {
		case <-ctx.Done():
			return
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			look = f.concerns(e.Name)
		case _, open := <-failures: // an overflow: something may have been missed
			if !open {
				failures = nil
				continue
			}
			look = true
		case <-poll.C:
			f.rewatch()
			look = f.differs() || f.unread
		case <-settle.C:
			f.settled(settle)
		}
		if look {
			f.look(settle)
		}
	}
}

// concerns says whether an event may be about the file: by its name, or,
// since links to folders can be changed too, by the file itself.
func (f *follower) concerns(name string) bool {
	return slices.Contains(f.names, filepath.Clean(name)) || f.differs()
}

// differs compares the file with what was seen of it last, without reading it.
func (f *follower) differs() bool {
	info, err := os.Stat(f.w.path)
	if err != nil || f.seen == nil {
		return (f.seen == nil) != errors.Is(err, fs.ErrNotExist)
	}
	return !os.SameFile(info, f.seen) || info.Size() != f.seen.Size() || !info.ModTime().Equal(f.seen.ModTime())
}

// look reads the file and lets what it finds settle.
func (f *follower) look(settle *time.Timer) {
	f.rewatch()
	data, err := f.read()
	if err != nil {
		f.w.load(nil, err)
		return
	}
	f.pending, f.waiting = data, true
	settle.Reset(f.w.opts.Settle)
}

// read reads the file where it is watched. A link may have come to mean
// another folder since the last look: what changes there would not be told,
// nor would the link's event, as the file that it tells of was seen already.
func (f *follower) read() (data []byte, err error) {
	for range maxReads {
		f.seen, _ = os.Stat(f.w.path)
		data, err = f.w.opts.read(f.w.path)
		if !f.rewatch() {
			break
		}
	}
	f.unread = err != nil
	return data, err
}

// maxReads bounds how often a file is read whose links change all the time.
const maxReads = 10

// settled loads the file if it is what it was a settling time ago.
func (f *follower) settled(settle *time.Timer) {
	if !f.waiting {
		return
	}
	data, err := f.read()
	if err == nil && (!bytes.Equal(data, f.pending) || (data == nil) != (f.pending == nil)) {
		f.pending = data
		settle.Reset(f.w.opts.Settle)
		return
	}
	f.waiting, f.pending = false, nil
	if err != nil || !f.w.loaded(data) || f.w.Err() != nil {
		f.w.load(data, err)
	}
}

// rewatch watches the folders of the file and of every link to it: folders,
// since a file that is replaced by a rename is another file, and by their real
// paths, since a link to a folder can come to mean another one. Where a link
// lies in none of them, polling sees its change. It reports whether the folders
// are others than before.
func (f *follower) rewatch() (changed bool) {
	names, err := chain(f.w.path)
	if err != nil {
		names = []string{f.w.path}
	}
	var folders []string
	f.names = f.names[:0]
	for _, name := range names {
		folder, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil { // not there yet
			continue
		}
		folders = append(folders, folder)
		f.names = append(f.names, filepath.Join(folder, filepath.Base(name)))
	}
	if f.notify == nil {
		return false
	}
	before := f.folders
	for _, old := range before {
		if !slices.Contains(folders, old) {
			_ = f.notify.Remove(old)
		}
	}
	f.folders = nil
	for _, folder := range folders {
		if slices.Contains(f.folders, folder) {
			continue
		}
		if f.notify.Add(folder) == nil { // a folder made anew needs a new watch
			f.folders = append(f.folders, folder)
		}
	}
	return !slices.Equal(before, f.folders)
}
