//go:build linux

package chaos

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// clockFile is where the proxy of the clock's fault finds how far its wall
// clock is off, in seconds.
const clockFile = "AGENTOP_CHAOS_CLOCK"

// skewedBinary is agentop with a time package whose wall clock can be moved
// while it runs, as a person or a sleeping machine does; no other program's
// clock is touched. It takes a minute to build.
var skewedBinary = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	text, err := os.ReadFile(std)
	if err != nil {
		return "", err
	}
	const now = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	moved := strings.Replace(string(text), now, "sec, nsec, mono := runtimeNow()\n\tsec += Skew\n\tif mono == 0 {", 1) + "\n// Skew moves the wall clock.\nvar Skew int64\n"
	here, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	files := map[string]string{
		std: filepath.Join(scene, "time.go"), filepath.Join(here, "skew.go"): filepath.Join(scene, "skew.go"),
	}
	follow := `package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

func init() {
	path := os.Getenv("` + clockFile + `")
	go func() {
		for ; ; time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(path)
			time.Skew, _ = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		}
	}()
}
`
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		return "", err
	}
	for path, text := range map[string]string{files[std]: moved, filepath.Join(scene, "skew.go"): follow, filepath.Join(scene, "overlay.json"): string(overlay)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	to := filepath.Join(scene, "agentop-skewed")
	return to, build(to, "-overlay", filepath.Join(scene, "overlay.json"))
})

// jumps are where the clock goes, in seconds, one after the other.
var jumps = []int64{3600, -3600, 40 * 24 * 3600, -40 * 24 * 3600, 400 * 24 * 3600, -10 * 365 * 24 * 3600, 1, -1}

func (s *stage) jump() {
	s.setClock(jumps[s.jumped%len(jumps)])
	s.jumped++
}

func (s *stage) jumpBack() { s.setClock(0) }

func (s *stage) setClock(seconds int64) {
	path := filepath.Join(scene, "clock")
	if err := os.WriteFile(path+".new", []byte(strconv.FormatInt(seconds, 10)), 0o644); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}
