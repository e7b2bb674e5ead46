package command

import "golang.org/x/sys/unix"

// The system's names for reading and changing a terminal's state.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
