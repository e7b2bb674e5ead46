package filestore

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// syncFD makes a file or directory durable. fsync on macOS only hands the
// bytes to the disk, which may keep them in its cache; F_FULLFSYNC has it
// write them down. Volumes that know no such thing (SMB, FAT) get the fsync.
func syncFD(fd int) error {
	err := ignoreEINTR(func() error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
		return err
	})
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
		err = ignoreEINTR(func() error { return unix.Fsync(fd) })
	}
	return err
}

// sinceBoot counts the time that the machine sleeps too, as CLOCK_MONOTONIC
// does on macOS.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func beginWriting(int, int64, int64) {}

func alone(int) bool { return false }

func populate([]byte) {}
