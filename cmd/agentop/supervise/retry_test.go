package supervise

import (
	"net/http"
	"strings"
	"testing"
)

// A supervisor that somebody runs in a terminal is not ended by being asked to
// try again.
func TestRetryStartsAWorkerInATerminalToo(t *testing.T) {
	b := newBench(t, "refuse", func(o *Options) { o.Terminal = true }).open()
	b.until("/v1/messages", func(status int, _ string) bool { return status == http.StatusBadRequest })
	b.mood("")
	holder, _ := Find(b.dir)
	if err := Retry(holder); err != nil {
		t.Fatal(err)
	}
	first := pidOf(t, b.until("/pid", ok))
	if err := Retry(holder); err != nil {
		t.Fatal(err)
	}
	if status, body := b.get("/restart"); status != http.StatusOK { // answered after the signal was
		t.Fatalf("restart: %d %s", status, body)
	}
	second := pidOf(t, b.until("/pid", func(status int, body string) bool { return status == 200 && pidOf(t, body) != first }))
	if strings.Count(b.said.String(), " serves; ") != 1 {
		t.Errorf("a supervisor that has a worker (%d, then %d) was made to hand over:\n%s", first, second, b.said.String())
	}
}
