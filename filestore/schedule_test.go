package filestore

import (
	"testing"
	"time"
)

// While saving fails, a plain write that is overdue must not keep the saver
// from sleeping: it would spin until the retry, and change nothing.
func TestNextSleepsUntilTheRetry(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	never := time.Time{}
	cases := []struct {
		name                       string
		plain, retry, sweep, spare time.Time
		want                       time.Time
	}{
		{"nothing but the sweep", never, never, at(60), never, at(60)},
		{"a plain write", at(2), never, at(60), never, at(2)},
		{"a plain write, the sweep first", at(2), never, at(1), never, at(1)},
		{"a retry", never, at(5), at(60), never, at(5)},
		{"a plain write that waits for the retry", at(2), at(5), at(60), never, at(5)},
		{"a retry after the sweep", at(2), at(70), at(60), never, at(60)},
		{"a spare before the sweep", never, never, at(60), at(10), at(10)},
		{"a spare after the retry", never, at(5), at(60), at(10), at(5)},
	}
	for _, c := range cases {
		sch := schedule{plainDue: c.plain, retryDue: c.retry, sweepDue: c.sweep, spareDue: c.spare}
		if got := sch.next(); !got.Equal(c.want) {
			t.Errorf("%s: next look at +%v, want +%v", c.name, got.Sub(begin), c.want.Sub(begin))
		}
	}
}
