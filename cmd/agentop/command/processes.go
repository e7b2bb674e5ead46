package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentop/cmd/agentop/home"
)

// process is a running process of this user.
type process struct {
	args    []string
	started time.Time // to the second; zero where that is not known
}

// runningSince gives when each running process of an agent that belongs to this
// user was started; false where the system does not tell.
func runningSince(agent string) ([]time.Time, bool) {
	program := programs[agent]
	if program == "" {
		return nil, false
	}
	all, ok := processes()
	var started []time.Time
	for _, p := range all {
		if runsProgram(p.args, program) {
			started = append(started, p.started)
		}
	}
	return started, ok
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

// processes are this user's processes.
func processes() ([]process, bool) {
	if booted, ok := bootTime(); ok {
		return procProcesses(booted), true
	}
	out, err := exec.Command("ps", "-axww", "-o", "uid=,lstart=,args=").Output()
	if err != nil {
		return nil, false
	}
	var list []process
	for line := range bytes.Lines(out) {
		if p, ok := parsePs(string(line), os.Getuid()); ok {
			list = append(list, p)
		}
	}
	return list, true
}

// lstart is how ps writes when a process was started, in local time.
const lstart = "Mon Jan 2 15:04:05 2006"

// parsePs reads one line of ps: the owner, five words of time, the command.
func parsePs(line string, uid int) (process, bool) {
	fields := strings.Fields(line)
	if len(fields) < 7 || fields[0] != strconv.Itoa(uid) {
		return process{}, false
	}
	started, _ := time.ParseInLocation(lstart, strings.Join(fields[1:6], " "), time.Local) // zero: in another language
	return process{fields[6:], started}, true
}

// userHertz is the unit of times in /proc, the same on all of Linux's systems.
const userHertz = 100

// bootTime is when this system was started, where /proc tells.
func bootTime() (time.Time, bool) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, false
	}
	for line := range strings.Lines(string(data)) {
		if text, found := strings.CutPrefix(line, "btime "); found {
			seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return time.Unix(seconds, 0), err == nil
		}
	}
	return time.Time{}, false
}

func procProcesses(booted time.Time) []process {
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	var list []process
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || home.Owner(info) != os.Getuid() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(name, "cmdline"))
		if err != nil || len(data) == 0 {
			continue // it has ended
		}
		p := process{args: strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")}
		if stat, err := os.ReadFile(filepath.Join(name, "stat")); err == nil {
			p.started = startOf(string(stat), booted)
		}
		list = append(list, p)
	}
	return list
}

// startOf reads when a process was started from its stat in /proc: the 22nd
// field, the second being a name in brackets that may hold anything.
func startOf(stat string, booted time.Time) time.Time {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return time.Time{}
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return booted.Add(time.Duration(ticks) * time.Second / userHertz).Truncate(time.Second)
}

// olderThan counts an agent's running processes that were started before a
// moment; 0 where that is not known.
func (a *App) olderThan(agent string, moment time.Time) int {
	if a.Processes == nil || moment.IsZero() {
		return 0
	}
	started, _ := a.Processes(agent)
	n := 0
	for _, t := range started {
		if !t.IsZero() && t.Before(moment) {
			n++
		}
	}
	return n
}

// stillElsewhere says which running sessions of an enabled agent do not use
// agentop, since they read their settings at their start; "" for none.
func (a *App) stillElsewhere(agent string, enabled time.Time) string {
	n := a.olderThan(agent, enabled)
	switch {
	case n == 0 || agent == "claude-code": // that one looks every few seconds
		return ""
	case agent == "codex":
		return plural(n, "running session") + " began before it was enabled: threads that were open go on as before until /new or resume"
	}
	return plural(n, "running session") + " began before it was enabled, and " + map[bool]string{true: "uses", false: "use"}[n == 1] + " agentop only when restarted"
}
