package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// procFiles reads /proc/net/tcp and tcp6 (proc_pid_net(5)), for kernels and
// sandboxes without sock_diag. It reads through all sockets of the machine.
type procFiles struct{}

func (procFiles) close() error { return nil }

func (procFiles) owner(from, to netip.AddrPort) (int, error) {
	names := []string{"/proc/net/tcp6"}
	if from.Addr().Is4() {
		// A program may reach IPv4 through an IPv6 socket.
		names = []string{"/proc/net/tcp", "/proc/net/tcp6"}
	}
	found := ErrCannotTell
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			continue // a kernel without IPv6 has no tcp6
		}
		uid, err := scanProc(f, from, to)
		_ = f.Close() // only read
		if err == nil {
			return uid, nil
		}
		found = err
	}
	return 0, found
}

// scanProc finds the line of the socket bound to from and connected to to.
func scanProc(r io.Reader, from, to netip.AddrPort) (int, error) {
	lines := bufio.NewScanner(r)
	want4 := procAddr(from, false) + " " + procAddr(to, false)
	want6 := procAddr(from, true) + " " + procAddr(to, true)
	for lines.Scan() {
		// sl local rem st tx:rx tr:when retrnsmt uid timeout inode ...
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[3] == "0A" { // a listening socket
			continue
		}
		if pair := f[1] + " " + f[2]; pair != want4 && pair != want6 {
			continue
		}
		if f[9] == "0" {
			return 0, ErrGone // no program has it any more; its owner reads 0
		}
		uid, err := strconv.ParseUint(f[7], 10, 32)
		if err != nil {
			return 0, fmt.Errorf("owner %q in /proc/net/tcp: %w", f[7], err)
		}
		return int(uid), nil
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read /proc/net/tcp: %w", err)
	}
	return 0, ErrGone
}

// procAddr writes an address as these files do: each 32-bit word of it in the
// machine's byte order, and the port, in hexadecimal.
func procAddr(a netip.AddrPort, as6 bool) string {
	raw := a.Addr().AsSlice()
	if as6 {
		long := a.Addr().As16()
		raw = long[:]
	}
	words := make([]byte, len(raw))
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(words[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(words)), a.Port())
}
