//go:build !linux

package supervise

import "runtime/debug"

// trim gives back what the start needed and waiting does not.
func trim() { debug.FreeOSMemory() }
