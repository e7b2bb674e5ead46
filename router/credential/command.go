package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agentop/router/config"
)

// maxOutput is more than any key has; what a command prints beyond is dropped.
const maxOutput = 64 << 10

// fromCommand runs a key command without a shell, with the proxy's
// environment and no input. What it prints to standard error is dropped: such
// commands may echo what they were given. It and what it started are killed
// when the time is up.
func fromCommand(ctx context.Context, s *config.Server) (Secret, error) {
	name := s.Key.Command[0]
	fail := func(reason, do string) (Secret, error) {
		return Secret{}, &Error{Server: s.Name, Reason: fmt.Sprintf("its key command %q %s", name, reason), Do: do}
	}
	program, err := lookUp(name)
	if err != nil {
		return fail(err.Error(), "write its absolute path in config.yaml (a login service's PATH is not the shell's)")
	}
	var out limited
	cmd := exec.CommandContext(ctx, program, s.Key.Command[1:]...)
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a grandchild may hold the output open
	err = cmd.Run()
	const tryIt = "try it in a terminal"
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fail("did not end in time", tryIt+"; it gets no input and must not ask")
	case errors.As(err, &exit):
		return fail("failed ("+exit.ProcessState.String()+")", tryIt)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return fail("cannot be started", tryIt)
	}
	key, err := Clean(out.kept.String())
	if err != nil {
		return fail("printed something that "+err.Error(), "make it print the key alone")
	}
	return key, nil
}

// lookUp finds a program by absolute path or in PATH. A relative path would
// depend on where the proxy was started.
func lookUp(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		return "", errors.New("is given by a relative path")
	}
	program, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("was not found")
	case err != nil:
		return "", errors.New("cannot be run")
	}
	return program, nil
}

// limited keeps the first maxOutput bytes written to it.
type limited struct{ kept bytes.Buffer }

// Write implements io.Writer; it never fails.
func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
