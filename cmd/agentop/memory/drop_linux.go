package memory

import (
	"bufio"
	"fmt"
	"os"
	"strings"

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
	ours := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		var (
			begin, end uintptr
			mode       string
		)
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &begin, &end, &mode); n == 3 {
			from, to = begin, end
			ours = (mode == "r-xp" || mode == "r--p") && strings.HasSuffix(line, " "+self)
		}
		// Where nothing was ever written, dropping a page loses nothing.
		if kb, ok := strings.CutPrefix(line, "Anonymous:"); ok && ours && strings.TrimSpace(kb) == "0 kB" {
			// It is advice: that it is not taken does no harm.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}
