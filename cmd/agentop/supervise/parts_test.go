package supervise

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentop/cmd/agentop/supervise/ahead"
)

func TestBackoffGrowsToItsLimit(t *testing.T) {
	var got []time.Duration
	for n := 1; n <= 9; n++ {
		got = append(got, backoff(n, 2*time.Second))
	}
	want := []time.Duration{50, 100, 200, 400, 800, 1600, 2000, 2000, 2000}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := backoff(1_000_000, 30*time.Second); got != 30*time.Second {
		t.Errorf("after a million: %v", got)
	}
}

// newPair is a link and the other end of it.
func newPair(t *testing.T) (*link, int) {
	t.Helper()
	ours, theirs, err := ahead.Pair()
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLink(ours)
	if err != nil {
		t.Fatal(err)
	}
	return l, theirs
}

func TestLinkCarriesMessagesAcrossAPause(t *testing.T) {
	a, fd := newPair(t)
	b, err := newLink(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.send(message{Kind: kindHello, Sockets: 2}); err != nil {
		t.Fatal(err)
	}
	if m, err := b.receive(); err != nil || !reflect.DeepEqual(m, message{Kind: kindHello, Sockets: 2}) {
		t.Errorf("got %+v, %v", m, err)
	}
	// Half a message, a pause, and the link in another reader's hands.
	if _, err := a.conn.Write([]byte(`{"kind":"lo`)); err != nil {
		t.Fatal(err)
	}
	b.limit(50 * time.Millisecond)
	if _, err := b.receive(); !errors.Is(err, errPaused) {
		t.Errorf("got %v, want %v", err, errPaused)
	}
	second, err := duplicate(b.conn)
	if err != nil {
		t.Fatal(err)
	}
	next, err := newLink(second)
	if err != nil {
		t.Fatal(err)
	}
	next.rest = b.rest
	b.close()
	next.resume()
	if _, err := a.conn.Write([]byte("ad\",\"streams\":3,\"news\":true}\n")); err != nil {
		t.Fatal(err)
	}
	if m, err := next.receive(); err != nil || !reflect.DeepEqual(m, message{Kind: kindLoad, Streams: 3}) {
		t.Errorf("got %+v, %v", m, err)
	}
	a.close()
	if _, err := next.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want %v", err, io.EOF)
	}
}

