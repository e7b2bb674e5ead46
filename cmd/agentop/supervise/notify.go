package supervise

import (
	"net"
	"os"
	"strings"
)

// notify tells systemd of a change, where systemd started this process. It
// must never stop a supervisor, so that errors are of no interest.
func notify(text string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if rest, abstract := strings.CutPrefix(path, "@"); abstract {
		path = "\x00" + rest
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(text))
}
