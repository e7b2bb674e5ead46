package command

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user id that a file belongs to; -1 where it is not told.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
