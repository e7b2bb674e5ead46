package home

import (
	"io/fs"
	"syscall"
)

// Owner is the user id that a file belongs to; -1 where the system does not
// tell.
func Owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
