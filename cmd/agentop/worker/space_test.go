package worker

import "testing"

func TestLogLeavesRoomOnASmallDisk(t *testing.T) {
	for _, c := range []struct{ disk, want int64 }{
		{0, 200 << 20}, {-1, 200 << 20}, {1 << 40, 200 << 20}, {800 << 20, 100 << 20}, {16 << 20, 2 << 20}, {1 << 20, 1 << 20},
	} {
		if got := limitFor(c.disk); got != c.want {
			t.Errorf("on a disk of %d bytes: %d, want %d", c.disk, got, c.want)
		}
	}
	if got := logLimit(t.TempDir()); got <= 0 || got > 200<<20 {
		t.Errorf("here: %d", got)
	}
	if got := logLimit("/no/such/directory"); got != 200<<20 {
		t.Errorf("where it cannot be told: %d", got)
	}
}
