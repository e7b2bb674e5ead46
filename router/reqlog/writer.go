package reqlog

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is returned by Append after Close.
var ErrClosed = errors.New("request log is closed")

const (
	syncEvery = time.Second
	// retryAfter keeps a full disk from being asked anew by every request.
	retryAfter = 250 * time.Millisecond
)

// writer appends encoded lines to the file of the day. Whoever finds nobody
// writing writes; others wait in a batch that is written next, as one. So no
// lock is held during a write, each line is in exactly one write(2), and the
// file is written by one goroutine at a time.
type writer struct {
	dir       string
	fs        fileSystem
	now       func() time.Time
	partLimit int64
	maxQueue  int

	mu      sync.Mutex
	writing bool
	next    *batch
	closed  bool
	timer   bool // the timer for syncing and retrying is set
	dirty   bool
	dirDue  bool // a file was made whose name is not on disk yet
	state   WriteState
	idle    sync.Cond // writing went false

	file    appendFile    // set with mu held, by the writing goroutine alone
	syncing sync.Mutex    // held while a file is synced or closed
	retired []appendFile  // to be synced and closed
	at      atomic.Uint32 // id, for all to read
	own     ownSpans

	// The rest is the writing goroutine's alone.
	id      fileID
	size    int64
	short   bool // the file ends within a line
	checked time.Time
	tried   time.Time
	pending []byte // whole lines that could not be written
}

// WriteState tells how writing goes.
type WriteState struct {
	Err     error     // last failure to append or sync; nil once all is well again
	Since   time.Time // since when it fails
	Queued  int       // lines that only memory holds
	Dropped uint64    // lines that were given up because too many were queued
	File    string    // the file in use
}

type batch struct {
	buf  []byte
	err  error
	done chan struct{}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// append writes the line and returns once it is in the page cache. On an error
// the line is kept and tried again.
func (w *writer) append(l *Line) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	*buf = appendLine((*buf)[:0], l)
	return w.appendLines(*buf)
}

func (w *writer) appendLines(lines []byte) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	if w.writing {
		if w.next == nil {
			w.next = &batch{done: make(chan struct{})}
		}
		b := w.next
		b.buf = append(b.buf, lines...)
		w.mu.Unlock()
		<-b.done
		return b.err
	}
	w.writing = true
	w.mu.Unlock()
	err := w.put(lines)
	w.pass()
	return err
}

// pass ends the caller's time as the writing goroutine. Lines that came
// meanwhile are written by a goroutine of their own, so that nobody writes for
// others without end.
func (w *writer) pass() {
	w.mu.Lock()
	b := w.takeNext()
	w.mu.Unlock()
	if b == nil {
		return
	}
	go func() {
		for b != nil {
			b.err = w.put(b.buf)
			close(b.done)
			w.mu.Lock()
			b = w.takeNext()
			w.mu.Unlock()
		}
	}()
}

// takeNext returns the batch that waits, or ends the writing.
func (w *writer) takeNext() *batch {
	b := w.next
	w.next = nil
	if b == nil {
		w.writing = false
		w.idle.Broadcast()
	}
	return b
}

// put writes the lines after those that still wait. Only the writing goroutine
// calls it.
func (w *writer) put(lines []byte) error {
	waited := len(w.pending) > 0
	if waited {
		w.hold(lines)
		if time.Since(w.tried) < retryAfter {
			return w.current().Err
		}
		lines = w.pending
	}
	if len(lines) == 0 {
		return nil
	}
	n, err := w.write(lines)
	if err == nil {
		w.pending = nil
		w.wrote()
		return nil
	}
	w.tried, w.checked = time.Now(), time.Time{}
	whole := bytes.LastIndexByte(lines[:n], '\n') + 1
	w.short = w.short || n > whole
	rest := lines[whole:]
	if waited {
		w.pending = append(w.pending[:0], rest...)
	} else {
		w.hold(rest)
	}
	err = fmt.Errorf("append to %q: %w", filepath.Join(w.dir, w.id.name()), err)
	w.failed(err)
	return err
}

