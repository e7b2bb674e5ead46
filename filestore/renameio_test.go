//go:build linux

package filestore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/renameio/v2"

	"agentop/cmd/testkit"
	"agentop/filestore"
)

// Here the store and google/renameio, the usual library for this, go through
// the same crash test: a child of each writes one value after the other, and
// tells when it is told that the value is written; strace notes its system
// calls; these are done again on the file system double, and the power is cut
// after each.

const crashWrites = 5

func init() {
	children["renameio"] = func(args []string) error {
		return writeAndTell(func(n int) error {
			return renameio.WriteFile(args[0], fmt.Appendf(nil, "value %d.\n", n), 0o600)
		})
	}
	children["ours"] = func(args []string) error {
		s, err := filestore.Open(context.Background(), filestore.FileURL(args[0]), quiet)
		if err != nil {
			return err
		}
		return writeAndTell(func(n int) error {
			return s.SetDurable(context.Background(), "k", strconv.Itoa(n), 0)
		})
	}
}

func writeAndTell(write func(n int) error) error {
	for n := 1; n <= crashWrites; n++ {
		fmt.Printf("begin %d\n", n)
		if err := write(n); err != nil {
			return err
		}
		fmt.Printf("done %d\n", n)
	}
	return nil
}

// TestBesideRenameio replays both. Ours must lose nothing; of renameio it is
// noted what it loses, as docs/filestore.md says.
func TestBesideRenameio(t *testing.T) {
	testkit.Need(t, "strace")
	ours := crashReplay(t, "ours", func(left *crashFS, path string) (int, error) {
		s, err := filestore.Open(context.Background(), filestore.FileURL(path), quiet, filestore.WithFS(left))
		if err != nil {
			return 0, err
		}
		defer s.Close()
		val, _, err := s.Get("k")
		if n := len(s.State().SetAside); n > 0 {
			return 0, fmt.Errorf("%d files set aside", n)
		}
		n, _ := strconv.Atoi(val)
		return n, err
	})
	other := crashReplay(t, "renameio", func(left *crashFS, path string) (int, error) {
		ino, ok := left.names[path]
		if !ok {
			return 0, nil
		}
		var n int
		if _, err := fmt.Sscanf(string(left.inodes[ino].data), "value %d.\n", &n); err != nil {
			return 0, fmt.Errorf("the file has %q", left.inodes[ino].data)
		}
		return n, nil
	})
	t.Logf("filestore: %+v", ours)
	t.Logf("renameio:  %+v", other)
	if ours.lost > 0 || ours.broken > 0 {
		t.Errorf("filestore: %+v, want nothing lost or broken", ours)
	}
	if other.lost == 0 {
		t.Errorf("renameio: %+v; it syncs no folder, so the double should have lost something", other)
	}
}

// crashCount is what came of all the cuts.
type crashCount struct {
	calls  int // system calls replayed
	states int // states looked at
	lost   int // of these, with a write missing that was told to be done
	broken int // of these, with a file that is neither old nor new
}

// crashReplay traces a child, and judges what each cut leaves.
func crashReplay(t *testing.T, name string, value func(left *crashFS, path string) (int, error)) (count crashCount) {
	t.Helper()
	path := newPath(t)
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := child(t, []string{"strace", "-f", "-qq", "-y", "-s", "4096", "-o", trace,
		"-e", "trace=openat,write,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,linkat"}, name, path)
	if out, err := cmd.Output(); err != nil {
		testkit.Lacks(t, fmt.Sprintf("strace of %s: %v, %s", name, err, out))
	}
	fs, done, begun := newCrashFS(), 0, 0
	for _, call := range readTrace(t, trace) {
		if n, ok := strings.CutPrefix(call.text, "done "); ok {
			done = atoi(strings.TrimSpace(n))
		} else if n, ok := strings.CutPrefix(call.text, "begin "); ok {
			begun = atoi(strings.TrimSpace(n))
		} else if !replay(fs, call, filepath.Dir(path)) {
			continue
		}
		count.calls++
		fs.afterCut(func(state string, left *crashFS) {
			count.states++
			got, err := value(left, path)
			switch {
			case err != nil || got > begun:
				count.broken++
			case got < done:
				count.lost++
			}
		})
	}
	if done != crashWrites {
		t.Fatalf("%s: %d writes in the trace, want %d", name, done, crashWrites)
	}
	return count
}

// tracedCall is a system call that came through.
type tracedCall struct {
	name  string
	file  string // what the descriptor stands for, or the first name
	other string // the second name
	text  string // what was written
	flags string
}

var (
	callLine = regexp.MustCompile(`^\d+ +(\w+)\((.*)\) += (\d+)`)
	fdArg    = regexp.MustCompile(`^\d+<([^>]*)>`)
	textArg  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// readTrace reads strace's notes. A call that another one interrupts is noted
// in two parts; it counts from when it is through.
func readTrace(t *testing.T, name string) (calls []tracedCall) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parts := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		pid, _, _ := strings.Cut(line, " ")
		if head, ok := strings.CutSuffix(line, " <unfinished ...>"); ok {
			parts[pid] = head
			continue
		}
		if i := strings.Index(line, " resumed>"); i >= 0 {
			line = parts[pid] + line[i+len(" resumed>"):]
		}
		if m := callLine.FindStringSubmatch(line); m != nil {
			calls = append(calls, parseCall(m[1], m[2]))
		}
	}
	return calls
}

func parseCall(name, args string) tracedCall {
	c := tracedCall{name: name, flags: args}
	if m := fdArg.FindStringSubmatch(args); m != nil {
		c.file = m[1]
	}
	var texts []string
	for _, m := range textArg.FindAllStringSubmatch(args, -1) {
		text, err := strconv.Unquote(`"` + m[1] + `"`)
		if err != nil {
			text = m[1]
		}
		texts = append(texts, text)
	}
	switch {
	case name == "write" && len(texts) > 0:
		c.text = texts[0]
	case name != "write" && len(texts) > 0:
		c.file = texts[0]
		c.other = texts[len(texts)-1]
	}
	return c
}

// replay does a call that concerns dir on the double, and tells whether it
// was one.
func replay(fs *crashFS, c tracedCall, dir string) bool {
	if c.file != dir && filepath.Dir(c.file) != dir || strings.HasSuffix(c.file, ".lock") {
		return false
	}
	switch c.name {
	case "openat":
		if _, there := fs.names[c.file]; there || !strings.Contains(c.flags, "O_CREAT") {
			return false
		}
		fs.last++
		fs.inodes[fs.last] = &inode{mode: 0o600}
		fs.change(nameOp{add: c.file, ino: fs.last})
	case "write":
		n := fs.inodes[fs.names[c.file]]
		n.data = append(n.data[:len(n.data):len(n.data)], c.text...)
	case "fsync", "fdatasync":
		if c.file == dir {
			fs.SyncDir(dir)
			break
		}
		n := fs.inodes[fs.names[c.file]]
		n.synced = n.data
	case "rename", "renameat", "renameat2":
		fs.Rename(c.file, c.other)
	case "unlink", "unlinkat":
		fs.Remove(c.file)
	default:
		return false
	}
	return true
}
