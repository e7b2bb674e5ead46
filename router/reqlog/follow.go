package reqlog

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"sync"
	"time"
)

// pollEvery is how often a followed log is looked at.
const pollEvery = 200 * time.Millisecond

// follower reads the lines that other processes append.
type follower struct {
	mu     sync.Mutex // one poll at a time; held while reading
	active bool
	at     map[fileID]int64 // where the first line begins that was not read yet
	inside map[fileID]bool  // at may be within a line
	buf    []byte
}

// begin starts behind what the files hold.
func (f *follower) begin(files []logFile) {
	f.at, f.inside = map[fileID]int64{}, map[fileID]bool{}
	for _, file := range files {
		f.at[file.id], f.inside[file.id] = file.size, true
	}
}

// Follow takes in what other processes append to the log, from Open on, until
// ctx ends: the old worker's streams end there while a new one serves. Lines
// are seen within about 200 ms; CatchUp sees them at once. It may be called
// again later, but not twice at a time.
func (l *Log) Follow(ctx context.Context) error {
	l.following.setActive(true)
	defer l.following.setActive(false)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if err := l.poll(); err != nil {
			l.warn("follow", "the request log of the other process cannot be read: "+err.Error())
		}
		select {
		case <-ctx.Done():
			return l.poll() // what was written up to the end
		case <-ticker.C:
		}
	}
}

// CatchUp takes in what other processes have appended up to now. Without
// Follow it does nothing, so no disk is touched when no other process writes.
func (l *Log) CatchUp() {
	l.following.mu.Lock()
	active := l.following.active
	l.following.mu.Unlock()
	if active {
		_ = l.poll() // Follow itself tells of errors
	}
}

func (f *follower) setActive(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = on
	if !on {
		f.buf = nil
	}
}

func (l *Log) poll() error {
	return l.following.poll(l.o.fs, l.dir, func(id fileID, off int64, b []byte) {
		if l.w.own.has(id, off) || len(b) == 0 {
			return
		}
		line, ok := recoverLine(b)
		if !ok {
			l.damage.Add(1)
			return
		}
		l.index.applyLine(&line, id)
		l.tell(line)
		l.wake()
	})
}

// recoverLine reads a line, or the whole one at the end of what was glued
// together when a write was cut short.
func recoverLine(b []byte) (Line, bool) {
	if line, ok := DecodeLine(b); ok {
		return line, true
	}
	if i := bytes.LastIndex(b, lineStart); i > 0 {
		return DecodeLine(b[i:])
	}
	return Line{}, false
}

// poll calls fn with each line that is new since the last poll and where it
// begins. A line without its newline is left for later.
func (f *follower) poll(fs fileSystem, dir string, fn func(fileID, int64, []byte)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	files, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if file.size < f.at[file.id] {
			f.at[file.id] = 0 // another file under the old name
		}
		if file.size == f.at[file.id] {
			continue
		}
		if err := f.read(fs, dir, file, fn); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) read(fs fileSystem, dir string, file logFile, fn func(fileID, int64, []byte)) error {
	r, err := fs.OpenRead(filepath.Join(dir, file.id.name()))
	if err != nil {
		return err
	}
	defer r.Close()
	at := f.at[file.id]
	if f.inside[file.id] {
		if at, err = lineBegin(r, at); err != nil {
			return err
		}
		f.inside[file.id] = false
	}
	if f.buf == nil {
		f.buf = make([]byte, maxLine*2)
	}
	at, err = forward(r, at, file.size, f.buf, func(off int64, b []byte) bool {
		fn(file.id, off, b)
		return true
	})
	f.at[file.id] = at
	return err
}

// lineBegin goes back from at to where its line begins.
func lineBegin(r io.ReaderAt, at int64) (int64, error) {
	n := min(at, maxLine)
	b := make([]byte, n)
	if m, err := r.ReadAt(b, at-n); err != nil && (err != io.EOF || int64(m) < n) {
		return 0, err
	}
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		return at - n + int64(i) + 1, nil
	}
	if n < at {
		return at, nil
	}
	return 0, nil
}

// forward calls fn with each whole line from at to end and where it begins,
// without its newline, until fn returns false, and returns where the first one that is not whole
// begins. A line that does not fit into buf is passed on in pieces, which no
// reader takes for lines.
func forward(r io.ReaderAt, at, end int64, buf []byte, fn func(int64, []byte) bool) (int64, error) {
	for at < end {
		n := min(end-at, int64(len(buf)))
		m, err := r.ReadAt(buf[:n], at)
		if err != nil && err != io.EOF {
			return at, err
		}
		block := buf[:m]
		for {
			i := bytes.IndexByte(block, '\n')
			if i < 0 {
				break
			}
			line, off := block[:i], at
			block, at = block[i+1:], at+int64(i)+1
			if !fn(off, line) {
				return at, nil
			}
		}
		if len(block) == len(buf) {
			off := at
			at += int64(len(block))
			if !fn(off, block) {
				return at, nil
			}
			continue
		}
		if int64(m) < n || at+int64(len(block)) >= end {
			break
		}
	}
	return at, nil
}
