package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func listenAt(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestListenModeAndTidiness(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := home(t)
	path := filepath.Join(dir, SocketName)
	l := listenAt(t, path)
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("got mode %v, %v, want a socket with 0600", info.Mode(), err)
	}
	if got := names(t, dir); got != SocketName {
		t.Errorf("files beside the socket: %s", got)
	}
	if got := l.Addr().String(); got != path {
		t.Errorf("Addr is %q, want %q", got, path)
	}
	_ = l.Close()
	if got := names(t, dir); got != "" {
		t.Errorf("left after Close: %s", got)
	}
}

// While one worker follows another, whoever looks finds a private socket that
// is answered.
func TestReplaceIsNeverWiderAndNeverGone(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(home(t), SocketName)
	l := listenAt(t, path)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode() != fs.ModeSocket|0o600 {
				done <- fmt.Errorf("stat: %v, error: %w", info, err)
				return
			}
		}
	}()
	for range 300 {
		next, err := Replace(path)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Fatalf("closing the old one removed the new one's socket: %v", err)
		}
		l = next
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = l.Close()
}

func TestListenOverWhatIsThere(t *testing.T) {
	t.Run("a dead socket is replaced", func(t *testing.T) {
		path := filepath.Join(home(t), SocketName)
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		_ = dead.Close()
		listenAt(t, path)
	})
	t.Run("a living one is not", func(t *testing.T) {
		f := newFake()
		dir := home(t)
		path := filepath.Join(dir, SocketName)
		serveOn(t, f, listenAt(t, path))
		_, err := Listen(path)
		if !errors.Is(err, ErrInUse) {
			t.Errorf("got %v, want ErrInUse", err)
		}
		if want := fmt.Sprintf("process %d", os.Getpid()); err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
		if _, err := Dial(dir).Status(context.Background()); err != nil {
			t.Errorf("the first one no longer answers: %v", err)
		}
	})
	t.Run("a file is left alone", func(t *testing.T) {
		path := filepath.Join(home(t), SocketName)
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "something else") {
			t.Errorf("got %v", err)
		}
		if b, err := os.ReadFile(path); string(b) != "mine" {
			t.Errorf("the file holds %q, %v", b, err)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if _, err := Listen(filepath.Join(home(t), "none", SocketName)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a path that is too long", func(t *testing.T) {
		path := filepath.Join(home(t), strings.Repeat("x", 90), SocketName)
		if _, err := Listen(path); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "limit is 103") {
			t.Errorf("got %v", err)
		}
	})
}

func TestOfManyStartsOneWins(t *testing.T) {
	path := filepath.Join(home(t), SocketName)
	var wg sync.WaitGroup
	errs := make([]error, 16)
	all := make([]net.Listener, len(errs))
	for i := range errs {
		wg.Go(func() { all[i], errs[i] = Listen(path) })
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		switch {
		case err == nil:
			won++
			_ = all[i].Close()
		case !errors.Is(err, ErrInUse):
			t.Errorf("start %d: %v", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d starts won, want 1", won, len(errs))
	}
}
