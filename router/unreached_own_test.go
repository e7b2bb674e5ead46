package router

import (
	"strings"
	"testing"
)

// TestAnOwnUpstreamThatIsDownIsNotToBeStarted holds that users are not told to
// start what is not theirs.
func TestAnOwnUpstreamThatIsDownIsNotToBeStarted(t *testing.T) {
	b := newBench(t, nil)
	b.configure("agents:\n  claude-code: {upstream: http://127.0.0.1:1}\n")
	body := read(t, b.claude("s1", user("hello")))
	if !strings.Contains(body, "check the network and go on, or move it: `agentop sessions move s1 SERVER`") || strings.Contains(body, "start the server") {
		t.Errorf("the error says %s", body)
	}
}
