package home

import (
	"io/fs"
	"syscall"
)

// owner is the user id that a file belongs to, -1 when the system does not tell.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
