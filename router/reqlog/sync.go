package reqlog

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

func (w *writer) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Queued = 0
	w.dirty = true
	if w.state.Err != nil && !errors.Is(w.state.Err, errSync) {
		w.state.Err, w.state.Since = nil, time.Time{}
	}
	w.arm()
}

func (w *writer) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Queued = bytes.Count(w.pending, []byte{'\n'})
	w.fail(err)
	w.arm()
}

// fail is called with the lock held.
func (w *writer) fail(err error) {
	if w.state.Err == nil {
		w.state.Since = w.now()
	}
	w.state.Err = err
}

func (w *writer) current() WriteState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// arm sets the timer that syncs and tries again; with nothing to do there is
// none, so an idle program is not woken. Called with the lock held.
func (w *writer) arm() {
	if w.timer || w.closed {
		return
	}
	w.timer = true
	time.AfterFunc(syncEvery, w.tick)
}

var errSync = errors.New("sync")

func (w *writer) tick() {
	w.mu.Lock()
	w.timer = false
	retry := w.state.Queued > 0 && !w.writing && !w.closed
	if retry {
		w.writing = true
	}
	w.mu.Unlock()
	if retry {
		w.tried = time.Time{}
		_ = w.put(nil)
		w.pass()
	}
	_ = w.sync()
}

// sync makes what was appended so far durable.
func (w *writer) sync() error {
	w.mu.Lock()
	dirty, dirDue := w.dirty, w.dirDue
	w.dirty, w.dirDue = false, false
	w.mu.Unlock()
	if !dirty && !dirDue {
		return nil
	}
	err := w.syncFiles()
	if err == nil && dirDue {
		err = w.fs.SyncDir(w.dir)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%w %q: %w", errSync, w.dir, err)
		w.dirty, w.dirDue = true, w.dirDue || dirDue
		w.fail(err)
		w.arm()
		return err
	}
	if errors.Is(w.state.Err, errSync) {
		w.state.Err, w.state.Since = nil, time.Time{}
	}
	return nil
}

// syncFiles syncs the file in use and closes those that were retired.
func (w *writer) syncFiles() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	f, old := w.file, w.retired
	w.retired = nil
	w.mu.Unlock()
	var errs []error
	for _, o := range old {
		errs = append(errs, o.Sync(), o.Close())
	}
	if f != nil {
		errs = append(errs, f.Sync())
	}
	return errors.Join(errs...)
}

// syncAll makes everything appended so far durable, also what another
// goroutine is just about to sync.
func (w *writer) syncAll() error {
	w.mu.Lock()
	w.dirty = true
	w.mu.Unlock()
	return w.sync()
}