func TestHangingWorkerDoesNotHangTheSender(t *testing.T) {
	a, fd := newPair(t)
	defer syscall.Close(fd)
	defer a.close()
	long := message{Kind: kindOthers, Text: string(make([]byte, 256<<10))}
	var err error
	for range 64 {
		if err = a.send(long); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

func TestBinaryIsLookedAtByWhatItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agentop")
	write := func(content string, age time.Duration) {
		t.Helper()
		temp := filepath.Join(dir, "new")
		if err := os.WriteFile(temp, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := errors.Join(os.Chtimes(temp, at, at), os.Rename(temp, path)); err != nil {
			t.Fatal(err)
		}
	}
	write("one", time.Hour)
	image := filepath.Join(dir, "image")
	if err := os.Link(path, image); err != nil {
		t.Fatal(err)
	}
	b := newBinary(path, image)
	look := func(what string, want bool) {
		t.Helper()
		if got := b.look(time.Now(), time.Second); got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	soon := func(what string, want bool) {
		t.Helper()
		if got := b.settling(); got != want {
			t.Errorf("%s: it is to be looked at again soon: %v, want %v", what, got, want)
		}
	}
	look("the same", false)
	soon("the same", false)
	write("two", time.Hour)
	look("just replaced", false)
	soon("just replaced", true)
	look("replaced and settled", true)
	b.failed(true)
	look("replaced by what could not start", false)
	soon("replaced by what could not start", false)
	if got := b.start(); got != path {
		t.Errorf("what gave a reason is not executed: %s", got)
	}
	b.failed(false)
	if got := b.start(); got != image {
		t.Errorf("what crashed is executed: %s, want %s", got, image)
	}
	b.forgive()
	look("forgiven", true)
	write("three", 0)
	look("being written", false)
	look("written a moment ago", false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	look("gone", false)
	soon("gone", false)
	look("gone for good", false)
	if got := b.start(); got != image {
		t.Errorf("without its file %s is executed, want %s", got, image)
	}
}

// TestBinaryIsNotReplacedWhereNothingLeadsToTheImage is a root without /proc:
// the file that was started must not look like another that took its place.
func TestBinaryIsNotReplacedWhereNothingLeadsToTheImage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agentop")
	if err := os.WriteFile(path, []byte("one"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	b := newBinary(path, filepath.Join(dir, "proc", "self", "exe"))
	if b.replaced() || b.look(time.Now(), time.Second) {
		t.Error("the file that runs counts as replaced")
	}
	if got := b.start(); got != path {
		t.Errorf("a worker is started from %s, want %s", got, path)
	}
}

// A package manager's link is followed at each look, and is what is executed.
func TestKF_L10_LinkIsTheStablePath(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "bin")
	for _, version := range []string{"1", "2"} {
		if err := os.WriteFile(filepath.Join(dir, version), []byte(version), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("1", link); err != nil {
		t.Fatal(err)
	}
	b := &binary{path: link, self: identify(link), seen: identify(link)}
	if err := errors.Join(os.Remove(link), os.Symlink("2", link), os.Remove(filepath.Join(dir, "1"))); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	b.look(later, time.Second)
	if !b.look(later, time.Second) || b.start() != link {
		t.Errorf("the link's new target is not taken: start %s", b.start())
	}
}

func TestSocketsAreThoseOfBothFamilies(t *testing.T) {
	sockets, note, err := openSockets("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSockets(sockets)
	if note != "" {
		t.Logf("one family: %s", note)
	}
	_, port, _ := net.SplitHostPort(sockets[0].Address)
	for _, tc := range []struct {
		address string
		want    bool
	}{
		{sockets[0].Address, true},
		{"localhost:" + port, true},
		{"127.0.0.1:1", false},
		{"127.0.0.2:" + port, false},
		{"127.0.0.1:0", true},
		{"nonsense", false},
	} {
		if got := serves(sockets, tc.address); got != tc.want {
			t.Errorf("serves %s: got %v, want %v", tc.address, got, tc.want)
		}
	}
	for _, k := range sockets {
		l, err := listenerOf(k.FD)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		c, err := net.Dial("tcp", k.Address)
		if err != nil {
			t.Errorf("a closed listener took the socket with it: %v", err)
			continue
		}
		_ = c.Close()
	}
}

// systemd's sockets are told by variables, which must not reach any child.
func TestActivatedSockets(t *testing.T) {
	for _, tc := range []struct {
		name, pid, fds string
		want           int
	}{
		{"none", "", "", 0},
		{"another process's", "1", "2", 0},
		{"not a number", strconv.Itoa(os.Getpid()), "x", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("LISTEN_PID", tc.pid)
			t.Setenv("LISTEN_FDS", tc.fds)
			got, err := activated()
			if err != nil || len(got) != tc.want {
				t.Errorf("got %v, %v, want %d", got, err, tc.want)
			}
			if os.Getenv("LISTEN_FDS") != "" {
				t.Error("the variable is still there")
			}
		})
	}
}

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	notify("READY=1")
	var b [64]byte
	n, err := c.Read(b[:])
	if err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("got %q, %v", b[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", path+"-gone")
	notify("READY=1") // must not fail or wait
}

func TestKeepOnExec(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, keep := range []bool{true, false} {
		if err := keepOnExec([]int{int(f.Fd())}, keep); err != nil {
			t.Fatal(err)
		}
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
		if err != nil || (flags&unix.FD_CLOEXEC == 0) != keep {
			t.Errorf("keep %v: flags %d, %v", keep, flags, err)
		}
	}
}
