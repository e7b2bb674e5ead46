package simulation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What a request does to the disk: an opening saves its pin and writes two
// lines, a later turn writes one line and touches the pins' file not at all,
// but for its renewal once a day.
func TestPredecessor_16_WhatARequestDoesToTheDisk(t *testing.T) {
	dir := scratch(t)
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(1, dir, options{})
		if err := w.apply(w.yaml()); err != nil {
			t.Fatal(err)
		}
		if err := w.alive(); err != nil {
			t.Fatal(err)
		}
		p := w.proxy.(*process)
		<-p.loaded
		c := w.open(&clients[0])
		cases := []struct {
			name   string
			after  time.Duration
			saves  bool
			inLine int
		}{
			{"opening", 0, true, 2},
			{"second turn", time.Second, false, 1},
			{"third turn", time.Second, false, 1},
			{"a turn a day later", 25 * time.Hour, true, 1},
		}
		for _, tc := range cases {
			time.Sleep(tc.after)
			synctest.Wait()
			calls, lines, saves := p.disk.calls.Load(), countLines(t, dir), p.store.State().Saves
			if !w.say(c, furtherTurns) {
				t.Fatalf("%s: no reply", tc.name)
			}
			if now := p.disk.calls.Load(); !tc.saves && now != calls {
				t.Errorf("%s: %d calls to the pins' file system, want none", tc.name, now-calls)
			}
			if n := countLines(t, dir) - lines; n != tc.inLine {
				t.Errorf("%s: %d lines in the log, want %d", tc.name, n, tc.inLine)
			}
			time.Sleep(3 * time.Second) // a plain save is made within two
			if n := p.store.State().Saves - saves; (n > 0) != tc.saves || n > 1 {
				t.Errorf("%s: %d saves, want one: %v", tc.name, n, tc.saves)
			}
		}
		p.die()
	})
}

func countLines(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "log", "requests-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(content), "\n")
	}
	return n
}
