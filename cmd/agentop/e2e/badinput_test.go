package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadInputMakesNoPin sends what no client should. It is forwarded as it
// came or refused in the API's shape; nothing crashes and nothing is pinned.
func TestBadInputMakesNoPin(t *testing.T) {
	s := newStage(t)
	const messages = "/claude-code/v1/messages"
	cases := []struct {
		name, path, body string
		status           int
		forwarded        bool
	}{
		{"not JSON", messages, "this is not JSON", 200, true},
		{"a JSON array", messages, `[1,2,3]`, 200, true},
		{"cut in the middle of JSON", messages, `{"model":"m","messages":[{"role":"user","conte`, 200, true},
		{"no bytes", messages, "", 200, true},
		{"no model", messages, `{"messages":[]}`, 200, true},
		{"a model that is a number", messages, `{"model":7,"messages":[]}`, 200, true},
		{"an unknown path of a known agent", "/claude-code/v1/unheard/of", `{"a":1}`, 404, true},
		{"an unknown agent", "/nobody/v1/messages", `{"model":"m","messages":[]}`, 404, false},
		{"an unknown agent without an API path", "/wp-admin", ``, 404, false},
	}
	for _, c := range cases {
		before := s.arrivals()
		res, err := http.Post(s.base(c.path), "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if res.Header.Get("X-Agentop-Route") == "" {
			t.Errorf("%s: no route header", c.name)
		}
		if got := s.arrivals() > before; got != c.forwarded {
			t.Errorf("%s: forwarded %v, want %v (status %d, %s)", c.name, got, c.forwarded, res.StatusCode, answer)
		}
		if c.forwarded {
			if got := s.last().Body; !bytes.Equal(got, []byte(c.body)) {
				t.Errorf("%s: the server got %q, want %q", c.name, got, c.body)
			}
		} else if res.StatusCode != c.status || !bytes.Contains(answer, []byte("agentop: ")) || !bytes.Contains(answer, []byte(`"error"`)) {
			t.Errorf("%s: status %d, %s", c.name, res.StatusCode, answer)
		}
	}
	s.truncated()
	pins, err := os.ReadFile(filepath.Join(s.home, "pins.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if bytes.Contains(pins, []byte(`"pin:`)) {
		t.Errorf("bad input made a pin:\n%s", pins)
	}
	if !s.turn("after-all-that", user("hello")) {
		t.Error("a good request is not served any more")
	}
}

// truncated announces more bytes than it sends and hangs up.
func (s *stage) truncated() {
	s.t.Helper()
	before := s.arrivals()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /claude-code/v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\n{\"model\":", s.address)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		s.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && res.StatusCode/100 != 4 {
		s.t.Errorf("a truncated body was answered %s", res.Status)
	}
	_ = conn.Close()
	if s.arrivals() != before {
		s.t.Error("a truncated body was forwarded")
	}
}

func (s *stage) arrivals() int {
	n := 0
	for _, server := range s.servers {
		n += server.Arrivals()
	}
	return n
}

// last is the newest request that any server got.
func (s *stage) last() (last struct{ Body []byte }) {
	var newest int64
	for _, server := range s.servers {
		records := server.Records()
		if len(records) == 0 {
			continue
		}
		if rec := records[len(records)-1]; rec.Time.UnixNano() > newest {
			newest, last.Body = rec.Time.UnixNano(), rec.Body
		}
	}
	return last
}

// TestBrokenConfig starts on a broken file and breaks a good one.
func TestBrokenConfig(t *testing.T) {
	s := newStage(t)
	path := filepath.Join(s.home, "config.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(string(good), "key: none", "kee: none", 1)
	if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return strings.Contains(s.agentop("status"), "kee") }, "status shows the error of the reload")
	if !s.turn("still-served", user("hello")) {
		t.Error("the last good configuration does not run on")
	}
	s.expectAll("the last good configuration", "a")

	s.kill()
	cmd := exec.Command(binary, "proxy")
	cmd.Env = append(os.Environ(), "AGENTOP_HOME="+s.home)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("a start on a broken file ended with %v, want exit 1", err)
	}
	for _, want := range []string{"config.yaml:3:", "kee", "key"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the message lacks %q:\n%s", want, out)
		}
	}
}
