package command

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"agentop/router/control"
)

// Following shows the last requests, then each new one once, until it is
// interrupted or the proxy ends.
func TestLogsFollow(t *testing.T) {
	for _, end := range []string{"interrupt", "proxy"} {
		t.Run(end, func(t *testing.T) {
			a, _, errs, dir := testApp(t, "")
			p := startProxy(t, dir)
			r, w := io.Pipe()
			a.Out, a.OutTerminal = w, false
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			code := make(chan int, 1)
			go func() { code <- a.execute(ctx, []string{"logs", "-f", "-n", "1"}); _ = w.Close() }()
			lines := bufio.NewScanner(r)
			next := func() string {
				if !lines.Scan() {
					t.Fatalf("no more lines: %v, %s", lines.Err(), errs)
				}
				return lines.Text()
			}
			if got := next(); !strings.Contains(got, "0199-codex") {
				t.Errorf("first line is %q", got)
			}
			publish := func(id string) {
				p.Hub.Publish(control.Event{Kind: control.EventRequest, Request: &control.Request{ID: id, Agent: "codex", Session: id}})
			}
			publish("r3") // has been shown
			p.Hub.Publish(control.Event{Kind: control.EventWarning, Text: "not a request"})
			publish("new-1")
			publish("new-2")
			for _, want := range []string{"new-1", "new-2"} {
				if got := next(); !strings.Contains(got, "\t"+want+"\t") {
					t.Errorf("got %q, want %s", got, want)
				}
			}
			go func() { _, _ = io.Copy(io.Discard, r) }() // a line too many must not block it
			want := ExitOK
			if end == "proxy" {
				want = ExitFailed
				p.Stop()
			}
			if end == "interrupt" {
				cancel()
			}
			if got := <-code; got != want {
				t.Errorf("exit code %d, want %d: %s", got, want, errs)
			}
		})
	}
}
