package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
)

const (
	maxLinks  = 16              // symbolic links followed from the name to the file
	maxFile   = 16 << 20        // bytes of a settings file
	maxTries  = 10              // how often an edit starts over when the file keeps changing
	lockLimit = 5 * time.Second // how long one command waits for another
	lockRetry = 20 * time.Millisecond
	dirMode   = fs.FileMode(0o700)
	fileMode  = fs.FileMode(0o600)
)

// reached is called at each step whose interruption leaves something on disk.
// Tests end the process there.
var reached = func(step string) {}

// content is one settings file as it was read.
type content struct {
	target string // the file that the name leads to
	data   []byte
	exists bool
	mode   fs.FileMode
	uid    int
	gid    int
}

// readFile reads a settings file through its symbolic links. A file that is
// not there is empty.
func readFile(name string) (content, error) {
	target, err := resolve(name)
	if err != nil {
		return content{}, err
	}
	c := content{target: target, mode: fileMode, uid: -1, gid: -1}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return c, fmt.Errorf("look at %q: %w", name, err)
	case !info.Mode().IsRegular():
		return c, fmt.Errorf("%q is not a file", target)
	case info.Size() > maxFile:
		return c, fmt.Errorf("%q has %d bytes, more than %d: that is no settings file", name, info.Size(), maxFile)
	}
	c.exists, c.mode = true, info.Mode().Perm()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		c.uid, c.gid = int(st.Uid), int(st.Gid)
	}
	if c.data, err = os.ReadFile(target); err != nil {
		return c, fmt.Errorf("read %q: %w", name, err)
	}
	if !utf8.Valid(c.data) {
		return c, &SyntaxError{File: name, Reason: "the file is not UTF-8 text"}
	}
	return c, nil
}

// resolve follows symbolic links to the file that a rename must replace. The
// last of them may lead to a file that is not there yet.
func resolve(name string) (string, error) {
	at, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		to, err := os.Readlink(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL): // not there, or no link
			return at, nil
		case err != nil:
			return "", fmt.Errorf("follow %q: %w", name, err)
		case filepath.IsAbs(to):
			at = to
		default:
			// A link in a folder that is one itself counts from where it stands.
			folder, err := filepath.EvalSymlinks(filepath.Dir(at))
			if err != nil {
				return "", fmt.Errorf("follow %q: %w", name, err)
			}
			at = filepath.Join(folder, to)
		}
	}
	return "", fmt.Errorf("%q: more than %d symbolic links", name, maxLinks)
}

// replace writes data over the file that before was read from, if it still
// holds that; else it gives ErrChanging and writes nothing. Mode and owner
// stay.
func replace(before content, data []byte) error {
	temp, err := writeTemp(filepath.Dir(before.target), tempPattern(before.target), data, before.mode)
	if err != nil {
		return fmt.Errorf("write beside %q: %w", before.target, err)
	}
	defer os.Remove(temp) // gone after the rename
	if before.uid >= 0 && (before.uid != os.Geteuid() || before.gid != os.Getegid()) {
		if err := os.Lchown(temp, before.uid, before.gid); err != nil && before.uid != os.Geteuid() {
			return fmt.Errorf("keep the owner of %q: %w", before.target, err)
		}
	}
	reached("temporary file")
	if err := unchanged(before); err != nil {
		return err
	}
	if err := os.Rename(temp, before.target); err != nil {
		return fmt.Errorf("replace %q: %w", before.target, err)
	}
	reached("rename")
	return syncDir(filepath.Dir(before.target))
}

// unchanged gives ErrChanging if the file is not what was read.
func unchanged(before content) error {
	again, err := readFile(before.target)
	if err != nil {
		return err
	}
	if again.exists != before.exists || !bytes.Equal(again.data, before.data) {
		return ErrChanging
	}
	return nil
}

// remove takes a file away that agentop made, if it still holds what was read.
func remove(before content) error {
	if err := unchanged(before); err != nil {
		return err
	}
	if err := os.Remove(before.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %q: %w", before.target, err)
	}
	reached("remove")
	return syncDir(filepath.Dir(before.target))
}

// tempPattern names the temporary files beside a target.
func tempPattern(target string) string { return "." + filepath.Base(target) + ".agentop-*.tmp" }

// sweep removes what a crash left beside a target. The caller has the lock.
func sweep(target string) {
	left, _ := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(target)), escapeGlob("."+filepath.Base(target)+".agentop-")+"*.tmp"))
	for _, name := range left {
		_ = os.Remove(name) // at worst it stays
	}
}

func escapeGlob(name string) string {
	var b []byte
	for i := range len(name) {
		if c := name[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, name[i])
	}
	return string(b)
}

// writeTemp makes a synced file, private until it is whole.
func writeTemp(dir, pattern string, data []byte, mode fs.FileMode) (name string, err error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return "", err
	}
	if mode != fileMode {
		if err = f.Chmod(mode); err != nil {
			return "", err
		}
	}
	if err = f.Sync(); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// savePrivate replaces one of our own files, 0600, durably.
func savePrivate(name string, data []byte) error {
	temp, err := writeTemp(filepath.Dir(name), "."+filepath.Base(name)+".tmp-*", data, fileMode)
	if err != nil {
		return fmt.Errorf("save %q: %w", name, err)
	}
	if err := os.Rename(temp, name); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("save %q: %w", name, err)
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems have no such thing
		return fmt.Errorf("sync folder %q: %w", dir, err)
	}
	return nil
}

// makeDirs makes the missing folders above a file and gives their names, the
// uppermost first.
func makeDirs(dir string) ([]string, error) {
	var made []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append([]string{at}, made...)
	}
	if len(made) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("make the folder of the settings: %w", err)
	}
	return made, nil
}

// lock orders the commands that work on one agent's record.
func (s *Setup) lock(agent string) (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, dirMode); err != nil {
		return nil, fmt.Errorf("make the folder of the records: %w", err)
	}
	l := flock.New(filepath.Join(s.Dir, agent+".lock"), flock.SetPermissions(fileMode))
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	got, err := l.TryLockContext(ctx, lockRetry)
	if errors.Is(err, context.DeadlineExceeded) || err == nil && !got {
		return nil, fmt.Errorf("%s: %w", agent, ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the record of %s: %w", agent, err)
	}
	return func() { _ = l.Unlock() }, nil // the end of the process would free it too
}

// hashOf names the content of a file; "" for one that is not there.
func hashOf(c content) string {
	if !c.exists {
		return ""
	}
	return hashBytes(c.data)
}

func hashBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
