package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentop/cmd/agentop/command/plain"
)

// maxKey bounds what is read as a key, in bytes.
const maxKey = 64 << 10

// confirm says what is at stake, always, and asks a yes-or-no question unless
// the user has said yes; everything but y and yes is no. Without a terminal
// the answer is no, with the flag that says yes.
func (a *App) confirm(ctx context.Context, yes bool, stake []string, question string) error {
	for _, line := range stake {
		_, _ = fmt.Fprintln(a.Err, plain.Text(line))
	}
	if yes {
		return nil
	}
	if !a.InTerminal {
		return hint(fmt.Errorf("%w: there is no terminal to ask on", errDeclined), "--yes answers yes")
	}
	_, _ = fmt.Fprintf(a.Err, "%s [y/N] ", plain.Text(question))
	line, err := await(ctx, func() (string, error) {
		line, err := bufio.NewReader(a.In).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil // the end of input is no
		}
		return line, err
	})
	if err != nil {
		_, _ = fmt.Fprintln(a.Err)
		return err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}

// await reads in a goroutine, so that an interrupt ends the wait; the process
// then ends and the read with it.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := read()
		done <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", errDeclined
	case got := <-done:
		return got.text, got.err
	}
}

// cleanKey takes the line end off a key and refuses what cannot be one. The
// errors do not quote it.
func cleanKey(key string) (string, error) {
	key = strings.TrimRight(key, "\r\n")
	key = strings.TrimSpace(key)
	if key == "" {
		return "", hint(errors.New("the key is empty"), "--no-key adds a server that wants none")
	}
	if len(key) > maxKey {
		return "", fmt.Errorf("the key has more than %d bytes", maxKey)
	}
	for _, r := range key {
		if r <= ' ' || r >= 0x7f {
			return "", hint(errors.New("the key holds a space, a control character or one that is not ASCII"),
				"give the key alone, on one line")
		}
	}
	return key, nil
}
