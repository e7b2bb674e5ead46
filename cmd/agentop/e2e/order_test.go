package e2e

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"agentop/cmd/testkit"
)

// TestPinIsOnDiskBeforeFirstByte watches the real binary's system calls: the
// pin's file is synced, renamed and its directory synced before the first byte
// of the opening is written to the server.
func TestPinIsOnDiskBeforeFirstByte(t *testing.T) {
	testkit.Need(t, "strace")
	s := newStage(t)
	s.kill()
	trace := filepath.Join(t.TempDir(), "trace")
	s.startUnder("strace", "-f", "-yy", "-s", "200", "-e", "trace=rename,renameat,renameat2,fsync,fdatasync,write,writev,sendto,sendmsg", "-o", trace)
	if !s.turn("traced", user("hello")) {
		t.Fatal("no answer")
	}
	if err := syscall.Kill(-s.proxy.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.proxy.Wait()
	s.proxy = nil

	u, err := url.Parse(s.servers["a"].URL())
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct{ name, pattern string }{
		{"file synced", `(fsync|fdatasync)\(\d+<` + regexp.QuoteMeta(s.home) + `/[^>]*pins[^>]*>\) += 0`},
		{"renamed", `rename\w*\(.*pins\.json"?.* = 0`},
		{"directory synced", `(fsync|fdatasync)\(\d+<` + regexp.QuoteMeta(s.home) + `>\) += 0`},
		{"first byte to the server", `(write|writev|sendto|sendmsg)\(\d+<TCP:\[[^\]]*->` + regexp.QuoteMeta(u.Host) + `\]>.*POST /v1/messages`},
	}
	at := 0
	var seen []string
	for _, line := range joined(t, trace) {
		if at == len(steps) {
			break
		}
		for i, step := range steps {
			if regexp.MustCompile(step.pattern).MatchString(line) {
				seen = append(seen, step.name)
				if i == at {
					at++
				} else if i == len(steps)-1 {
					t.Fatalf("the first byte left after %v only", seen)
				}
			}
		}
	}
	if at != len(steps) {
		t.Fatalf("the trace shows %v, want all of %v", seen, steps)
	}
}

// joined reads an strace log with each call's unfinished and resumed halves
// put together, at the place where the call ended.
func joined(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begun := map[string]string{}
	var lines []string
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	resumed := regexp.MustCompile(`^<\.\.\. \w+ resumed>`)
	for scanner.Scan() {
		pid, call, _ := strings.Cut(scanner.Text(), " ")
		call = strings.TrimSpace(call)
		switch {
		case strings.HasSuffix(call, "<unfinished ...>"):
			begun[pid] = strings.TrimSpace(strings.TrimSuffix(call, "<unfinished ...>"))
		case resumed.MatchString(call):
			lines = append(lines, begun[pid]+resumed.ReplaceAllString(call, ""))
			delete(begun, pid)
		default:
			lines = append(lines, call)
		}
	}
	return lines
}

// startUnder runs the proxy under another program, and waits until it serves.
func (s *stage) startUnder(program string, args ...string) {
	s.t.Helper()
	s.run(exec.Command(program, append(args, binary, "proxy")...))
}
