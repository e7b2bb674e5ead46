package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// fileStore is a memory with a file. Callers read and write memory; one
// goroutine, run in saver.go, writes the file, for all who wait at once.
type fileStore struct {
	*memory
	disk  *disk
	locks *locker

	wake chan struct{} // tells run to look again; holds one token
	quit chan struct{} // closed by Close
	done chan struct{} // closed when run has ended
	last error         // of the final save; read after done

	armed atomic.Bool // a plain write waits for its save, and run knows

	rereadMu sync.Mutex // one reading of the file outside the lock at a time

	stateMu  sync.Mutex // guards what follows; may be taken under mu, not the other way round
	waiting  []*waiter
	health   health
	suspect  bool // a reader could not use the file: the next cycle sees to it
	cleaned  bool // temporary files of killed saves were removed
	syncedAt time.Time
}

// health is what State tells of the file.
type health struct {
	location string
	err      error
	since    time.Time
	readOnly bool
	saves    uint64
	lastSave time.Time
	saving   time.Time
	aside    []string
}

// startFileStore reads the file and starts the saving.
func startFileStore(ctx context.Context, name string, o *options) (Store, error) {
	s := &fileStore{
		memory: newMemory(o),
		disk:   &disk{fs: o.fs, name: name, spareFrom: o.spare},
		wake:   make(chan struct{}, 1),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	s.locks = newLocker(o.fs, o.lockWait, o.log.Warn)
	s.changed, s.reread = s.afterWrite, s.rereadFile
	s.health.location = name
	loaded := make(chan error, 1)
	go func() { loaded <- s.load() }()
	select {
	case err := <-loaded:
		return s.begin(err)
	case <-ctx.Done():
	}
	err := fmt.Errorf("open %q: %w", name, ctx.Err())
	if !o.fallback {
		go func() {
			<-loaded //nolint:errcheck // its error has nobody left to be told to
			s.disk.close()
		}()
		return nil, err
	}
	s.failed(err)
	go func() {
		if err := <-loaded; err != nil {
			s.failed(err)
		}
		s.run()
	}()
	return s, nil
}

// begin starts the saving after load has ended with err.
func (s *fileStore) begin(err error) (Store, error) {
	if err != nil {
		if !s.opt.fallback && !errors.Is(err, ErrNewerFormat) {
			s.disk.close()
			return nil, err
		}
		s.failed(err)
	}
	go s.run()
	return s, nil
}

// load makes the folder and reads the file for the first time.
func (s *fileStore) load() error {
	target, err := s.disk.target()
	if err != nil {
		return err
	}
	s.setLocation(target)
	if err := s.opt.fs.MkdirAll(filepath.Dir(target)); err != nil {
		return fmt.Errorf("open %q: %w", target, err)
	}
	err = s.catchUp(false)
	if !errors.Is(err, ErrCorrupt) {
		return err
	}
	// Setting it aside needs the lock; where that is not to be had, the store
	// starts with what is whole and sees to the file later.
	lock, lockErr := s.locks.take(target + lockSuffix)
	if lockErr != nil {
		s.opt.log.Warn("damaged file, not set aside yet", "file", target, "cause", err, "err", lockErr)
		s.mergeWhole()
		s.noteSuspect()
		return nil
	}
	defer func() { _ = lock.Unlock() }() // its end ends the lock
	return s.catchUp(true)
}

// mergeWhole takes in what is whole in a damaged file, which stays.
func (s *fileStore) mergeWhole() {
	c, err := s.disk.read(s.opt.limits.FileLen)
	if c.file == nil {
		return
	}
	c.file.Close()
	if err == nil {
		s.mu.Lock()
		s.t.merge(salvage(c.bytes), s.now(), false)
		s.mu.Unlock()
	}
}

const lockSuffix = ".lock"

// catchUp takes in what the file has, if it is another than before. Without
// the file lock, a damaged file is an ErrCorrupt.
func (s *fileStore) catchUp(locked bool) error {
	changed, err := s.disk.changed()
	if err != nil || !changed && !s.isSuspect() {
		return err
	}
	if err := s.disk.refused(); err != nil {
		return err
	}
	c, err := s.disk.read(s.opt.limits.FileLen)
	if errors.Is(err, fs.ErrNotExist) {
		s.fileIsGone()
		return nil
	}
	var img *image
	if err == nil {
		img, err = decode(c.bytes, s.known())
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrCorrupt) && locked:
		img, err = s.setAside(c, err)
	case errors.Is(err, ErrNewerFormat):
		err = fmt.Errorf("open %q: %w", s.disk.name, err)
		s.disk.refuse(c.info.ID, err)
	}
	if err != nil {
		if c.file != nil {
			c.file.Close()
		}
		return err
	}
	s.narrow(c.info)
	s.takeIn(c, img, locked)
	return nil
}

