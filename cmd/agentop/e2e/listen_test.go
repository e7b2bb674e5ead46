package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// listening are the local addresses that sockets of a port listen on, as the
// kernel writes them.
func listening(t *testing.T, port string) (addresses []string) {
	t.Helper()
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue // no IPv6 here
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if w := strings.Fields(lines.Text()); len(w) > 3 && w[3] == "0A" && strings.HasSuffix(w[1], ":"+port) {
				addresses = append(addresses, strings.TrimSuffix(w[1], ":"+port))
			}
		}
	}
	return addresses
}

func TestKF_X2_OnlyLoopbackIsBound(t *testing.T) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("the kernel's list of sockets is Linux's")
	}
	s := newStage(t)
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	got := listening(t, hexPort(t, port))
	if len(got) == 0 {
		t.Fatal("no socket listens")
	}
	for _, address := range got {
		if address != "0100007F" && address != "00000000000000000000000001000000" { // 127.0.0.1 and ::1, little-endian
			t.Errorf("a socket listens on %s", address)
		}
	}
	s.kill()
	for _, address := range []string{"0.0.0.0", "[::]", "", "192.168.1.5", "example.com", "localhost.evil.example"} {
		config, err := os.ReadFile(filepath.Join(s.home, "config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		home := t.TempDir()
		text := strings.Replace(string(config), "listen: "+s.address, `listen: "`+address+":"+port+`"`, 1)
		if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "config", "check")
		cmd.Env = append(os.Environ(), "AGENTOP_HOME="+home)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "others on the network could reach") {
			t.Errorf("listen %q: %v, %s", address, err, out)
		}
	}
}

func hexPort(t *testing.T, port string) string {
	t.Helper()
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%04X", n)
}
