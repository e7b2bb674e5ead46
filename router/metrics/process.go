package metrics

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// process tells of this process what the system knows, under the names that
// Prometheus's own clients use. What a system does not tell is left out.
func process(started time.Time) []family {
	var list []family
	add := func(name, help, kind string, value float64) {
		list = append(list, family{name, help, kind, name + " " + number(value) + "\n"})
	}
	add("go_goroutines", "Goroutines.", "", float64(runtime.NumGoroutine()))
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		add("process_cpu_seconds_total", "Processor time in seconds.", "counter", spent.Seconds())
		peak := float64(usage.Maxrss)
		if runtime.GOOS == "linux" {
			peak *= 1024 // elsewhere it is in bytes
		}
		add("process_resident_memory_peak_bytes", "The most memory that was resident.", "", peak)
	}
	if open, err := os.ReadDir("/dev/fd"); err == nil {
		add("process_open_fds", "Open descriptors.", "", float64(len(open)-1)) // one was for this look
	}
	if pages, ok := residentPages(); ok {
		add("process_resident_memory_bytes", "Resident memory.", "", float64(pages*os.Getpagesize()))
	}
	add("process_start_time_seconds", "When the process started, in seconds since 1970.", "", float64(started.UnixMilli())/1000)
	return list
}

// residentPages is the second number in Linux's statm.
func residentPages() (n int, ok bool) {
	data, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	n, err = strconv.Atoi(string(fields[1]))
	return n, err == nil
}
