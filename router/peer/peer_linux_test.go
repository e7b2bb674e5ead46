package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
)

// stranger is another account: nobody, on most systems.
const stranger = 65534

// childEnv makes the test binary a program that connects to the address in it
// and holds the connection until its input ends.
const childEnv = "AGENTOP_TEST_CONNECT"

func TestMain(m *testing.M) {
	if address := os.Getenv(childEnv); address != "" {
		c, err := net.Dial("tcp", address)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(os.Getuid())
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = c.Close()
		return
	}
	os.Exit(m.Run())
}

// ways are the two ways to ask; both must say the same.
func ways(t *testing.T) map[string]*Finder {
	t.Helper()
	d, err := openDiag()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.close() })
	return map[string]*Finder{"sock_diag": {by: d}, "proc": {by: procFiles{}}}
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// pair is a connection's two ends, the accepted one second.
func pair(t *testing.T, l net.Listener, dial string) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial(dial, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

func TestOwnerOfThisProcess(t *testing.T) {
	for name, f := range ways(t) {
		for _, c := range []struct{ network, address string }{
			{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}, {"tcp", "[::]:0"}, {"tcp4", "127.0.0.2:0"},
		} {
			_, server := pair(t, listen(t, c.network, c.address), "tcp")
			uid, err := f.Owner(addrPort(server.RemoteAddr()), addrPort(server.LocalAddr()))
			if err != nil || uid != os.Getuid() {
				t.Errorf("%s, %s: owner %d, %v; want %d", name, c.address, uid, err, os.Getuid())
			}
		}
	}
	if f, err := Open(); err != nil {
		t.Error(err)
	} else if _, fast := f.by.(*diag); !fast {
		t.Errorf("Open took %T", f.by)
	}
}

// A program that connects to an IPv4 address through an IPv6 socket.
func TestOwnerOfAMappedSocket(t *testing.T) {
	l := listen(t, "tcp4", "127.0.0.1:0")
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	to := &syscall.SockaddrInet6{Port: l.Addr().(*net.TCPAddr).Port}
	copy(to.Addr[:], net.IPv4(127, 0, 0, 1).To16())
	if err := syscall.Connect(fd, to); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for name, f := range ways(t) {
		if uid, err := f.Owner(addrPort(server.RemoteAddr()), addrPort(server.LocalAddr())); err != nil || uid != os.Getuid() {
			t.Errorf("%s: owner %d, %v; want %d", name, uid, err, os.Getuid())
		}
	}
}

// connectAs runs a program of another account that connects to l and holds on.
func connectAs(t *testing.T, l net.Listener, uid uint32) net.Conn {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Lacks(t, "only root can run a program as another account")
	}
	// Not by its path, which others may not enter.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+l.Addr().String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = hold.Close()
		_ = cmd.Wait()
		if got, want := strings.TrimSpace(said.String()), fmt.Sprint(uid); got != want {
			t.Errorf("the program said %q, want its user id %s", got, want)
		}
	})
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func TestOwnerIsAnotherAccount(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		server := connectAs(t, listen(t, "tcp", address), stranger)
		for name, f := range ways(t) {
			if uid, err := f.Owner(addrPort(server.RemoteAddr()), addrPort(server.LocalAddr())); err != nil || uid != stranger {
				t.Errorf("%s, %s: owner %d, %v; want %d", name, address, uid, err, stranger)
			}
		}
	}
}

// Linux calls a socket that its program has closed root's. Who sends a request
// and leaves at once must not be taken for root.
func TestOwnerOfAClosedConnectionIsNobody(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		address := map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"}[network]
		l := listen(t, network, address)
		client, server := pair(t, l, network)
		if _, err := client.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		for name, f := range ways(t) {
			if uid, err := f.Owner(addrPort(server.RemoteAddr()), addrPort(server.LocalAddr())); !errors.Is(err, ErrGone) {
				t.Errorf("%s, %s: owner %d, %v; want ErrGone", name, network, uid, err)
			}
		}
		half, other := pair(t, l, network)
		if err := half.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for name, f := range ways(t) {
			if uid, err := f.Owner(addrPort(other.RemoteAddr()), addrPort(other.LocalAddr())); err != nil || uid != os.Getuid() {
				t.Errorf("%s, %s, half closed: owner %d, %v; want %d", name, network, uid, err, os.Getuid())
			}
		}
	}
}

// Where no connection matches, the kernel tells of a listening socket.
func TestOwnerIsNotAListener(t *testing.T) {
	l := listen(t, "tcp4", "127.0.0.1:0")
	from := addrPort(l.Addr())
	for name, f := range ways(t) {
		for _, to := range []string{"127.0.0.1:1", "127.0.0.1:0", "0.0.0.0:0"} {
			if uid, err := f.Owner(from, netip.MustParseAddrPort(to)); !errors.Is(err, ErrGone) {
				t.Errorf("%s, to %s: owner %d, %v; want ErrGone", name, to, uid, err)
			}
		}
	}
}

func TestScanProc(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	from, to := netip.MustParseAddrPort("127.0.0.1:33000"), netip.MustParseAddrPort("127.0.0.1:4780")
	line := func(uid, inode string) string {
		return "   1: " + procAddr(from, false) + " " + procAddr(to, false) + " 01 00000000:00000000 00:00000000 00000000  " + uid + "        0 " + inode + " 1 0 20 4 30 10 -1\n"
	}
	for _, c := range []struct {
		name, text string
		uid        int
		gone, ok   bool
	}{
		{"owner", head + line("1000", "77"), 1000, false, true},
		{"no program", head + line("0", "0"), 0, true, false},
		{"no such line", head, 0, true, false},
		{"empty", "", 0, true, false},
		{"no number", head + line("x", "77"), 0, false, false},
		{"negative", head + line("-1", "77"), 0, false, false},
		{"cut line", head + line("1000", "77")[:60] + "\n", 0, true, false},
		{"endless line", strings.Repeat("x", 1<<20), 0, false, false},
	} {
		uid, err := scanProc(strings.NewReader(c.text), from, to)
		if uid != c.uid || (err == nil) != c.ok || errors.Is(err, ErrGone) != c.gone {
			t.Errorf("%s: %d, %v", c.name, uid, err)
		}
	}
}

func BenchmarkOwner(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	d, err := openDiag()
	if err != nil {
		b.Fatal(err)
	}
	defer d.close()
	for name, by := range map[string]lookup{"sock_diag": d, "proc": procFiles{}} {
		f := &Finder{by: by}
		from, to := addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Owner(from, to); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
