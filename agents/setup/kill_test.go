package setup

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary runs itself as a child that enables and disables an agent,
// and is killed: at a step that it reaches, or at a random moment.
const (
	childHome = "AGENTOP_TEST_SETUP_HOME"
	childStop = "AGENTOP_TEST_SETUP_STOP" // the number of the step; 0 = go on for ever
)

func TestMain(m *testing.M) {
	if home := os.Getenv(childHome); home != "" {
		child(home)
	}
	os.Exit(m.Run())
}

func child(home string) {
	stop, step := 0, 0
	_, _ = fmt.Sscan(os.Getenv(childStop), &stop)
	reached = func(string) {
		if step++; step == stop {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s := childSetup(home)
	fmt.Println("begin")
	for {
		p, err := s.Plan(claudeCode, Choices{})
		if err == nil {
			_, err = s.Enable(p)
		}
		if err == nil {
			_, err = s.Disable(claudeCode, false)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if stop > 0 && step < stop {
			os.Exit(7) // there is no such step
		}
	}
}

func childSetup(home string) *Setup {
	return &Setup{Dir: filepath.Join(home, ".agentop", "agents"), World: World{Home: home, OS: "linux", Root: home},
		Proxy: Proxy{Listen: "127.0.0.1:4780"}, Now: time.Now}
}

// bigSettings is a settings file that takes more than one write of a disk.
func bigSettings() string {
	var b strings.Builder
	b.WriteString("{\n  \"permissions\": {\n    \"allow\": [\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "      \"Bash(make target-%d:*)\",\n", i)
	}
	b.WriteString("      \"Read\"\n    ]\n  }\n}\n")
	return b.String()
}

// TestKF_D12_KilledAtEachStep: at whatever step the command is killed, the
// settings are the old or the new file, whole, and disable gives the old ones
// back and leaves nothing beside them.
func TestKF_D12_KilledAtEachStep(t *testing.T) {
	for _, user := range []string{absent, "{\n  \"model\": \"opus\"\n}\n"} {
		steps := 0
		for stop := 1; ; stop++ {
			s, before := killStage(t, user)
			code := runChild(t, s.home, stop)
			if code == 7 {
				break
			}
			if code != -1 {
				t.Fatalf("step %d: the child ended with %d", stop, code)
			}
			steps++
			afterKill(t, fmt.Sprintf("step %d", stop), s, before, user)
		}
		if steps < 5 {
			t.Errorf("only %d steps were reached", steps)
		}
	}
}

// TestKF_D12_KilledAtRandom is the same at moments that no step names.
func TestKF_D12_KilledAtRandom(t *testing.T) {
	times := 12
	if os.Getenv("AGENTOP_TEST_FULL") != "" {
		times = 200
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	user := bigSettings()
	s, before := killStage(t, user)
	for i := range times {
		killAfter(t, s.home, time.Duration(random.IntN(60_000))*time.Microsecond)
		afterKill(t, fmt.Sprintf("kill %d", i), s, before, user)
	}
}

// TestKF_D12_ReplacedByRenameAlone: who has the old file open reads it to its
// end, so at no moment was it cut or half written.
func TestKF_D12_ReplacedByRenameAlone(t *testing.T) {
	s := newStage(t)
	user := bigSettings()
	path := s.write(settingsFiles[claudeCode], user)
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	s.enable(claudeCode, Choices{})
	enabled := s.read(settingsFiles[claudeCode])
	now, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	s.disable(claudeCode)
	for file, want := range map[*os.File]string{old: user, now: enabled} {
		if got, err := io.ReadAll(file); err != nil || string(got) != want {
			t.Errorf("the file that was replaced has %d bytes (%v), want %d", len(got), err, len(want))
		}
	}
}

func killStage(t *testing.T, user string) (*stage, map[string]string) {
	t.Helper()
	s := newStage(t)
	s.Setup = childSetup(s.home)
	if user != absent {
		s.write(settingsFiles[claudeCode], user)
	}
	return s, tree(t, s.home)
}

// runChild gives the exit code of a child that stops at a step, -1 if it was
// killed there.
func runChild(t *testing.T, home string, stop int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childHome+"="+home, fmt.Sprintf("%s=%d", childStop, stop))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("run the child: %v", err)
	}
	if cmd.ProcessState.ExitCode() == 1 {
		t.Fatalf("the child said %s", out)
	}
	return cmd.ProcessState.ExitCode()
}

// killAfter kills a child a moment after it has begun.
func killAfter(t *testing.T, home string, moment time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childHome+"="+home, childStop+"=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	<-time.After(moment) // the random moment itself
	_ = cmd.Process.Kill()
	if rest, _ := r.ReadString(0); rest != "" {
		t.Errorf("the child said %s", rest)
	}
	_ = cmd.Wait()
}

// afterKill checks what a kill has left, and that it can be undone.
func afterKill(t *testing.T, when string, s *stage, before map[string]string, user string) {
	t.Helper()
	path := filepath.Join(s.home, settingsFiles[claudeCode])
	if data, err := os.ReadFile(path); err == nil {
		_, old := before[settingsFiles[claudeCode]]
		isOld := old && string(data) == user
		if tree, err := strictJSON.decode(data); !isOld && (err != nil || text(tree, claudePath...) != "http://127.0.0.1:4780/claude-code") {
			t.Fatalf("%s: the settings are neither old nor new: %.200q", when, data)
		}
	} else if user != absent {
		t.Fatalf("%s: the settings are gone: %v", when, err)
	}
	s.disable(claudeCode)
	got := tree(t, s.home)
	if user == absent {
		delete(got, ".claude") // a folder made right before the kill is nobody's
	}
	sameTree(t, got, before)
}
