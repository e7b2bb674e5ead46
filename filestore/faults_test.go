//go:build linux

package filestore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/filestore"
)

// mountTmpfs mounts a file system of that size in memory.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		testkit.Lacks(t, fmt.Sprintf("cannot mount a tmpfs: %v", err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestKF_D2_FullDisk fills a small disk: the old file stays, memory serves, State
// says so, and when there is room again the store saves by itself.
func TestKF_D2_FullDisk(t *testing.T) {
	dir := mountTmpfs(t, "512k")
	path := filepath.Join(dir, "pins.json")
	s := open(t, path, filestore.WithSaveDelay(10*time.Millisecond))
	setDurable(t, s, "old", "1")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(dir, "ballast"))
	if err := s.SetDurable(t.Context(), "new", strings.Repeat("x", 10000), 0); !isNotSaved(err) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("SetDurable on a full disk = %v, want ErrNotSaved for ENOSPC", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file changed: %q, %v", after, err)
	}
	if temps, _ := filepath.Glob(path + ".tmp-*"); len(temps) > 0 {
		t.Errorf("left behind: %q", temps)
	}
	if st := s.State(); !errors.Is(st.Err, syscall.ENOSPC) || st.Unsaved != 1 || st.ErrSince.IsZero() {
		t.Errorf("State = %+v, want ENOSPC and one unsaved write", st)
	}
	wantGet(t, s, "new", strings.Repeat("x", 10000), true)
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "saved again", func() bool { st := s.State(); return st.Err == nil && st.Unsaved == 0 })
	mustClose(t, s)
	wantGet(t, open(t, path), "new", strings.Repeat("x", 10000), true)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadOnlyDisk makes the disk read-only for a while, also over a restart.
func TestReadOnlyDisk(t *testing.T) {
	dir := mountTmpfs(t, "1m")
	path := filepath.Join(dir, "pins.json")
	s := open(t, path)
	setDurable(t, s, "k", "1")
	mustClose(t, s)
	remount(t, dir, syscall.MS_RDONLY)
	s = open(t, path)
	wantGet(t, s, "k", "1", true)
	if err := s.SetDurable(t.Context(), "k", "2", 0); !isNotSaved(err) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("SetDurable = %v, want ErrNotSaved for EROFS", err)
	}
	wantGet(t, s, "k", "2", true)
	remount(t, dir, 0)
	eventually(t, "saved again", func() bool { return s.State().Err == nil })
	mustClose(t, s)
	wantGet(t, open(t, path), "k", "2", true)
}

func remount(t *testing.T, dir string, flag uintptr) {
	t.Helper()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flag, ""); err != nil {
		t.Fatal(err)
	}
}

func init() { children["faulty"] = faulty }

// faulty is a child whose system calls are made to fail from outside. For
// each line on its input it does a durable write and answers how that went.
func faulty(args []string) error {
	s, err := filestore.Open(context.Background(), filestore.FileURL(args[0]), quiet, filestore.WithFS(fixedTemp{filestore.OS()}))
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == "wait" {
			for s.State().Err != nil {
				time.Sleep(5 * time.Millisecond)
			}
			fmt.Println("well")
			continue
		}
		err := s.SetDurable(context.Background(), "k", fmt.Sprint(n), 0)
		val, _, _ := s.Get("k")
		fmt.Printf("memory %s, unsaved %d, error %v\n", val, s.State().Unsaved, err)
	}
	return s.Close()
}

// fixedTemp gives temporary files a name that strace can be told.
type fixedTemp struct{ filestore.FS }

type fixedFile struct {
	filestore.File
	name string
}

func (f fixedFile) Name() string { return f.name }

func (x fixedTemp) CreateTemp(dir, pattern string) (filestore.File, error) {
	f, err := x.FS.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, strings.Replace(pattern, "*", "fixed", 1))
	return fixedFile{f, name}, x.FS.Rename(f.Name(), name)
}

// TestInjectedEIO has the kernel's calls fail under a real process. Memory
// serves, the file is the old one or the new one and whole, and the store
// comes back by itself when the fault goes.
func TestInjectedEIO(t *testing.T) {
	testkit.Need(t, "strace")
	for _, c := range []struct {
		name, call, on string
		kept           string // the value in the file while the fault lasts
	}{
		{"write", "write", "pins.json.tmp-fixed", "1"},
		{"fsync of the file", "fsync", "pins.json.tmp-fixed", "1"},
		{"rename", "renameat", "pins.json.tmp-fixed", "1"},
		{"fsync of the folder", "fsync", "", "2"}, // stands, but may not last
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			cmd := child(t, nil, "faulty", path)
			talk := startFaulty(t, cmd)
			if got := talk("write"); got != "memory 1, unsaved 0, error <nil>" {
				t.Fatalf("before the fault: %s", got)
			}
			heal := inject(t, cmd.Process.Pid, c.call, filepath.Join(filepath.Dir(path), c.on))
			got := talk("write")
			if !strings.HasPrefix(got, "memory 2, unsaved 1, error not saved: ") || !strings.HasSuffix(got, "input/output error") {
				t.Errorf("with the fault: %s; want EIO, memory serving", got)
			}
			b, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(b, fmt.Appendf(nil, `"string":%q`, c.kept)) {
				t.Errorf("with the fault the file is %s, %v; want value %s", b, err, c.kept)
			}
			heal()
			if got := talk("wait"); got != "well" {
				t.Errorf("after the fault: %s", got)
			}
			wantGet(t, open(t, path), "k", "2", true)
		})
	}
}

// inject makes a system call on one path fail with EIO in a running process,
// until heal is called.
func inject(t *testing.T, pid int, call, path string) (heal func()) {
	t.Helper()
	cmd := exec.Command("strace", "-f", "-p", fmt.Sprint(pid), "-P", path, "-o", "/dev/null", "-e", "inject="+call+":error=EIO")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	attached := false
	for !attached && lines.Scan() {
		attached = strings.Contains(lines.Text(), "attached")
	}
	go io.Copy(io.Discard, said)
	heal = sync.OnceFunc(func() {
		cmd.Process.Signal(syscall.SIGINT) // it lets go and the process goes on
		cmd.Wait()
	})
	t.Cleanup(heal)
	if !attached {
		testkit.Lacks(t, "strace may not attach here")
	}
	return heal
}

// startFaulty starts the child and returns how to talk with it.
func startFaulty(t *testing.T, cmd *exec.Cmd) func(string) string {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	answers := bufio.NewReader(out)
	return func(line string) string {
		fmt.Fprintln(in, line)
		answer, err := answers.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(answer)
	}
}
