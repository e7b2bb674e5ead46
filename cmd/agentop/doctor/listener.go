package doctor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// listener names the program that listens on a port, for the end of a
// sentence; "" where the system does not tell.
func listener(port string) string {
	if name := fromProc(port); name != "" {
		return ": " + name
	}
	out, err := exec.Command("lsof", "-nP", "-iTCP:"+port, "-sTCP:LISTEN", "-Fpc").Output()
	if err != nil {
		return ""
	}
	pid, name := "", ""
	for line := range strings.SplitSeq(string(out), "\n") {
		switch {
		case strings.HasPrefix(line, "p") && pid == "":
			pid = line[1:]
		case strings.HasPrefix(line, "c") && name == "":
			name = line[1:]
		}
	}
	if pid == "" {
		return ""
	}
	return fmt.Sprintf(": %s (process %s)", name, pid)
}

// fromProc finds the listener's program through /proc, which shows only what
// belongs to this user.
func fromProc(port string) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listening(table, port, inodes)
	}
	if len(inodes) == 0 {
		return ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil || !inodes[to] {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(dir))
	}
	return ""
}

// listening collects the sockets of a table that listen on a port, as links
// in /proc name them.
func listening(table, port string, inodes map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return
	}
	suffix := fmt.Sprintf(":%04X", number)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		const listen = "0A"
		if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) && fields[3] == listen {
			inodes["socket:["+fields[9]+"]"] = true
		}
	}
}
