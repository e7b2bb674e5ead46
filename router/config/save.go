package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// What a crash can leave: save writes a temporary file beside the target,
// syncs it, renames it over the target and syncs the directory. The rename is
// the commit point: before it the old file is whole, after it the new one is.
// At worst a temporary file (.config.yaml.tmp-*, 0600) is left over.

const (
	maxLinks  = 16              // symbolic links followed from the name to the file
	lockLimit = 5 * time.Second // how long Edit waits for another process
	lockRetry = 20 * time.Millisecond
	maxTries  = 10 // how often Edit starts over when the file keeps changing
)

// Edit replaces a private file by what change makes of its bytes (nil for a
// file that is not there), under an advisory lock on path + ".lock". Equal
// bytes leave the file untouched. When somebody without the lock, an editor
// say, writes the file meanwhile, change runs again on the new bytes, so it
// must have no effects. A symbolic link stays one and its target is replaced.
// The file's folder is made, 0700, and the file is 0600 from its first byte.
// A lock that another process keeps for 5 s gives ErrLocked.
func Edit(path string, change func(data []byte) ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	for range maxTries {
		before, err := readFile(path)
		if err != nil {
			return err
		}
		after, err := change(before)
		if err != nil {
			return err
		}
		if bytes.Equal(after, before) && (before != nil || len(after) == 0) {
			return nil
		}
		if err := save(path, before, after); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("edit %q: %w, %d times", path, ErrChanged, maxTries)
}

// save writes data durably if the file still holds what the caller read, nil
// meaning that it was not there; else ErrChanged, and nothing is written. It
// takes no lock (see Edit).
func save(path string, read, data []byte) (err error) {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	folder := filepath.Dir(target)
	temp, err := os.CreateTemp(folder, "."+filepath.Base(target)+".tmp-*") // 0600 whatever the umask
	if err != nil {
		return fmt.Errorf("save %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return fmt.Errorf("save %q: %w", path, err)
	}
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("save %q: %w", path, err)
	}
	if err := temp.Close(); err != nil {
		return fmt.Errorf("save %q: %w", path, err)
	}
	onDisk, err := readFile(target)
	if err != nil {
		return err
	}
	if !bytes.Equal(onDisk, read) || (onDisk == nil) != (read == nil) {
		return fmt.Errorf("save %q: %w", path, ErrChanged)
	}
	if err := os.Rename(temp.Name(), target); err != nil {
		return fmt.Errorf("save %q: %w", path, err)
	}
	return syncFolder(folder)
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems have no such thing
		return fmt.Errorf("sync folder %q: %w", folder, err)
	}
	return nil
}

// readFile gives nil for a file that is not there, and never nil else.
func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}

// Narrow takes the rights of others away from a private file and says whether
// there were any. A file that is not there is no error.
func Narrow(path string) (wide bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return false, err
	}
	return true, os.Chmod(path, info.Mode().Perm()&0o700)
}

// chain lists the names from path to the file that it leads to by symbolic
// links, path first. The last one need not exist.
func chain(path string) ([]string, error) {
	names := []string{path}
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil { // not a link, or nothing there
			return names, nil
		}
		if !filepath.IsAbs(to) {
			// The link is read where it really lies, so that ".." means what
			// it means to the system.
			folder, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return nil, err
			}
			to = filepath.Join(folder, to)
		}
		path = to
		names = append(names, path)
	}
	return nil, fmt.Errorf("%q: too many symbolic links", names[0])
}

// resolve gives the file behind a name that may be a symbolic link.
func resolve(path string) (string, error) {
	names, err := chain(path)
	if err != nil {
		return "", err
	}
	return names[len(names)-1], nil
}

// lock takes the advisory lock beside path. Where the file system has no
// locks it goes on without: save still refuses to overwrite what it has not
// read. The wait is limited from outside too, since on some network file
// systems even a try can hang.
func lock(path string) (unlock func(), err error) {
	type result struct {
		got bool
		err error
	}
	held := flock.New(path+".lock", flock.SetPermissions(0o600))
	done := make(chan result, 1)
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	go func() {
		got, err := held.TryLockContext(ctx, lockRetry)
		done <- result{got, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-time.After(lockLimit + time.Second):
		r.err = context.DeadlineExceeded
	}
	switch {
	case r.got:
		return func() { _ = held.Close() }, nil
	case errors.Is(r.err, context.DeadlineExceeded):
		return nil, fmt.Errorf("lock %q: %w; try again when it is done", path+".lock", ErrLocked)
	case errors.Is(r.err, syscall.ENOLCK), errors.Is(r.err, syscall.ENOTSUP), errors.Is(r.err, syscall.ENOSYS):
		return func() {}, nil
	}
	return nil, fmt.Errorf("lock %q: %w", path+".lock", r.err)
}
