package simulation

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestPromise3_TwoWitnesses takes the pins away in every way that a file can
// be lost. The request log is the second witness: it names each conversation's
// server, and the pins are written anew from it.
func TestPromise3_TwoWitnesses(t *testing.T) {
	write := func(change func([]byte) []byte) func(string) error {
		return func(file string) error {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(file, change(content), 0o600)
		}
	}
	all := len(clients)
	cases := []struct {
		name     string
		lose     func(file string) error
		restored int // pins, at least: the store saves whole records of a damaged file
		setAside int // copies of the damaged file that are kept
	}{
		{"deleted", os.Remove, all, 0},
		{"emptied", write(func([]byte) []byte { return nil }), all, 1},
		{"cut short", write(func(b []byte) []byte { return b[:len(b)/2] }), all / 2, 1},
		{"zeroed, as after a power cut", write(func(b []byte) []byte { return make([]byte, len(b)) }), all, 1},
		{"not JSON", write(func([]byte) []byte { return []byte("<html>a page of a login portal</html>") }), all, 1},
		{"every record emptied", write(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"server":"s1",`), nil) }), all, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			inPeace(t, options{}, func(t *testing.T, w *world) {
				w.openOnS1(t)
				w.proxy.die()
				if err := tc.lose(w.pinFile()); err != nil {
					t.Fatal(err)
				}
				w.expectRestored(t, tc.restored)
				if got, err := filepath.Glob(w.pinFile() + ".corrupt-*"); err != nil || len(got) != tc.setAside {
					t.Errorf("set aside: %v, %v, want %d files", got, err, tc.setAside)
				}
			})
		})
	}
}

// TestPromise3_TheLastLineOutlivesTheLog has the log outgrow its 30 days, and
// its size. The lines of the conversations that still have a pin are carried
// over before their file goes.
func TestPromise3_TheLastLineOutlivesTheLog(t *testing.T) {
	cases := []struct {
		name string
		opts options
		days int
		each int // turns of somebody else a day
	}{
		{"30 days", options{}, 31, 1},
		{"its size", options{log: 64 << 10}, 3, 120},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			inPeace(t, tc.opts, func(t *testing.T, w *world) {
				time.Sleep(20 * time.Hour) // a file goes when its whole day is too old
				w.openOnS1(t)
				first := logFiles(t, w)[0]
				other := w.open(&clients[0])
				for range tc.days {
					for range tc.each {
						if !w.say(other, furtherTurns) {
							t.Fatal("no reply")
						}
						other.turns = other.turns[:1] // nobody needs it to grow
					}
					time.Sleep(23*time.Hour + 30*time.Minute)
				}
				w.say(other, furtherTurns)
				time.Sleep(2 * time.Minute) // an active log is kept in order each minute
				if now := logFiles(t, w); now[0] == first {
					t.Fatalf("log files %v: the first is still there", now)
				}
				w.proxy.die()
				if err := os.Remove(w.pinFile()); err != nil {
					t.Fatal(err)
				}
				w.expectRestored(t, len(clients))
			})
		})
	}
}

// inPeace lets a world live in simulated time in which nothing happens but
// what the test does.
func inPeace(t *testing.T, opts options, do func(*testing.T, *world)) {
	t.Helper()
	dir := scratch(t)
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(1, dir, opts)
		defer func() {
			if w.proxy != nil {
				w.proxy.die()
			}
		}()
		do(t, w)
		if broken := w.broken(); len(broken) > 0 {
			t.Error(broken[0])
		}
	})
}

// settle chooses one server for all agents.
func (w *world) settle(t *testing.T, server string) {
	t.Helper()
	for _, agent := range agentNames {
		w.choose(agent, server)
	}
	if err := w.apply(w.yaml()); err != nil {
		t.Fatal(err)
	}
}

// openOnS1 opens a conversation of each kind of client.
func (w *world) openOnS1(t *testing.T) {
	t.Helper()
	w.settle(t, "s1")
	for i := range clients {
		c := w.open(&clients[i])
		for range 2 {
			if !w.say(c, opened) {
				t.Fatalf("%s got no reply", c.client.name)
			}
		}
	}
}

// expectRestored has the proxy start again while new conversations go
// elsewhere, and wants those of openOnS1 at home and pinned again, on disk.
func (w *world) expectRestored(t *testing.T, restored int) {
	t.Helper()
	w.settle(t, "s3")
	for _, c := range w.convs[:len(clients)] {
		if !w.say(c, pinsLost) || c.last() != "s1" {
			t.Errorf("%s: its last reply was made by %q, want s1", c.client.name, c.last())
		}
	}
	content, err := os.ReadFile(w.pinFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range w.convs[:len(clients)] {
		if key := fmt.Sprintf(`"pin:%s:%s"`, c.client.agent, c.session); c.client.named && !bytes.Contains(content, []byte(key)) {
			t.Errorf("%s is not in pins.json: %s", key, content)
		}
	}
	if n := bytes.Count(content, []byte(`"pin":"restored"`)); n < restored {
		t.Errorf("%d pins are restored, want %d: %s", n, restored, content)
	}
}

func logFiles(t *testing.T, w *world) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "log", "requests-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("log files %v, %v", files, err)
	}
	return files
}
