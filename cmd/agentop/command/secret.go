package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readSecret asks on the process's terminal and reads one line without echo.
// Echo is off before the prompt shows, so that an answer that comes at once
// does not show either. The terminal is left as it was, also when the wait is
// interrupted.
func readSecret(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return "", fmt.Errorf("read the terminal's state: %w", err)
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	quiet.Lflag |= unix.ICANON | unix.ISIG
	quiet.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, setTermios, &quiet); err != nil {
		return "", fmt.Errorf("turn the terminal's echo off: %w", err)
	}
	_, _ = fmt.Fprint(os.Stderr, prompt)
	secret, err := await(ctx, func() (string, error) {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil // ctrl-d: what was typed, or nothing
		}
		return line, err
	})
	_, _ = fmt.Fprintln(os.Stderr) // the line end was not echoed
	return secret, errors.Join(err, unix.IoctlSetTermios(fd, setTermios, before))
}
