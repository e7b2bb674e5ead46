package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentop/cmd/agentop/home"
)

// Holder is the supervisor of a home, as it describes itself in the file that
// it holds locked. Whether it lives is told by the lock, never by the number.
type Holder struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Binary  string    `json:"binary"`            // the path that is executed anew at an upgrade
	Trouble string    `json:"trouble,omitempty"` // why no worker is ready
	Cure    string    `json:"cure,omitempty"`
}

// lock is the right to be the only supervisor of a home.
type lock struct {
	file   *os.File // nil where files cannot be locked
	holder Holder
}

// takeLock takes the home's lock or says who has it. ended is what the last
// holder left if it did not end in good order.
func takeLock(h home.Home, me Holder) (l *lock, ended *Holder, err error) {
	f, err := os.OpenFile(h.Lock(), os.O_RDWR|os.O_CREATE, home.FileMode)
	if err != nil {
		return nil, nil, fmt.Errorf("lock the home directory: %w", err)
	}
	// Find holds it for a moment; a supervisor holds it for good.
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for range 20 {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		held := readHolder(f)
		_ = f.Close()
		return nil, nil, &HeldError{held}
	}
	// Any other error: this file system knows no locks. The port itself then
	// keeps a second supervisor out.
	if last := readHolder(f); last.PID != 0 {
		ended = &last
	}
	l = &lock{file: f, holder: me}
	return l, ended, l.write()
}

// adoptLock is takeLock after the supervisor has executed a newer binary: the
// descriptor still holds the lock.
func adoptLock(fd int, me Holder) (*lock, error) {
	syscall.CloseOnExec(fd)
	l := &lock{file: os.NewFile(uintptr(fd), "lock"), holder: me}
	return l, l.write()
}

func readHolder(f *os.File) (h Holder) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<10))
	if err == nil {
		_ = json.Unmarshal(data, &h) // what cannot be read is nobody
	}
	return h
}

func (l *lock) write() error {
	data, err := json.Marshal(l.holder)
	if err != nil {
		return fmt.Errorf("describe this process: %w", err)
	}
	if _, err := l.file.WriteAt(append(data, '\n'), 0); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return l.file.Truncate(int64(len(data) + 1))
}

// tell notes why no worker is ready; empty strings say that one is.
func (l *lock) tell(trouble, cure string) {
	if l.holder.Trouble == trouble && l.holder.Cure == cure {
		return
	}
	l.holder.Trouble, l.holder.Cure = trouble, cure
	_ = l.write() // a full disk must not stop a supervisor
}

// release gives the lock back and says by an empty file that this run ended
// in good order. The file stays: removing it would let two hold one name.
func (l *lock) release() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}

// Find says which supervisor serves the home, if any. It takes no lock for
// longer than a moment and changes nothing.
func Find(h home.Home) (Holder, bool) {
	f, err := os.Open(h.Lock())
	if err != nil {
		return Holder{}, false
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return Holder{}, false
	}
	return readHolder(f), true
}
