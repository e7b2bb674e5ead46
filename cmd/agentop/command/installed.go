package command

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// programs are the agents' own programs.
var programs = map[string]string{"claude-code": "claude", "codex": "codex", "opencode": "opencode"}

// programOf finds an agent's program on PATH; "" if it is not installed.
func (a *App) programOf(agent string) string {
	name := programs[agent]
	if name == "" {
		return ""
	}
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// versionLimit bounds how long an agent may take to say its version.
const versionLimit = 10 * time.Second

var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+[\w.+-]*`)

// versionOf asks an installed agent for its version; "" if it does not say.
func (a *App) versionOf(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return versionNumber.FindString(string(out))
}

// countProcesses counts the running processes of an agent that belong to this
// user; false where the system does not tell.
func countProcesses(agent string) (int, bool) {
	program := programs[agent]
	if program == "" {
		return 0, false
	}
	list, ok := processes()
	n := 0
	for _, args := range list {
		if runsProgram(args, program) {
			n++
		}
	}
	return n, ok
}

// runsProgram says whether a command line is an agent's: its own program, or
// an interpreter that runs it. A helper that it starts is not counted.
func runsProgram(args []string, program string) bool {
	if len(args) == 0 {
		return false
	}
	if slices.Contains(args[1:], "app-server") {
		return false // the daemon of an agent is no session
	}
	if filepath.Base(args[0]) == program {
		return true
	}
	interpreters := []string{"node", "bun"}
	return len(args) > 1 && slices.Contains(interpreters, filepath.Base(args[0])) && filepath.Base(args[1]) == program
}

// processes are the command lines of this user's processes.
func processes() ([][]string, bool) {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err == nil && len(names) > 0 {
		var list [][]string
		for _, name := range names {
			info, err := os.Stat(filepath.Dir(name))
			if err != nil || ownerOf(info) != os.Getuid() {
				continue
			}
			if data, err := os.ReadFile(name); err == nil {
				list = append(list, strings.Split(strings.TrimRight(string(data), "\x00"), "\x00"))
			}
		}
		return list, true
	}
	out, err := exec.Command("ps", "-axww", "-o", "uid=,args=").Output()
	if err != nil {
		return nil, false
	}
	var list [][]string
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) > 1 && fields[0] == strconv.Itoa(os.Getuid()) {
			list = append(list, fields[1:])
		}
	}
	return list, true
}
