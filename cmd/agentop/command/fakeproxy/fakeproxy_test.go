package fakeproxy

import (
	"slices"
	"testing"

	"agentop/router/control"
)

// The fake tells what it was started with, and keeps each change once.
func TestFakeKeepsWhatItIsTold(t *testing.T) {
	home := t.TempDir()
	p, err := Start(home, func(p *Proxy) { p.Sessions = p.Sessions[:1] })
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	c := control.Dial(home)
	defer c.Close()
	if list, err := c.Sessions(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d conversations, %v, want the one that it was started with", len(list), err)
	}
	if _, err := c.Use(t.Context(), "codex", "glm"); err != nil {
		t.Error(err)
	}
	if _, err := c.AddServer(t.Context(), control.ServerSpec{Name: "new", URL: "http://127.0.0.1:1", Key: "stored", Secret: "sk-fake-key"}); err != nil {
		t.Error(err)
	}
	if got := p.Secret(); got != "sk-fake-key" {
		t.Errorf("the secret is %q", got)
	}
	if calls := p.Calls(); len(calls) != 2 || calls[0] != "use codex glm" {
		t.Errorf("calls are %q", calls)
	}
	if again := p.Calls(); !slices.Equal(again, nil) {
		t.Errorf("told twice: %q", again)
	}
}
