package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentop/cmd/agentop/home"
)

// Bounds of what is worth a word.
const (
	diskWrong   = 64 << 20 // bytes free
	diskNote    = 1 << 30
	clockSlack  = 5 * time.Minute // how far a file's time may lie ahead
	leftoverAge = time.Hour       // of a temporary file that a crash left
)

// checkHome looks at the home directory: there, this user's, closed to others.
func (d *Doctor) checkHome() {
	info, err := os.Stat(d.Home.String())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.note("home", d.Home.String()+" is not there yet", "agentop setup")
		return
	case err != nil:
		d.wrong("home", err.Error(), "look at the path "+d.Home.String())
		return
	case !info.IsDir():
		d.wrong("home", d.Home.String()+" is not a folder", "move it away")
		return
	case unix.Access(d.Home.String(), unix.W_OK|unix.X_OK) != nil:
		d.wrong("home", "this account cannot write in "+d.Home.String(), "sudo chown -R $(id -u) "+d.Home.String())
		return
	}
	wide, err := d.Home.Check()
	if err != nil {
		d.wrong("permissions", err.Error(), "look at the folder "+d.Home.String())
		return
	}
	for _, w := range wide {
		d.repairable(Finding{Check: "permissions", Level: Wrong,
			Text: fmt.Sprintf("%s has mode %04o, so that others can reach it", w.Path, w.Mode.Perm()),
			Fix:  fmt.Sprintf("chmod %o %s", w.Want, w.Path)},
			func() error { return os.Chmod(w.Path, w.Want) })
	}
	if len(wide) == 0 {
		d.ok("permissions", d.Home.String()+" is closed to others")
	}
}

// checkDisk looks at the free space where pins are saved.
func (d *Doctor) checkDisk() {
	var st unix.Statfs_t
	at := d.Home.String()
	for unix.Statfs(at, &st) != nil {
		if at == filepath.Dir(at) {
			return
		}
		at = filepath.Dir(at)
	}
	free := uint64(st.Bavail) * uint64(st.Bsize) //nolint:unconvert // of other types on macOS
	text := fmt.Sprintf("%d MB are free at %s", free>>20, at)
	switch {
	case free < diskWrong:
		d.wrong("disk", text+": pins and the request log cannot be saved", "free some space: du -xsh ~/* | sort -h")
	case free < diskNote:
		d.note("disk", text, "du -xsh ~/* | sort -h")
	default:
		d.ok("disk", text)
	}
}

// checkClock compares the clock with the files that agentop has written: pins
// and log lines carry times.
func (d *Doctor) checkClock() {
	now := d.Now()
	latest, name := time.Time{}, ""
	for _, path := range []string{d.Home.Pins(), d.Home.ProxyLog(), d.Home.Config()} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(latest) {
			latest, name = info.ModTime(), path
		}
	}
	if ahead := latest.Sub(now); name != "" && ahead > clockSlack {
		d.wrong("clock", fmt.Sprintf("the clock says %s, but %s was written %s after that", now.Format(time.DateTime), name, ahead.Round(time.Second)), "timedatectl set-ntp true")
		return
	}
	d.ok("clock", "no file of agentop's is newer than now")
}

// checkLeftovers looks for temporary files that a crash left in the home.
func (d *Doctor) checkLeftovers() {
	_ = filepath.WalkDir(d.Home.String(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), ".") || !strings.Contains(e.Name(), "tmp") {
			return nil // what cannot be looked at is told by checkHome
		}
		info, err := e.Info()
		if err != nil || d.Now().Sub(info.ModTime()) < leftoverAge {
			return nil
		}
		d.repairable(Finding{Check: "leftovers", Level: Note, Text: path + " was left by a crash", Fix: "rm " + path},
			func() error { return os.Remove(path) })
		return nil
	})
}

// checkLocks looks for locks that somebody holds without serving.
func (d *Doctor) checkLocks() {
	names, _ := filepath.Glob(filepath.Join(d.Home.AgentsDir(), "*.lock"))
	names = append(names, d.Home.Config()+".lock", d.Home.Keys()+".lock")
	if d.holder.PID == 0 && !d.up {
		names = append(names, d.Home.Pins()+".lock")
	}
	held := 0
	for _, name := range names {
		if !heldFor(name, lockPatience) {
			continue
		}
		held++
		d.wrong("locks", name+" is held by another process", "fuser -v "+name)
	}
	if held == 0 {
		d.ok("locks", "no lock is stale")
	}
}

// lockPatience is longer than any command of agentop holds a lock.
const lockPatience = time.Second

// heldFor says whether a lock stays taken for a while.
func heldFor(name string, patience time.Duration) bool {
	f, err := os.OpenFile(name, os.O_RDWR, home.FileMode)
	if err != nil {
		return false
	}
	defer f.Close() // gives the lock back
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return false
		}
		if time.Now().After(end) {
			return true
		}
	}
}