// write appends to the file of the day and returns how many of the lines'
// bytes are in it.
func (w *writer) write(lines []byte) (int, error) {
	if err := w.open(); err != nil {
		return 0, err
	}
	out, lead := lines, 0
	if w.short {
		out, lead = append([]byte{'\n'}, lines...), 1
	}
	// A follower must not see these bytes before it can know whose they are.
	w.own.mu.Lock()
	n, err := w.file.Write(out)
	if end, e := w.file.End(); e == nil && n > 0 {
		w.own.add(w.id, end-int64(n), end)
		w.size = end
	}
	w.own.mu.Unlock()
	if n > 0 {
		w.short = false
	}
	return max(n-lead, 0), err
}

// open makes sure that the file is the one of the day, has room, and still is
// where its name says.
func (w *writer) open() error {
	now := w.now()
	day := dayOf(now)
	if w.file != nil && w.id.day() == day {
		full := w.size >= w.partLimit && w.id.part() < maxParts
		fresh := time.Since(w.checked) < time.Second
		if !full && (fresh || w.fs.Same(filepath.Join(w.dir, w.id.name()), w.file)) {
			if !fresh {
				w.checked = time.Now()
			}
			return nil
		}
	}
	w.retire()
	if _, err := w.fs.MakeDir(w.dir); err != nil {
		return err
	}
	id, err := w.choose(day)
	if err != nil {
		return err
	}
	f, err := w.fs.OpenAppend(filepath.Join(w.dir, id.name()))
	if err != nil {
		return err
	}
	size, last, err := f.Tail()
	if err != nil {
		f.Close()
		return err
	}
	w.id, w.size, w.checked = id, size, time.Now()
	w.short = size > 0 && last != '\n'
	w.at.Store(uint32(id))
	w.mu.Lock()
	w.file = f
	w.dirDue = w.dirDue || size == 0
	w.state.File = id.name()
	w.mu.Unlock()
	return nil
}

// choose returns the day's last part, or a new one if that is full.
func (w *writer) choose(day int) (fileID, error) {
	files, err := w.fs.List(w.dir)
	if err != nil {
		return 0, err
	}
	id := newFileID(day, 1)
	for _, f := range files {
		if f.id.day() != day {
			continue
		}
		id = f.id
		if f.size >= w.partLimit && f.id.part() < maxParts {
			id++
		}
	}
	return id, nil
}

// retire leaves the file to the next sync, which closes it: nobody who appends
// waits for that.
func (w *writer) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return
	}
	w.retired = append(w.retired, w.file)
	w.file, w.dirty = nil, true
	w.arm()
}

// hold keeps lines in memory, up to maxQueue bytes: beyond, the oldest turns
// go first, since pins, moves and what was forgotten weigh more.
func (w *writer) hold(lines []byte) {
	w.pending = append(w.pending, lines...)
	dropped := w.shed()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Queued = bytes.Count(w.pending, []byte{'\n'})
	w.state.Dropped += uint64(dropped)
}

// shed drops what is too much of the lines that wait, and counts it.
func (w *writer) shed() int {
	if len(w.pending) <= w.maxQueue {
		return 0
	}
	dropped := 0
	kept := w.pending[:0:0]
	excess := len(w.pending) - w.maxQueue*3/4 // some room, so as not to do this for each line
	for line := range bytes.Lines(w.pending) {
		if excess > 0 && isKind(line, KindTurn) {
			excess -= len(line)
			dropped++
			continue
		}
		kept = append(kept, line...)
	}
	for len(kept) > w.maxQueue {
		i := bytes.IndexByte(kept, '\n') + 1
		kept = kept[i:]
		dropped++
	}
	w.pending = kept
	return dropped
}

// isKind looks for the kind where it stands in lines of ours: after the time.
func isKind(line []byte, kind Kind) bool {
	const at = len(`{"t":"`) + len(timeLayout) + len(`","k":"`)
	end := at + len(kind)
	return len(line) > end && string(line[at:end]) == string(kind) && line[end] == '"'
}

// close writes what still waits, syncs and closes.
func (w *writer) close() error {
	w.mu.Lock()
	for w.writing {
		w.idle.Wait()
	}
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()
	w.tried = time.Time{}
	err := w.put(nil)
	w.retire()
	return errors.Join(err, w.syncAll())
}
