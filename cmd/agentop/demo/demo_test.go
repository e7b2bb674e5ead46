package demo

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/router/control"
)

// TestDemoShowsBothServersAndLeavesNothing plays the demo fast until new
// conversations have gone to beta while older ones stay on alpha.
func TestDemoShowsBothServersAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var text string
	show := func(ctx context.Context, dir home.Home) error {
		api := client(dir)
		defer api.Close()
		events, err := api.Subscribe(ctx)
		if err != nil {
			return err
		}
		for {
			if _, err := events.Next(); err != nil {
				return err
			}
			status, err := api.Status(ctx)
			if err != nil {
				return err
			}
			sessions, err := api.Sessions(ctx)
			if err != nil {
				return err
			}
			if turns(sessions, "alpha") > 0 && turns(sessions, "beta") > 0 && switched(sessions) {
				text = page(status, sessions)
				return nil
			}
		}
	}
	if err := Run(ctx, Options{Version: "test", Out: io.Discard, Show: show, Pace: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"new claude-code  -> beta", "new codex        -> beta", "claude-code  alpha", "claude-code  beta", "opencode     beta"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "agentop-demo-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the demo left %v behind (%v)", left, err)
	}
}

func turns(sessions []control.Session, server string) int {
	n := 0
	for _, s := range sessions {
		if s.Server == server {
			n += s.Turns
		}
	}
	return n
}

// switched says whether claude-code runs on both servers and opencode is there.
func switched(sessions []control.Session) bool {
	on := map[string]bool{}
	for _, s := range sessions {
		on[s.Agent+" "+s.Server] = true
	}
	return on["claude-code alpha"] && on["claude-code beta"] && on["opencode beta"]
}
