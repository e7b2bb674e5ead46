//go:build !unix

package front

import "syscall"

// watches says whether this system tells the end of a connection to who does
// not read it. Without it net/http serves all connections.
const watches = false

func awaitEnd(syscall.RawConn) bool { return false }
func arrived(syscall.RawConn) bool  { return false }
