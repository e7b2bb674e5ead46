package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
)

// listen binds address and the other loopback family on the same port, since
// clients take `localhost` for either.
func listen(address string, log *slog.Logger) ([]net.Listener, error) {
	first, err := net.Listen("tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%s is in use by another program, perhaps another agentop (`agentop status`): %w", address, err)
		}
		return nil, fmt.Errorf("listen: %w", err)
	}
	bound := first.Addr().(*net.TCPAddr)
	other := net.IPv6loopback.String()
	if bound.IP.To4() == nil {
		other = "127.0.0.1"
	}
	second, err := net.Listen("tcp", net.JoinHostPort(other, fmt.Sprint(bound.Port)))
	if err != nil {
		log.Warn("only one loopback family is bound", "bound", bound.String(), "error", err)
		return []net.Listener{first}, nil
	}
	return []net.Listener{first, second}, nil
}
