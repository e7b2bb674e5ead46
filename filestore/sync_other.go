//go:build unix && !linux && !darwin

package filestore

import (
	"time"

	"golang.org/x/sys/unix"
)

func syncFD(fd int) error {
	return ignoreEINTR(func() error { return unix.Fsync(fd) })
}

var start = time.Now()

// sinceBoot may stop while the machine sleeps: a long sleep then looks like a
// clock put forward, which only lets keys live longer.
func sinceBoot() time.Duration { return time.Since(start) }

func beginWriting(int, int64, int64) {}

func alone(int) bool { return false }

func populate([]byte) {}