// takeIn merges a version of the file into memory.
func (s *fileStore) takeIn(c contents, img *image, locked bool) {
	if !locked {
		// The name may not be durable yet. What is answered from here on
		// must not be forgotten by a crash.
		if err := s.opt.fs.SyncDir(filepath.Dir(s.location())); err != nil {
			s.opt.log.Warn("sync of the folder", "err", err)
		}
	}
	s.mu.Lock()
	now := s.now()
	s.compareClocks(now)
	s.stateMu.Lock()
	long := !s.syncedAt.IsZero() && now.Sub(s.syncedAt) > s.opt.tombs
	s.syncedAt = now
	s.stateMu.Unlock()
	was := s.disk.header()
	follows := img.header.store == was.store && img.header.save > was.save
	s.t.merge(img.records, now, long && follows)
	s.keepLimits(now)
	s.mu.Unlock()
	s.disk.took(&version{file: c.file, id: c.info.ID}, img.header, nil)
	if locked {
		s.clearSuspect()
	}
	s.afterWrite()
}

// known is what decode is told; nil at the first reading.
func (s *fileStore) known() lookup {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.t.recs) == 0 {
		return nil
	}
	return s.lookup
}

// lookup lends decode the records that are in memory.
func (s *fileStore) lookup(key []byte) (*record, string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if i, ok := s.t.index[string(key)]; ok {
		return s.t.recs[i], s.t.recs[i].line
	}
	return nil, ""
}

// fileIsGone has everything written again after somebody removed the file.
func (s *fileStore) fileIsGone() {
	s.mu.Lock()
	s.t.merge(nil, s.now(), false)
	s.mu.Unlock()
	s.disk.took(nil, header{}, nil)
	s.clearSuspect()
	s.afterWrite()
}

// setAside keeps a damaged file under another name and returns what is whole
// in it. Needs the file lock.
func (s *fileStore) setAside(c contents, cause error) (*image, error) {
	target := s.location()
	name, err := s.disk.setAside(target, c.info.ID, s.now())
	if err != nil {
		return nil, fmt.Errorf("set %q aside: %w", target, err)
	}
	whole := salvage(c.bytes)
	s.stateMu.Lock()
	s.health.aside = append(s.health.aside, name)
	s.suspect = false
	s.stateMu.Unlock()
	s.opt.log.Warn("damaged file set aside", "file", target, "as", name, "cause", cause, "whole_entries", len(whole))
	s.mu.Lock()
	s.t.merge(whole, s.now(), false)
	for _, r := range s.t.recs {
		if !s.t.dirty(r) {
			s.t.rewrite(r)
		}
	}
	// Even if nothing was whole, a new file takes the damaged one's place.
	s.t.gen++
	s.mu.Unlock()
	return &image{}, nil
}

// narrow takes the file from everybody but its owner.
func (s *fileStore) narrow(info Info) {
	if info.Mode.Perm()&0o077 == 0 {
		return
	}
	target := s.location()
	if err := s.opt.fs.Chmod(target, 0o600); err != nil {
		s.opt.log.Warn("others can read the file, and that cannot be changed", "file", target, "mode", info.Mode, "err", err)
		return
	}
	s.opt.log.Warn("others could read the file; now only its owner can", "file", target, "mode", info.Mode)
}

// Refresh implements Store.
func (s *fileStore) Refresh() {
	if !s.isClosed() {
		s.rereadFile()
	}
}

// rereadFile takes in the file if another process has changed it. It is
// called on a miss, and costs one system call if nothing changed. While a
// save has been hanging for long the disk is not asked.
func (s *fileStore) rereadFile() {
	if s.hanging() {
		return
	}
	if changed, err := s.disk.changed(); err != nil || !changed {
		return
	}
	s.rereadMu.Lock()
	defer s.rereadMu.Unlock()
	if err := s.catchUp(false); err != nil {
		s.noteSuspect()
	}
}

// hangs is how long a save may take before misses are answered without a
// look at the file.
const hangs = 5 * time.Second

func (s *fileStore) hanging() bool {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	return !s.health.saving.IsZero() && s.opt.wall().Sub(s.health.saving) > hangs
}

func (s *fileStore) noteSuspect() {
	s.stateMu.Lock()
	s.suspect = true
	s.stateMu.Unlock()
	s.poke()
}

func (s *fileStore) clearSuspect() {
	s.stateMu.Lock()
	s.suspect = false
	s.stateMu.Unlock()
}

func (s *fileStore) isSuspect() bool {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	return s.suspect
}

func (s *fileStore) setLocation(target string) {
	s.stateMu.Lock()
	s.health.location = target
	s.stateMu.Unlock()
}

func (s *fileStore) location() string {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	return s.health.location
}

func (s *fileStore) State() State {
	s.mu.RLock()
	st := State{Keys: s.lenLocked(), Unsaved: s.t.unsaved, Evicted: s.t.evicted}
	s.mu.RUnlock()
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	h := s.health
	st.Location, st.Err, st.ErrSince, st.ReadOnly = h.location, h.err, h.since, h.readOnly
	st.Saves, st.LastSave, st.Saving = h.saves, h.lastSave, h.saving
	st.SetAside = append([]string(nil), h.aside...)
	return st
}
