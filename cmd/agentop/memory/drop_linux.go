package memory

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
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
	// All are found before any is dropped: to look for them needs code, too.
	for _, p := range unwritten(bufio.NewScanner(maps), self) {
		// It is advice: that it is not taken does no harm.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_DONTNEED)
	}
}

// part is a part of this process's memory.
type part struct{ from, to uintptr }

// unwritten are the parts of a file that are mapped to be read and in which
// nothing was ever written: dropping such a page loses nothing.
func unwritten(smaps *bufio.Scanner, file string) (parts []part) {
	smaps.Buffer(make([]byte, 8192), 0)
	name := []byte(" " + file)
	var now part // the one that the lines are about; 0 is none of interest
	for smaps.Scan() {
		line := smaps.Bytes()
		if bytes.HasSuffix(line, name) {
			now = parsePart(string(line))
		}
		if kb, ok := bytes.CutPrefix(line, []byte("Anonymous:")); ok && now.to > 0 {
			if string(bytes.TrimSpace(kb)) == "0 kB" {
				parts = append(parts, now)
			}
			now = part{}
		}
	}
	return parts
}

// parsePart reads the first line about a part, "from-to mode ...".
func parsePart(line string) part {
	where, line, _ := strings.Cut(line, " ")
	mode, _, _ := strings.Cut(line, " ")
	from, to, _ := strings.Cut(where, "-")
	if mode != "r-xp" && mode != "r--p" {
		return part{}
	}
	a, err := strconv.ParseUint(from, 16, 64)
	b, err2 := strconv.ParseUint(to, 16, 64)
	if err != nil || err2 != nil {
		return part{}
	}
	return part{uintptr(a), uintptr(b)}
}
