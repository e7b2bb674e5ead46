package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Systems give ports by themselves from 32768 (Linux) or 49152 (macOS) on.
const lowestPort, pastPorts = 20_000, 32_000

// FreeAddress finds an address of 127.0.0.1 where nobody listens, for a program
// that will. Its port is none that the system gives away by itself, so nobody
// else gets it by chance before that program starts, or between two of its runs.
func FreeAddress() (string, error) {
	var failed error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.IntN(pastPorts-lowestPort)) //nolint:gosec // no secret
		l, err := net.Listen("tcp", address)
		if err != nil {
			failed = err
			continue
		}
		return address, l.Close()
	}
	return "", fmt.Errorf("find a free port: %w", failed)
}
