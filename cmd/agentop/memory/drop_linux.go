package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropProgram lets go of the program's own code and constants, which the
// system reads in again as they are used.
func dropProgram() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var from, to uintptr
	name := []byte(" " + self)
	// What is allocated here stays: free memory was given back just before.
	lines := bufio.NewScanner(maps)
	lines.Buffer(make([]byte, 8192), 0)
	for lines.Scan() {
		line := lines.Bytes()
		if bytes.HasSuffix(line, name) {
			var mode string
			if n, _ := fmt.Sscanf(string(line), "%x-%x %s", &from, &to, &mode); n != 3 || mode != "r-xp" && mode != "r--p" {
				to = 0
			}
		}
		// Where nothing was ever written, dropping a page loses nothing.
		if kb, ok := bytes.CutPrefix(line, []byte("Anonymous:")); ok && to > 0 {
			if string(bytes.TrimSpace(kb)) == "0 kB" {
				// It is advice: that it is not taken does no harm.
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
			}
			to = 0
		}
	}
}
