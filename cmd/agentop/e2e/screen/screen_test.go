package screen

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"agentop/cmd/testkit"
)

// turn sends one streaming turn of a Claude Code conversation, and returns the
// answer when it is over. history are the answers before.
func (s *stage) turn(id string, history ...string) (route string, answer []byte, err error) {
	var messages strings.Builder
	for i, text := range history {
		fmt.Fprintf(&messages, `{"role":"user","content":"step %d"},{"role":"assistant","content":%q},`, i, text)
	}
	body := fmt.Sprintf(`{"model":"claude-opus-5-5","max_tokens":100,"stream":true,"context_management":{"edits":[]},`+
		`"tools":[{"name":"Read","input_schema":{"type":"object"}}],"messages":[%s{"role":"user","content":"next of %s"}]}`, messages.String(), id)
	req, err := http.NewRequest(http.MethodPost, "http://"+s.address+"/claude-code/v1/messages", strings.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": "claude-cli/2.1.332 (external, cli)",
		"X-Claude-Code-Session-Id": id, "X-Claude-Code-Request-Class": "main", "Anthropic-Version": "2023-06-01", "X-Api-Key": "sk-fake-screen"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.Header.Get("X-Agentop-Route"), answer, err
}

// A user switches an agent on the screen while a conversation of it streams:
// that one ends where it began and stays there; the next one goes to the new
// server; one key takes it back.
func TestScreenSwitchesWhileAConversationStreams(t *testing.T) {
	s := newStage(t)
	flow, end := s.hold()
	defer end()
	term := newTerminal(t, 80, 24, screen(s.home))
	term.shows("● proxy runs", "claude-code → a", "no conversation yet")

	type result struct {
		route  string
		answer []byte
		err    error
	}
	streamed := make(chan result, 1)
	go func() {
		route, answer, err := s.turn("11111111-0000-4000-8000-000000000001")
		streamed <- result{route, answer, err}
	}()
	term.shows("streaming", "1 running")
	term.keys("s")
	term.shows("[claude-code]", "-> b; 1 running one stays (on a)")
	term.keys("b")
	term.shows("filter: b", "up")
	term.keys("Enter")
	term.shows("new claude-code conversations -> b; 1 running one stays (on a)", "claude-code → b", "a*", "streaming")

	flow()
	route, _, err := s.turn("22222222-0000-4000-8000-000000000002")
	if err != nil || !strings.Contains(route, "server=b") {
		t.Errorf("the next conversation: %v, %s, want server=b", err, route)
	}
	end()
	first := <-streamed
	if first.err != nil || !strings.Contains(first.route, "server=a") || !bytes.Contains(first.answer, []byte("message_stop")) {
		t.Errorf("the stream during the switch: %v, %s, %d bytes; want it whole from a", first.err, first.route, len(first.answer))
	}
	if route, _, err = s.turn("11111111-0000-4000-8000-000000000001", "an answer"); err != nil || !strings.Contains(route, "server=a") {
		t.Errorf("the first conversation afterwards: %v, %s, want server=a", err, route)
	}
	term.shows("2 running", "on a: opened", "New claude-code ones go to b")
	term.keys("u")
	term.shows("new claude-code conversations -> a", "claude-code → a")
	term.keys("q")
}

func TestScreenRecoversWhenTheProxyDies(t *testing.T) {
	s := newStage(t)
	term := newTerminal(t, 80, 24, screen(s.home))
	term.shows("● proxy runs")
	s.kill()
	term.shows("proxy does not run", "press p to start it")
	s.start()
	term.shows("● proxy runs")
	// And the key that starts one.
	s.kill()
	term.shows("press p to start it")
	t.Cleanup(func() { s.end(t) })
	term.keys("p")
	term.shows("● proxy runs")
	s.end(t)
	term.shows("proxy does not run")
}

// end ends a proxy that the screen has started: its group is its own.
func (s *stage) end(t *testing.T) {
	status := s.agentop("status", "--json")
	pid, _ := strconv.Atoi(regexp.MustCompile(`"pid": (\d+)`).FindStringSubmatch(status)[1])
	if pid == 0 {
		return
	}
	group, err := syscall.Getpgid(pid)
	if err != nil || group == syscall.Getpgrp() {
		t.Errorf("the started proxy has the group %d: %v", group, err)
		return
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
}

// ordinary runs the screen from a shell that writes down the terminal's modes
// before and after.
func ordinary(t *testing.T, home string) (term *terminal, dir string) {
	dir = t.TempDir()
	script := fmt.Sprintf("cd %s; stty -a > before; %s; echo code=$? > code; stty -a > after; echo back; exec cat", quoted(dir), screen(home))
	term = newTerminal(t, 80, 24, script)
	term.shows("proxy")
	return term, dir
}

// restored asserts that the terminal is as it was, and returns the exit code.
func restored(t *testing.T, term *terminal, dir string) string {
	t.Helper()
	term.shows("back")
	before, _ := os.ReadFile(filepath.Join(dir, "before"))
	after, _ := os.ReadFile(filepath.Join(dir, "after"))
	if len(before) == 0 || !bytes.Equal(before, after) {
		t.Errorf("the terminal's modes before:\n%s\nafter:\n%s", before, after)
	}
	if term.value("cursor_flag") != "1" || term.value("alternate_on") != "0" {
		t.Errorf("cursor %s, alternate screen %s", term.value("cursor_flag"), term.value("alternate_on"))
	}
	code, _ := os.ReadFile(filepath.Join(dir, "code"))
	return strings.TrimSpace(strings.TrimPrefix(string(code), "code="))
}

// child is the agentop that runs in a terminal's shell.
func child(t *testing.T, term *terminal) int {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", term.value("pane_pid"), "-f", regexp.QuoteMeta(binary)).Output()
	if err != nil {
		t.Fatalf("find the screen's process: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("one process, got %q", out)
	}
	return pid
}

func TestKF_T3_TheTerminalIsRestored(t *testing.T) {
	testkit.Need(t, "pgrep")
	for _, c := range []struct {
		name string
		end  func(term *terminal, pid int)
		code string
	}{
		{"q", func(term *terminal, _ int) { term.keys("q") }, "0"},
		{"ctrl-c", func(term *terminal, _ int) { term.keys("C-c") }, "0"},
		{"SIGTERM", func(_ *terminal, pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }, "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			term, dir := ordinary(t, t.TempDir())
			c.end(term, child(t, term))
			if code := restored(t, term, dir); code != c.code {
				t.Errorf("exit code %s, want %s", code, c.code)
			}
		})
	}
}

// The shell that started the screen is killed, and the one before it goes on in
// the same terminal.
func TestKF_T3_AKilledParentLeavesTheTerminalToTheNext(t *testing.T) {
	testkit.Need(t, "pgrep", "ps")
	dir := t.TempDir()
	script := fmt.Sprintf("cd %s; stty -a > before; sh -c %s; until [ -e ended ]; do sleep 0.05; done; stty -a > after; echo code=0 > code; echo back; exec cat",
		quoted(dir), quoted("echo $$ > parent; "+screen(t.TempDir())+" 2> said; :"))
	term := newTerminal(t, 80, 24, script)
	term.shows("proxy does not run")
	text, _ := os.ReadFile(filepath.Join(dir, "parent"))
	parent, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(parent)).Output()
	pid, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || pid == 0 {
		t.Fatalf("the screen's process: %v, %q", err, out)
	}
	_ = syscall.Kill(parent, syscall.SIGKILL)
	if !gone(pid) {
		t.Errorf("process %d outlives who started it", pid)
	}
	if err := os.WriteFile(filepath.Join(dir, "ended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	restored(t, term, dir)
	if said, _ := os.ReadFile(filepath.Join(dir, "said")); !strings.Contains(string(said), "is gone") {
		t.Errorf("it ended with %q", said)
	}
}

func TestScreenSuspends(t *testing.T) {
	testkit.Need(t, "bash")
	term := newTerminal(t, 80, 24, "bash --norc --noprofile -i")
	term.keys("PS1='prompt> '", "Enter", screen(t.TempDir()), "Enter")
	term.shows("proxy does not run")
	term.keys("C-z")
	term.shows("Stopped", "prompt>")
	if term.value("alternate_on") != "0" {
		t.Error("the alternate screen is still on")
	}
	term.keys("fg", "Enter")
	term.shows("proxy does not run")
	term.keys("q")
	term.shows("prompt>")
}

// gone reports whether a process ends. One that has ended but
// was not waited for yet, by whoever inherited it, is gone.
func gone(pid int) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || strings.HasPrefix(strings.TrimSpace(string(state)), "Z") {
			return true
		}
	}
	return false
}

func TestKF_T7_AClosedTerminalEndsTheScreen(t *testing.T) {
	testkit.Need(t, "pgrep", "ps")
	t.Run("the terminal is closed", func(t *testing.T) {
		s := newStage(t)
		term := newTerminal(t, 80, 24, "exec "+screen(s.home))
		term.shows("● proxy runs")
		pid, _ := strconv.Atoi(term.value("pane_pid"))
		term.tmux("kill-server")
		if !gone(pid) {
			t.Errorf("process %d outlives its terminal", pid)
		}
		if !strings.Contains(s.agentop("status"), "running") { // and the proxy goes on
			t.Error("the proxy went with it")
		}
	})
	t.Run("the shell is killed", func(t *testing.T) {
		term, _ := ordinary(t, t.TempDir())
		pid := child(t, term)
		shell, _ := strconv.Atoi(term.value("pane_pid"))
		_ = syscall.Kill(shell, syscall.SIGKILL)
		if !gone(pid) {
			t.Errorf("process %d outlives its shell", pid)
		}
	})
}

// moving are the parts of a screen that time changes.
var moving = regexp.MustCompile(`(up|idle|as of) +[0-9:smhd]+`)

func TestKF_T8_ASqueezedTerminalIsDrawnAfresh(t *testing.T) {
	s := newStage(t)
	if _, _, err := s.turn("33333333-0000-4000-8000-000000000003"); err != nil {
		t.Fatal(err)
	}
	term := newTerminal(t, 100, 30, screen(s.home))
	term.shows("1 running", "idle")
	for range 10 {
		term.resize(10, 30)
		term.resize(100, 30)
	}
	fresh := newTerminal(t, 100, 30, screen(s.home))
	fresh.shows("1 running", "idle")
	deadline := time.Now().Add(patience)
	for {
		want := moving.ReplaceAllString(fresh.text(), "$1")
		got := moving.ReplaceAllString(term.text(), "$1")
		if got == want {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the squeeze:\n%s\nwant\n%s", got, want)
		}
		time.Sleep(20 * time.Millisecond) // between polls of another process
	}
}

// A command asks the terminal nothing, also where no multiplexer is: styling
// code likes to ask for colours at the start, which blocks in the background.
func TestKF_T5_CommandsAskTheTerminalNothing(t *testing.T) {
	for _, args := range []string{"status", "version", "server list", "--help"} {
		cmd := exec.Command(binary, strings.Fields(args)...)
		cmd.Env = []string{"AGENTOP_HOME=" + t.TempDir(), "TERM=xterm-256color", "COLORTERM=truecolor", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
		started := time.Now()
		tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
		if err != nil {
			t.Fatal(err)
		}
		shown, _ := io.ReadAll(tty) // ends with EIO when the process is gone
		_ = tty.Close()
		_ = cmd.Wait()
		if len(shown) == 0 || bytes.ContainsAny(shown, "\x1b\x9b\x07") {
			t.Errorf("agentop %s printed %q", args, shown)
		}
		t.Logf("agentop %s: %d ms", args, time.Since(started).Milliseconds())
	}
}

// The screen itself asks nothing either: only modes are set.
func TestKF_T5_TheScreenAsksTheTerminalNothing(t *testing.T) {
	cmd := exec.Command(binary)
	cmd.Env = []string{"AGENTOP_HOME=" + t.TempDir(), "TERM=xterm-256color", "LC_ALL=C.UTF-8"}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var shown bytes.Buffer
	b := make([]byte, 4096)
	for !strings.Contains(shown.String(), "proxy does not run") {
		n, err := tty.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, &shown)
		}
		shown.Write(b[:n])
	}
	if _, err := tty.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(tty)
	shown.Write(rest)
	_ = cmd.Wait()
	// Questions end in c, n, q or are an OSC with a question mark.
	if found := regexp.MustCompile(`\x1b\[[0-9;?>=]*[cnq]|\x1b\][0-9;]*\?|\x1bP`).FindString(shown.String()); found != "" {
		t.Errorf("it asked %q", found)
	}
}
