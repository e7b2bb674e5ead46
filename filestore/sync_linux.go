package filestore

import (
	"time"

	"golang.org/x/sys/unix"
)

// syncFD makes a file or directory durable. fsync on Linux has the disk empty
// its write cache.
func syncFD(fd int) error {
	return ignoreEINTR(func() error { return unix.Fsync(fd) })
}

// beginWriting has the disk begin with a part of a file, without waiting. It
// promises nothing; what goes wrong, the sync that follows tells.
func beginWriting(fd int, from, n int64) {
	_ = unix.SyncFileRange(fd, from, n, unix.SYNC_FILE_RANGE_WRITE)
}

// sinceBoot counts the time that the machine sleeps too.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// alone asks for a lease, which the system gives only to who has the file open
// alone, and gives it back.
func alone(fd int) bool {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// populate has the system find memory for a large new slice in one call and
// not a page at a time, which takes longer than to fill it. Older systems do
// not know the advice.
func populate(b []byte) {
	const page = 4096
	if len(b) >= 1<<16 {
		_ = unix.Madvise(b[:len(b)&^(page-1)], unix.MADV_POPULATE_WRITE)
	}
}
